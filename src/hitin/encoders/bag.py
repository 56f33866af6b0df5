"""A bag of words, runs of words and pieces of words: a vector each, added up. No order, no network over time.

The quickest encoder by far, and on short texts of rare words, such as diagnoses or names of products, the best: what
a word is made of tells much of it, also of one that no training document has.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from hitin.encoders.interface import Encoded, Sight, TextEncoder, Widths, token_mask
from hitin.errors import InputError


@dataclass(frozen=True)
class BagSettings:
    """What of a text counts, and how wide its vector is."""

    SIGHTS: ClassVar[tuple[Sight, ...]] = ("document",)
    runs: int = 2
    """Runs of up to so many words count as a word."""
    pieces: tuple[int, ...] = (3, 5)
    """The shortest and the longest pieces of words, in characters; empty: none."""
    vocabulary: int = 100_000
    """The most words, runs and pieces."""
    min_count: int = 2
    """So many training documents must have one."""
    max_length: int = 512
    """Words of a document; what comes after is cut off."""
    embedding: int = 256
    """The width of the vectors."""
    word_dropout: float = 0.3
    """How many words, runs and pieces of a training document are left out."""

    def __post_init__(self) -> None:
        if min(self.runs, self.vocabulary, self.min_count, self.max_length, self.embedding) < 1:
            raise InputError("the sizes of a bag are whole numbers from 1 on", kind="bad-option")
        if self.pieces and not (len(self.pieces) == 2 and 1 <= self.pieces[0] <= self.pieces[1]):
            raise InputError(
                f"pieces is {list(self.pieces)}",
                kind="bad-option",
                remedy="It is the shortest and the longest, such as [3, 5]; or empty.",
            )
        if not 0 <= self.word_dropout < 1:
            raise InputError("a dropout is a number from 0 to below 1", kind="bad-option")

    @staticmethod
    def usual() -> dict[str, object]:
        """What suits it. Wider nodes and layer norm take longer and score the same (benchmarks/results/recipe.md)."""
        return {"learning_rate": 5e-3, "batch_size": 128, "epochs": 10, "width": 300, "norm": "batch"}


class Bag(TextEncoder):
    """H = ReLU(LayerNorm(sum of w_i e_i)), the weights w of a document being of length 1."""

    def __init__(self, vocabulary: int, settings: BagSettings, weights: NDArray[np.float32] | None = None) -> None:
        """`weights` (vocabulary,) say how much each feature tells."""
        super().__init__()
        self.embedding = nn.EmbeddingBag(vocabulary, settings.embedding, mode="sum")
        nn.init.normal_(self.embedding.weight, std=0.1)
        self.norm = nn.LayerNorm(settings.embedding)
        self.word_dropout = settings.word_dropout
        self.widths = Widths.of(settings.embedding)
        self.gathers = False
        self.register_buffer("weights", torch.ones(vocabulary) if weights is None else torch.from_numpy(weights))

    def forward(self, ids: Tensor, lengths: Tensor, words: Tensor | None = None) -> Encoded:
        inside = token_mask(lengths, ids.shape[1], ids.device)  # (B, L)
        weights = self.get_buffer("weights")[ids] * inside
        if self.training and self.word_dropout:
            weights = weights * (torch.rand_like(weights) >= self.word_dropout)
        weights = functional.normalize(weights, dim=1)
        with torch.autocast(ids.device.type, enabled=False):  # sums of very many small numbers
            if words is None and not self.gathers:
                summed = self._summed(ids, weights, inside, lengths)
            else:
                summed = self._gathered(self.words_of(ids) if words is None else words, weights)
        vector = torch.relu(self.norm(summed))  # (B, d)
        return Encoded(vector, vector[:, None], inside[:, :1])  # of a document, a feature at least

    def words_of(self, ids: Tensor) -> Tensor:
        return functional.embedding(ids, self.embedding.weight)

    def for_export(self) -> None:
        self.gathers = True

    def _summed(self, ids: Tensor, weights: Tensor, inside: Tensor, lengths: Tensor) -> Tensor:
        """(B, d): the sum of the features of each document, of which no table is made."""
        starts = functional.pad(lengths.cumsum(0)[:-1], (1, 0)).to(ids.device)
        summed: Tensor = self.embedding(ids[inside], starts, per_sample_weights=weights[inside])
        return summed

    def _gathered(self, words: Tensor, weights: Tensor) -> Tensor:
        """The same by a table of all features, (B, L, d), those of padding with the weight 0."""
        return (weights[:, None] @ words)[:, 0]
