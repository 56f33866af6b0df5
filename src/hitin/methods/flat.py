"""The flat baseline: a linear classifier on the document's vector, which knows nothing of the hierarchy."""

from dataclasses import dataclass

from torch import Tensor, nn

from hitin.encoders.interface import Encoded, Widths
from hitin.methods.interface import Fidelity, Method
from hitin.option_values import check_choices, check_parts
from hitin.taxonomy import Taxonomy


@dataclass(frozen=True)
class FlatSettings:
    dropout: float = 0.2
    """On the document's vector."""
    fidelity: Fidelity = "clean"
    """`upstream` has the dropout on the logits, as the published TextRCNN has."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_parts(self, "dropout")


class Flat(Method):
    """logits = W dropout(H) + b"""

    repeats = True

    def __init__(self, taxonomy: Taxonomy, widths: Widths, settings: FlatSettings) -> None:
        super().__init__(taxonomy, widths, settings)
        self.fidelity = settings.fidelity
        self.is_linear = self.is_linear_with(settings)
        self.dropout = nn.Dropout(settings.dropout)
        self.classifier = nn.Linear(widths.document, len(taxonomy))

    @classmethod
    def is_linear_with(cls, settings: FlatSettings) -> bool:
        return settings.fidelity == "clean"

    def forward(self, text: Encoded) -> Tensor:
        logits: Tensor
        if self.fidelity == "upstream":  # a dropped logit is 0, one half: the training loss cannot fall far
            logits = self.dropout(self.classifier(text.vector))
        else:
            logits = self.classifier(self.features(text))
        return logits

    def features(self, text: Encoded) -> Tensor:
        dropped: Tensor = self.dropout(text.vector)
        return dropped
