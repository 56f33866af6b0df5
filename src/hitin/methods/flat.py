"""The flat baseline: a linear classifier on the document's vector, which knows nothing of the hierarchy."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hitin.encoders.interface import Encoded, Widths
from hitin.errors import InputError
from hitin.methods.interface import Method, prior_logits
from hitin.taxonomy import Taxonomy


@dataclass(frozen=True)
class FlatSettings:
    dropout: float = 0.2
    """On the document's vector."""

    def __post_init__(self) -> None:
        if not 0 <= self.dropout < 1:
            raise InputError("a dropout is a number from 0 to below 1", kind="bad-option")


class Flat(Method):
    """logits = W dropout(H) + b"""

    def __init__(self, taxonomy: Taxonomy, widths: Widths, settings: FlatSettings) -> None:
        super().__init__(taxonomy, widths, settings)
        self.dropout = nn.Dropout(settings.dropout)
        self.classifier = nn.Linear(widths.document, len(taxonomy))

    def start(self, label_counts: NDArray[np.int64], documents: int) -> None:
        with torch.no_grad():
            self.classifier.bias.copy_(prior_logits(label_counts, documents))

    def forward(self, text: Encoded) -> Tensor:
        logits: Tensor = self.classifier(self.dropout(text.vector))
        return logits

    def label_weights(self) -> Tensor:
        return self.classifier.weight
