"""HiAGM-TP: the document's vector becomes one for each label, and these pass through the structure encoder."""

from dataclasses import dataclass

from torch import Tensor, nn

from hitin.encoders.interface import Encoded, Widths
from hitin.methods.interface import Facts, Method
from hitin.methods.quadratic import AllLabelsClassifier, quadratic_warning
from hitin.methods.structure import StructureSettings, build_structure
from hitin.methods.tree_lstm import check_even
from hitin.option_values import check_counts
from hitin.taxonomy import Taxonomy


@dataclass(frozen=True)
class HiAGMTPSettings(StructureSettings):
    """The dropout is on the vectors that the labels are given; in the form `upstream` on the logits, too."""

    width: int = 300
    """Of a label's vector."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_counts(self, "width")
        if self.structure == "tree-lstm":
            check_even(self.width)


class TextPropagation(nn.Module):
    """From the document's vector to one for each label: structure(dropout(W H + b))."""

    def __init__(self, taxonomy: Taxonomy, document: int, settings: HiAGMTPSettings) -> None:
        """`document` is the width of the document's vector."""
        super().__init__()
        self.labels = len(taxonomy)
        self.projection = nn.Linear(document, self.labels * settings.width)
        self.dropout = nn.Dropout(settings.dropout)
        self.structure = build_structure(settings.structure, taxonomy, settings.width, settings.fidelity)

    def forward(self, vector: Tensor) -> Tensor:
        """(B, d) -> (B, N, width)"""
        nodes = self.dropout(self.projection(vector)).unflatten(1, (self.labels, -1))
        found: Tensor = self.structure(nodes)
        return found


class HiAGMTP(Method):
    """Document -> labels -> labels that know one another -> logits, each from all labels."""

    repeats = True

    def __init__(self, taxonomy: Taxonomy, widths: Widths, settings: HiAGMTPSettings) -> None:
        super().__init__(taxonomy, widths, settings)
        self.propagation = TextPropagation(taxonomy, widths.document, settings)
        self.classifier = AllLabelsClassifier(settings.width, len(taxonomy))
        self.logit_dropout = nn.Dropout(settings.dropout if settings.fidelity == "upstream" else 0)

    @classmethod
    def warning(cls, taxonomy: Taxonomy, widths: Widths, settings: HiAGMTPSettings) -> str | None:  # noqa: ARG003
        return quadratic_warning("hiagm-tp", settings.width, len(taxonomy), has_width=True)

    def prepare(self, facts: Facts) -> None:
        self.propagation.structure.prepare(facts)

    def forward(self, text: Encoded) -> Tensor:
        return self.logits_of(self.propagation(text.vector))

    def logits_of(self, nodes: Tensor) -> Tensor:
        """(B, N, width) -> (B, N)"""
        logits: Tensor = self.logit_dropout(self.classifier(nodes))
        return logits
