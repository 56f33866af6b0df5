"""What a text encoder is: a batch of token numbers in, a vector for each document and one for each token out."""

from collections.abc import Iterator
from typing import Literal, NamedTuple, Self

import torch
from torch import Tensor, nn

from hitin.batches import Batch

Sight = Literal["document", "tokens", "embedding"]
"""What a method sees of a text: the document's vector; the tokens' vectors as well; or the embedding layer, too."""


class Encoded(NamedTuple):
    """What an encoder makes of a batch."""

    vector: Tensor
    """(B, d): a document each."""
    tokens: Tensor
    """(B, L, d'): a token each; what stands at padding means nothing."""
    mask: Tensor
    """(B, L): true where a token is."""


class Widths(NamedTuple):
    """How wide the vectors of an encoder are."""

    document: int
    token: int
    word: int
    """That of a token before anything is read."""

    @classmethod
    def of(cls, width: int) -> Self:
        """All alike, as in a transformer."""
        return cls(width, width, width)


class TextEncoder(nn.Module):
    """Base of the encoders."""

    widths: Widths
    repeats: bool = False
    """Whether it computes the same for every batch of a shape, without a look at the numbers on the way."""

    @property
    def width(self) -> int:
        """Of a document's vector."""
        return self.widths.document

    def forward(self, ids: Tensor, lengths: Tensor, words: Tensor | None = None) -> Encoded:
        """`ids` (B, L) are token numbers, padded; `lengths` (B,) says how many count, and may stay on the CPU.

        `words` (B, L, e) are read in place of the tokens' own vectors (`words_of`), by encoders that have such. There
        may be more of them than of tokens, and `lengths` then counts words.
        """
        raise NotImplementedError

    def words_of(self, ids: Tensor) -> Tensor:
        """(B, L, e): the vectors of tokens by themselves, before anything is read."""
        raise NotImplementedError

    def embedded(self, ids: Tensor) -> Tensor:
        """(B, L, e): the same as the layers above see them, with their places."""
        raise NotImplementedError

    def check_embedding(self) -> None:
        """Refuse to show the embedding layer where there is none to see. Methods that look at it ask before."""
        raise NotImplementedError

    def leave_out_vector(self, *, keep: bool = False) -> None:
        """Make no vector of a document but what comes cheap: the method has no use for it.

        With `keep`, the weights for it stay where they are, not to be trained.
        """

    def for_export(self) -> None:
        """Compute from now on by operations that other runtimes know; the same numbers, perhaps slower."""

    def depths(self) -> Iterator[tuple[str, nn.Parameter, int]]:
        """Each parameter with its distance from the top, for learning rates that fall with depth."""
        for name, parameter in self.named_parameters():
            yield name, parameter, 0


def encoded(encoder: TextEncoder, batch: Batch) -> Encoded:
    """What an encoder makes of a batch, or made of it before, when it was frozen."""
    if batch.vectors is not None:
        return Encoded(batch.vectors, batch.vectors[:, None], batch.vectors.new_ones(len(batch), 1).bool())
    assert batch.ids is not None
    assert batch.lengths is not None
    found: Encoded = encoder(batch.ids, batch.lengths)
    return found


def token_mask(lengths: Tensor, length: int, device: torch.device) -> Tensor:
    """(B, L): true where a token is."""
    return torch.arange(length, device=device) < lengths.to(device, non_blocking=True)[:, None]


def mean_of_tokens(tokens: Tensor, mask: Tensor) -> Tensor:
    """(B, d): over the tokens that count."""
    weights = mask.to(tokens.dtype)[:, :, None]
    return (tokens * weights).sum(dim=1) / weights.sum(dim=1)
