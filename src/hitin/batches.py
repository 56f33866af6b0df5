"""Documents as arrays of numbers, and the batches they are trained and scored in."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hitin.tokens import Ragged

Rows = NDArray[np.int64]
_POOL = 50  # batches whose documents are sorted by length together: enough for little padding, few for much chance


@dataclass(frozen=True)
class Examples:
    """The tokens of documents and the numbers of their labels, ancestors included."""

    tokens: Ragged
    labels: Ragged
    label_count: int
    vectors: Tensor | None = None
    """Of a frozen encoder, one for each document."""

    def __len__(self) -> int:
        return len(self.tokens)

    def with_vectors(self, vectors: Tensor) -> "Examples":
        return replace(self, vectors=vectors)

    def label_counts(self) -> NDArray[np.int64]:
        """How many documents have each label."""
        return np.bincount(self.labels.values, minlength=self.label_count)

    def fingerprint(self) -> str:
        """Equal for equal documents."""
        digest = blake2b(digest_size=16)
        for ragged in (self.tokens, self.labels):
            digest.update(ragged.starts.data)
            digest.update(ragged.values.data)
        return digest.hexdigest()

    def batch(self, rows: Rows) -> "Batch":
        targets = torch.from_numpy(self.labels.indicators(rows, self.label_count))
        if self.vectors is not None:
            return Batch(None, None, targets, self.vectors[torch.from_numpy(rows)])
        ids = torch.from_numpy(self.tokens.padded(rows))
        return Batch(ids, torch.from_numpy(self.tokens.lengths[rows]), targets, None)


@dataclass(frozen=True)
class Batch:
    """Some documents: token numbers and lengths, or the vectors of a frozen encoder; and the labels."""

    ids: Tensor | None
    """(B, L)"""
    lengths: Tensor | None
    """(B,), always on the CPU."""
    targets: Tensor
    """(B, |Y|)"""
    vectors: Tensor | None
    """(B, d)"""

    def __len__(self) -> int:
        return len(self.targets)

    def to(self, device: torch.device) -> "Batch":
        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device, non_blocking=True)

        return Batch(moved(self.ids), self.lengths, self.targets.to(device, non_blocking=True), moved(self.vectors))


def shuffled(lengths: Rows, batch_size: int, seed: int, epoch: int) -> list[Rows]:
    """The batches of an epoch: documents in random order, those of a batch about equally long."""
    chance = np.random.default_rng((seed, epoch))
    order = chance.permutation(len(lengths))
    pools = [
        pool[np.argsort(lengths[pool], kind="stable")] for pool in np.array_split(order, _cuts(len(order), batch_size))
    ]
    batches = [batch for pool in pools for batch in np.split(pool, np.arange(batch_size, len(pool), batch_size))]
    return [batches[number] for number in chance.permutation(len(batches))]


def _cuts(documents: int, batch_size: int) -> Rows:
    size = _POOL * batch_size
    return np.arange(size, documents, size)


def by_length(lengths: Rows, batch_size: int) -> Iterator[Rows]:
    """All documents in batches, the longest first, so that too little memory is noticed at once."""
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
