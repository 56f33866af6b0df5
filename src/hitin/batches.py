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
_POOLS = 4  # at least: with one, small sets would have the same batches in every epoch
_MULTIPLE = 8  # of tokens
_LONG = 64  # tokens of a document, in the mean: from there on so much padding costs nothing


@dataclass(frozen=True)
class Judgements:
    """What a teacher thinks of documents, and how much that counts beside their labels."""

    labels: Ragged
    """Those of each document that it thinks of at all."""
    probabilities: NDArray[np.float32]
    """Of each of these, one after the other."""
    share: float

    def aims(self, rows: Rows, truth: NDArray[np.float32]) -> NDArray[np.float32]:
        """(rows, |Y|): what is to be learnt of documents, partly their labels, partly the judgement."""
        aims = (1 - self.share) * truth
        owners, labels = self.labels.pairs(rows)
        aims[owners, labels] += self.share * self.probabilities[self.labels.places_of(rows)]
        return aims


@dataclass(frozen=True)
class Examples:
    """The tokens of documents and the numbers of their labels, ancestors included."""

    tokens: Ragged
    labels: Ragged
    label_count: int
    vectors: Tensor | None = None
    """Of a frozen encoder, one for each document."""
    multiple: int = 1
    """The lengths of batches are multiples of it (`multiple_for`)."""
    in_pairs: bool = False
    """Whether batches name the labels of their documents in place of a table by all labels."""
    judgements: Judgements | None = None
    """Of a teacher, if there is one."""

    def __len__(self) -> int:
        return len(self.tokens)

    def with_vectors(self, vectors: Tensor) -> "Examples":
        return replace(self, vectors=vectors)

    def in_multiples(self, multiple: int) -> "Examples":
        return replace(self, multiple=multiple)

    def judged(self, judgements: Judgements) -> "Examples":
        return replace(self, judgements=judgements)

    def label_counts(self) -> NDArray[np.int64]:
        """How many documents have each label."""
        return np.bincount(self.labels.values, minlength=self.label_count)

    def fingerprint(self) -> str:
        """Equal for equal documents."""
        digest = blake2b(digest_size=16)
        for ragged in (self.tokens, self.labels):
            digest.update(ragged.starts.data)
            digest.update(ragged.values.data)
        if self.judgements is not None:
            thought = self.judgements.labels
            for numbers in (thought.starts, thought.values, self.judgements.probabilities):
                digest.update(numbers.data)
        return digest.hexdigest()

    def batch(self, rows: Rows) -> "Batch":
        targets, pairs, aims = None, None, None
        if self.in_pairs:
            pairs = torch.from_numpy(self.labels.pairs(rows))
        else:
            truth = self.labels.indicators(rows, self.label_count)
            targets = torch.from_numpy(truth)
            aims = torch.from_numpy(self.judgements.aims(rows, truth)) if self.judgements is not None else None
        if self.vectors is not None:
            return Batch(None, None, targets, self.vectors[torch.from_numpy(rows)], pairs, aims)
        ids = torch.from_numpy(self.tokens.padded(rows, multiple=self.multiple))
        return Batch(ids, torch.from_numpy(self.tokens.lengths[rows]), targets, None, pairs, aims)


def multiple_for(device: torch.device, lengths: NDArray[np.int64]) -> int:
    """What the lengths of batches of documents with these lengths are best multiples of, so that there are few of them.

    On a GPU, what is prepared for a length serves more batches. On a CPU, memory that was taken for one length is
    seldom of use for another: TextRCNN, with 128 documents of 40 to 256 words a batch, has taken 3.2 GB after 140
    batches of any length and takes more with each, but 1.7 GB with multiples of eight, and no more.
    """
    return _MULTIPLE if device.type == "cuda" or lengths.mean() >= _LONG else 1


