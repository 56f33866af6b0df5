"""HiAGM-LA: labels have vectors that pass through the structure encoder, and each looks for itself in the text."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hitin.encoders.interface import Encoded, Sight, TextEncoder, Widths
from hitin.methods.interface import Facts, Method
from hitin.methods.quadratic import AllLabelsClassifier, quadratic_warning
from hitin.methods.structure import StructureSettings, build_structure
from hitin.precision import in_full
from hitin.taxonomy import Taxonomy


@dataclass(frozen=True)
class HiAGMLASettings(StructureSettings):
    """The dropout is on the vectors of labels; in the form `upstream`, where these do nothing, on the logits."""


class LabelVectors(nn.Module):
    """G = structure(dropout(E)), the same for all documents."""

    def __init__(self, taxonomy: Taxonomy, width: int, settings: StructureSettings) -> None:
        super().__init__()
        self.table = nn.Parameter(nn.init.kaiming_uniform_(torch.empty(len(taxonomy), width)))  # E
        self.dropout = nn.Dropout(settings.dropout)
        self.structure = build_structure(settings.structure, taxonomy, width, settings.fidelity)

    def forward(self) -> Tensor:
        """(N, d)"""
        found: Tensor = self.structure(self.dropout(self.table))
        return found


def label_attention(labels: Tensor, tokens: Tensor, mask: Tensor) -> Tensor:
    """(B, N, d): for each label the tokens of each document, those most like the label the most.

    `labels` (N, d), `tokens` (B, L, d), `mask` (B, L) is true where a token counts.
    """
    scores = in_full(labels @ tokens.transpose(1, 2))  # (B, N, L)
    return scores.masked_fill(~mask[:, None], -math.inf).softmax(dim=2).to(tokens.dtype) @ tokens


class HiAGMLA(Method):
    """Labels -> labels that know one another -> what each finds in the text -> logits, each from all labels.

    The published program lets labels look at the document's vector alone. Of one there is nothing to choose: every
    label finds it, whatever the label is, so that all of the labels' part is built and never learns.
    """

    repeats = True

    def __init__(self, taxonomy: Taxonomy, widths: Widths, settings: HiAGMLASettings) -> None:
        super().__init__(taxonomy, widths, settings)
        self.looks_at_tokens = settings.fidelity == "clean"
        self.labels = LabelVectors(taxonomy, _width(widths, settings), settings)
        if not self.looks_at_tokens:
            self.labels.requires_grad_(False)  # a softmax over one is 1: there would be no gradient
        self.classifier = AllLabelsClassifier(_width(widths, settings), len(taxonomy))
        self.logit_dropout = nn.Dropout(settings.dropout if settings.fidelity == "upstream" else 0)

    @classmethod
    def sight(cls, settings: HiAGMLASettings) -> Sight:
        return "tokens" if settings.fidelity == "clean" else "document"

    @classmethod
    def adapt(cls, encoder: TextEncoder, settings: HiAGMLASettings) -> None:
        if settings.fidelity == "clean":
            encoder.leave_out_vector()

    @classmethod
    def warning(cls, taxonomy: Taxonomy, widths: Widths, settings: HiAGMLASettings) -> str | None:
        return quadratic_warning("hiagm-la", _width(widths, settings), len(taxonomy), has_width=False)

    def prepare(self, facts: Facts) -> None:
        self.labels.structure.prepare(facts)

    def forward(self, text: Encoded) -> Tensor:
        if self.looks_at_tokens:
            found = label_attention(self.labels(), text.tokens, text.mask)  # (B, N, d)
        else:
            found = text.vector[:, None].expand(-1, len(self.labels.table), -1)
        logits: Tensor = self.logit_dropout(self.classifier(found))
        return logits


def _width(widths: Widths, settings: HiAGMLASettings) -> int:
    """That of a label: as wide as what it looks at."""
    return widths.token if settings.fidelity == "clean" else widths.document
