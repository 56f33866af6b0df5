"""What a text encoder is: a batch of token numbers in, a vector for each document and one for each token out."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn


class Encoded(NamedTuple):
    """What an encoder makes of a batch."""

    vector: Tensor
    """(B, d): a document each."""
    tokens: Tensor
    """(B, L, d'): a token each; what stands at padding means nothing."""
    mask: Tensor
    """(B, L): true where a token is."""


class TextEncoder(nn.Module):
    """Base of the encoders. `width` is d, `token_width` d' of `Encoded`."""

    width: int
    token_width: int

    def forward(self, ids: Tensor, lengths: Tensor) -> Encoded:
        """`ids` (B, L) are token numbers, padded; `lengths` (B,) says how many count, and stays on the CPU."""
        raise NotImplementedError

    def depths(self) -> Iterator[tuple[str, nn.Parameter, int]]:
        """Each parameter with its distance from the top, for learning rates that fall with depth."""
        for name, parameter in self.named_parameters():
            yield name, parameter, 0


def token_mask(lengths: Tensor, length: int, device: torch.device) -> Tensor:
    """(B, L): true where a token is."""
    return torch.arange(length, device=device) < lengths.to(device)[:, None]
