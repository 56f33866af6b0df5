"""The way through a network: its text encoder reads vectors between those of a reference and those of the text."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hitin.batches import Batch
from hitin.encoders.interface import Encoded, TextEncoder
from hitin.explain.quadrature import Array
from hitin.network import CPU_TOKENS_AT_ONCE, TOKENS_AT_ONCE, Network


class NetworkWay:
    """From a text whose tokens say nothing to the text as it is.

    Nothing of the network is changed, neither its mode nor the gradients of its weights: another thread may use it.
    """

    def __init__(
        self,
        network: Network,
        ids: NDArray[np.int64],
        moves: NDArray[np.bool_],
        reference: Tensor,
        labels: Sequence[int],
    ) -> None:
        """`moves` says which tokens are on the way; the others stand there from the beginning, as they are."""
        self._network, self._labels = network, list(labels)
        self._device = next(network.parameters()).device
        self._ids = torch.from_numpy(ids)[None].to(self._device)  # (1, L)
        with torch.no_grad():
            own = network.encoder.words_of(self._ids)  # (1, L, e)
            self._steps = (own - reference) * torch.from_numpy(moves).to(self._device)[None, :, None]
            self._start = own - self._steps
        at_once = CPU_TOKENS_AT_ONCE if self._device.type == "cpu" else TOKENS_AT_ONCE
        self._rows = max(1, at_once // len(ids))

    def values(self, points: Array) -> Array:
        with torch.no_grad():
            found = [self._logits(some.expand(-1, self._ids.shape[1])) for some in self._split(points)]
        return torch.cat(found).double().cpu().numpy()

    def slopes(self, points: Array, labels: Sequence[int]) -> Array:
        return np.concatenate([self._slopes(some, labels) for some in self._split(points)], axis=1)

    def _slopes(self, points: Tensor, labels: Sequence[int]) -> Array:
        with torch.enable_grad():
            shares = points.expand(-1, self._ids.shape[1]).clone().requires_grad_()  # (P, L)
            totals = self._logits(shares).sum(dim=0)  # documents do not see each other
            found = [torch.autograd.grad(totals[label], shares, retain_graph=True)[0] for label in labels]
        return torch.stack(found).double().cpu().numpy()  # (labels, P, L)

    def _split(self, points: Array) -> Sequence[Tensor]:
        rows = torch.from_numpy(points).to(self._device, self._start.dtype)[:, None]
        return torch.split(rows, self._rows)

    def _logits(self, shares: Tensor) -> Tensor:
        """(P, labels): of texts each token of which has come so far, (P, L)."""
        words = self._start + shares[:, :, None] * self._steps  # (P, L, e)
        count, length = shares.shape
        batch = Batch(
            self._ids.expand(count, -1),
            torch.full((count,), length),
            torch.empty(count, 0, device=self._device),
            None,
        )
        _, logits = self._network.method.score(_Reading(self._network.encoder, words), batch)
        return logits[:, self._labels].float()


class _Reading(TextEncoder):
    """An encoder that reads these words, whatever it is given."""

    def __init__(self, encoder: TextEncoder, words: Tensor) -> None:
        super().__init__()
        self.widths = encoder.widths
        self._encoder, self._words = (encoder,), words  # not as a part of it: it stays in the mode that it is in

    def forward(self, ids: Tensor, lengths: Tensor, words: Tensor | None = None) -> Encoded:
        assert words is None
        found: Encoded = self._encoder[0](ids, lengths, words=self._words)
        return found
