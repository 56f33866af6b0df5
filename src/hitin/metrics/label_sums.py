"""Labels given, right and true in each block of documents: all that micro- and macro-F1 are computed from."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.metrics.bootstrap import Floats, Ids
from hitin.metrics.counts import Counts, ratio
from hitin.metrics.looking import Cells

AnyFloats = NDArray[np.floating[Any]]

_AT_ONCE = 1 << 20  # resamples by labels that are scored at once
_EXACT = 2**24  # whole numbers below are exact in 32 bits of floating point


class LabelSums:
    """For each block of documents and each label: how many were given it rightly, were given it, have it."""

    def __init__(self, labels: int, blocks: int) -> None:
        whole = np.int32 if blocks else np.int64  # a block never has 2**31 documents, all of them may
        self.right, self.given, self.true = (np.zeros((max(blocks, 1), labels), dtype=whole) for _ in range(3))

    def counts(self) -> Counts:
        """Of all blocks together."""
        return Counts(*(table.sum(axis=0, dtype=np.int64) for table in (self.right, self.given, self.true)))

    def add_labels(self, blocks: Ids, right: Cells, given: Cells, true: Cells) -> None:
        """Count the cells of some documents, whose blocks are these."""
        for table, cells in ((self.right, right), (self.given, given), (self.true, true)):
            places = blocks[cells.documents] * table.shape[1] + cells.labels
            np.add.at(table.reshape(-1), places, np.ones(len(places), dtype=table.dtype))

    def f1(self, weights: AnyFloats) -> tuple[Floats, Floats]:
        """Micro- and macro-F1 of all labels, one for each row of weights: how often each block counts."""
        labels = self.true.shape[1]
        found = flat_scores(self.label_sums(self.light(weights), slice(0, labels)), labels)
        return found["micro_f1"], found["macro_f1"]

    def label_sums(self, weights: AnyFloats, labels: slice) -> Floats:
        """(5, rows of weights), summed over labels: right, given, true, F1, whether any document has it."""
        resamples, used = weights.shape
        found = np.zeros((5, resamples))
        step = max(1, _AT_ONCE // resamples)
        for start in range(labels.start, labels.stop, step):
            some = slice(start, min(start + step, labels.stop))
            tables = [table[:used, some].astype(weights.dtype) for table in (self.right, self.given, self.true)]
            summed = (weights @ np.concatenate(tables, axis=1)).astype(np.float64)  # in one go: weights are large
            right, given, true = np.split(summed, 3, axis=1)
            f1 = ratio(2 * right, given + true)
            found += [values.sum(axis=1) for values in (right, given, true, f1, true > 0)]
        return found

    def light(self, weights: AnyFloats) -> AnyFloats:
        """The weights in the smallest type in which sums over the blocks are exact."""
        most = max(int(table.max()) for table in (self.given, self.true))
        light = most * weights[0].sum(dtype=np.float64) < _EXACT
        return weights.astype(np.float32 if light else np.float64, copy=False)


def flat_scores(sums: Floats, labels: int) -> dict[str, Floats]:
    """The scores that `LabelSums.label_sums` of so many labels tell."""
    right, given, true, f1 = sums[:4]
    return {
        "micro_f1": ratio(2 * right, given + true),
        "macro_f1": f1 / labels,
        "precision": ratio(right, given),
        "recall": ratio(right, true),
    }
