"""Which sibling is given in place of which: counted sparsely, so that thousands of labels are no matter."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitin.taxonomy import Taxonomy

Ids = NDArray[np.int64]
Table = NDArray[np.bool_]

_AT_ONCE = 1 << 20  # pairs that are counted at once


class Confusion(NamedTuple):
    """So many documents missed `label` and wrongly got `instead`, both right under `parent` (`None`: the top)."""

    parent: int | None
    label: int
    instead: int
    documents: int


class SiblingConfusions:
    """Counts, for siblings a and b, the documents that have a and not b and were given b and not a.

    Labels without a parent are siblings of each other. Two labels that have several parents in common are siblings
    under each of them.
    """

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._size = len(taxonomy)
        # The parents of each label, the one above all roots having the number after the last label.
        self._parent_counts = np.maximum(taxonomy.parent_counts, 1)
        self._parents = np.concatenate([np.full(len(taxonomy.roots), self._size), taxonomy.parent_ids])
        self._starts = np.cumsum(self._parent_counts) - self._parent_counts
        self._codes = np.zeros(0, dtype=np.int64)
        self._counts = np.zeros(0, dtype=np.int64)
        self._waiting: list[tuple[Ids, Ids]] = []

    def add(self, given: Table, truth: Table) -> None:
        """Count the documents of a chunk."""
        missed, missed_keys = self._under_parents(truth & ~given)
        wrong, wrong_keys = self._under_parents(given & ~truth)
        order = np.argsort(wrong_keys, kind="stable")
        wrong, wrong_keys = wrong[order], wrong_keys[order]
        starts = np.searchsorted(wrong_keys, missed_keys, side="left")
        counts = np.searchsorted(wrong_keys, missed_keys, side="right") - starts
        for part in _slices(counts, _AT_ONCE):
            pair = _ranges(starts[part], counts[part])
            label, key = np.repeat(missed[part], counts[part]), np.repeat(missed_keys[part], counts[part])
            codes = (key % (self._size + 1) * self._size + label) * self._size + wrong[pair]
            self._waiting.append(np.unique(codes, return_counts=True))
            if sum(len(codes) for codes, _ in self._waiting) > max(_AT_ONCE, len(self._codes)):
                self._merge()

    def most(self, count: int | None = None) -> list[Confusion]:
        """The most frequent confusions, those of equal number by their labels."""
        self._merge()
        chosen = np.argsort(-self._counts, kind="stable")[:count]
        rest, instead = np.divmod(self._codes[chosen], self._size)
        parent, label = np.divmod(rest, self._size)
        columns = (parent.tolist(), label.tolist(), instead.tolist(), self._counts[chosen].tolist())
        return [Confusion(above if above < self._size else None, *rest) for above, *rest in zip(*columns, strict=True)]

    def __len__(self) -> int:
        """How many pairs were confused at least once."""
        self._merge()
        return len(self._codes)

    def _under_parents(self, table: Table) -> tuple[Ids, Ids]:
        """The labels of a table's true cells, once for each parent, and a number for the document and that parent."""
        documents, labels = np.nonzero(table)
        counts = self._parent_counts[labels]
        parents = self._parents[_ranges(self._starts[labels], counts)]
        return np.repeat(labels, counts), np.repeat(documents, counts) * (self._size + 1) + parents

    def _merge(self) -> None:
        if not self._waiting:
            return
        codes = np.concatenate([self._codes, *(codes for codes, _ in self._waiting)])
        counts = np.concatenate([self._counts, *(counts for _, counts in self._waiting)])
        self._codes, place = np.unique(codes, return_inverse=True)
        self._counts = np.zeros(len(self._codes), dtype=np.int64)
        np.add.at(self._counts, place, counts)
        self._waiting = []


def _ranges(starts: Ids, counts: Ids) -> Ids:
    """The numbers from each start, as many as its count, one run after the other."""
    ends = np.cumsum(counts)
    return np.asarray(np.arange(counts.sum()) + np.repeat(starts - (ends - counts), counts), dtype=np.int64)


def _slices(counts: Ids, most: int) -> list[slice]:
    """Cut so that the counts of each part come to about `most` or, for a single larger one, to that."""
    part = np.cumsum(counts) // most
    borders = np.flatnonzero(np.diff(part)) + 1
    return [slice(start, stop) for start, stop in zip([0, *borders], [*borders, len(counts)], strict=True)]