@dataclass(frozen=True)
class Batch:
    """Some documents: token numbers and lengths, or the vectors of a frozen encoder; and the labels."""

    ids: Tensor | None
    """(B, L)"""
    lengths: Tensor | None
    """(B,), on the CPU, where packing wants them; in recorded steps beside the rest."""
    table: Tensor | None
    """(B, |Y|): 1 for the labels of each; none where there are `pairs`."""
    vectors: Tensor | None
    """(B, d)"""
    pairs: Tensor | None = None
    """(2, n): documents and the labels they have, both by number, where there are too many labels for a table."""
    judged: Tensor | None = None
    """(B, |Y|): what is to be learnt, where a teacher has a say in it."""

    def __len__(self) -> int:
        return next(len(each) for each in (self.table, self.ids, self.vectors) if each is not None)

    @property
    def targets(self) -> Tensor:
        """(B, |Y|): the table, for those that cannot do without."""
        if self.table is None:
            raise ValueError("the labels of this batch are in pairs")
        return self.table

    @property
    def aims(self) -> Tensor:
        """(B, |Y|): what is to be learnt of each label, from 0 to 1."""
        return self.targets if self.judged is None else self.judged

    def twice(self) -> "Batch":
        """Each document a second time, after all others."""
        return Batch(*(None if tensor is None else torch.cat([tensor, tensor]) for tensor in self._tensors()))

    def to(self, device: torch.device) -> "Batch":
        def moved(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device, non_blocking=True)

        rest = moved(self.table), moved(self.vectors), moved(self.pairs), moved(self.judged)
        return Batch(moved(self.ids), self.lengths, *rest)

    def pinned(self) -> "Batch":
        """In memory that a GPU reads by itself."""
        return Batch(*(None if tensor is None else tensor.pin_memory() for tensor in self._tensors()))

    def like(self, device: torch.device) -> "Batch":
        """One of the same shape, all of it on the device."""
        return Batch(*(None if tensor is None else tensor.to(device) for tensor in self._tensors()))

    def fill(self, other: "Batch") -> None:
        """Take the numbers of another batch of the same shape."""
        for mine, theirs in zip(self._tensors(), other._tensors(), strict=True):
            if mine is not None and theirs is not None:
                mine.copy_(theirs, non_blocking=True)

    @property
    def shape(self) -> tuple[torch.Size | None, ...]:
        return tuple(None if tensor is None else tensor.shape for tensor in self._tensors())

    def _tensors(self) -> tuple[Tensor | None, ...]:
        return self.ids, self.lengths, self.table, self.vectors, self.pairs, self.judged


class Epochs:
    """The batches of every epoch of a training, and how many there are."""

    def __init__(self, lengths: Rows, batch_size: int, tokens: int, seed: int, epochs: int) -> None:
        """`tokens` bounds a batch as `shuffled` says; 0: it does not."""
        self.lengths, self.batch_size, self.tokens, self.seed = lengths, batch_size, tokens, seed
        if tokens:
            counts = [len(self.of(epoch)) for epoch in range(epochs)]
        else:
            counts = [-(-len(lengths) // batch_size)] * epochs
        self.counts = counts

    def of(self, epoch: int) -> list[Rows]:
        """The batches of an epoch."""
        return shuffled(self.lengths, self.batch_size, self.seed, epoch, tokens=self.tokens)

    def batches_before(self, epoch: int) -> int:
        return sum(self.counts[:epoch])

    def steps_before(self, epoch: int, batches_a_step: int) -> int:
        """How many steps the epochs before it have; a last one of fewer batches counts."""
        return sum(-(-count // batches_a_step) for count in self.counts[:epoch])


def shuffled(lengths: Rows, batch_size: int, seed: int, epoch: int, *, tokens: int = 0) -> list[Rows]:
    """The batches of an epoch: documents in random order, those of a batch about equally long.

    The last two share what is left, lest a whole step is made for very few documents.
    With `tokens`, a batch of more than one document has at most so many of them, padding counted.
    """
    chance = np.random.default_rng((seed, epoch))
    order = chance.permutation(len(lengths))
    batches: list[Rows] = []
    for sizes in _pools(len(order), batch_size):
        pool, order = np.split(order, [sizes.sum()])
        rising = pool[np.argsort(lengths[pool], kind="stable")]
        cuts = _cuts(lengths[rising], batch_size, tokens) if tokens else np.cumsum(sizes)[:-1]
        batches += np.split(rising, cuts)
    return [batches[number] for number in chance.permutation(len(batches))]


def _pools(documents: int, batch_size: int) -> list[Rows]:
    """The sizes of the batches of each pool."""
    sizes = np.full(-(-documents // batch_size), batch_size)
    left = documents - sizes[:-2].sum()
    sizes[-2:] = [left - left // 2, left // 2] if len(sizes) > 1 else left
    pool = min(_POOL, max(1, len(sizes) // _POOLS))
    return np.split(sizes, np.arange(pool, len(sizes), pool))


def _cuts(rising: Rows, batch_size: int, tokens: int) -> Rows:
    """Where the batches of so many tokens begin, after the first, in documents from the shortest to the longest."""
    starts, start = [], 0
    while start < len(rising):
        some = rising[start : start + batch_size]
        padded = some * np.arange(1, len(some) + 1)  # the tokens of a batch that ends with this document
        start += max(1, int(np.searchsorted(padded, tokens, side="right")))
        starts.append(start)
    return np.array(starts[:-1], dtype=np.int64)


def by_length(lengths: Rows, batch_size: int) -> Iterator[Rows]:
    """All documents in batches, the longest first, so that too little memory is noticed at once."""
    order = np.argsort(-lengths, kind="stable")
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size]
