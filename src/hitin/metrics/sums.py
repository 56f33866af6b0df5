"""What documents come to, block by block: all that scores are computed from, whichever blocks are drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.metrics.bootstrap import Floats, Ids
from hitin.metrics.counts import Counts, ratio
from hitin.metrics.looking import Cells
from hitin.metrics.scores import at_name, level_name
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import level_slices

AnyFloats = NDArray[np.floating[Any]]

_AT_ONCE = 1 << 20  # resamples by labels that are scored at once
_EXACT = 2**24  # whole numbers below are exact in 32 bits of floating point


class Sums:
    """For each block of documents: labels given and right, and sums over the documents.

    Sums do not depend on how the documents were cut into chunks, to the last digit: whole numbers never do, and the
    others are added up one document after the other.
    """

    def __init__(self, taxonomy: Taxonomy, blocks: int, at: Sequence[int]) -> None:
        rows = max(blocks, 1)
        whole = np.int32 if blocks else np.int64  # a block never has 2**31 documents, all of them may
        self.taxonomy = taxonomy
        self.right, self.given, self.true = (np.zeros((rows, len(taxonomy)), dtype=whole) for _ in range(3))
        self.at = tuple(at)
        names = ("documents", "matches", "f1", "given", "consistent", "closed_right", "closed_given", "closed_true")
        self.documents: dict[str, Floats] = {name: np.zeros(rows) for name in (*names, *map(at_name, at))}

    def counts(self) -> Counts:
        """Of all blocks together."""
        return Counts(*(table.sum(axis=0, dtype=np.int64) for table in (self.right, self.given, self.true)))

    def add_labels(self, blocks: Ids, right: Cells, given: Cells, true: Cells) -> None:
        """Count the cells of some documents, whose blocks are these."""
        for table, cells in ((self.right, right), (self.given, given), (self.true, true)):
            places = blocks[cells.documents] * table.shape[1] + cells.labels
            np.add.at(table.reshape(-1), places, np.ones(len(places), dtype=table.dtype))

    def add(self, blocks: Ids, **values: NDArray[Any]) -> None:
        """Add values of some documents to the sums of their blocks, in order."""
        for name, column in values.items():
            np.add.at(self.documents[name], blocks, column.astype(np.float64))

    def scores(self, weights: Floats, *, ranked: bool) -> dict[str, Floats]:
        """The scores by name, one for each row of weights: how often each block counts."""
        return self._label_scores(weights) | self._document_scores(weights, self.at if ranked else ())

    def _document_scores(self, weights: Floats, at: Sequence[int]) -> dict[str, Floats]:
        used = weights.shape[1]
        sums = {name: weights @ values[:used] for name, values in self.documents.items()}
        documents = sums["documents"]
        right, given, true = (sums[f"closed_{name}"] for name in ("right", "given", "true"))
        found = {
            "samples_f1": ratio(sums["f1"], documents),
            "exact_match": ratio(sums["matches"], documents),
            "hierarchical_precision": ratio(right, given),
            "hierarchical_recall": ratio(right, true),
            "hierarchical_f1": ratio(2 * right, given + true),
            "path_consistency": ratio(sums["consistent"], documents),
            "labels_given": ratio(sums["given"], documents),
        }
        for count in at:
            found[at_name(count)] = ratio(sums[at_name(count)], documents * min(count, len(self.taxonomy)))
        return found

    def _label_scores(self, weights: Floats) -> dict[str, Floats]:
        found: dict[str, Floats] = {}
        whole = np.zeros((5, len(weights)))
        light = self._light(weights)
        for level, labels in enumerate(level_slices(self.taxonomy), start=1):
            sums = self._label_sums(light, labels)
            size = labels.stop - labels.start
            found |= {level_name(level, name): values for name, values in _flat(sums, size).items()}
            whole += sums
        present = {"macro_f1_present": ratio(whole[3], whole[4])}  # those without documents have an F1 of zero
        return _flat(whole, len(self.taxonomy)) | present | found

    def _label_sums(self, weights: AnyFloats, labels: slice) -> Floats:
        """(5, rows of weights), summed over labels: right, given, true, F1, whether any document has it."""
        resamples, used = weights.shape
        found = np.zeros((5, resamples))
        step = max(1, _AT_ONCE // resamples)
        for start in range(labels.start, labels.stop, step):
            some = slice(start, min(start + step, labels.stop))
            tables = (table[:used, some].astype(weights.dtype) for table in (self.right, self.given, self.true))
            right, given, true = ((weights @ table).astype(np.float64) for table in tables)
            f1 = ratio(2 * right, given + true)
            found += [values.sum(axis=1) for values in (right, given, true, f1, true > 0)]
        return found

    def _light(self, weights: Floats) -> AnyFloats:
        """The weights in the smallest type in which sums over the blocks are exact."""
        most = max(int(table.max()) for table in (self.given, self.true))
        return weights.astype(np.float32 if most * weights[0].sum() < _EXACT else np.float64)


def _flat(sums: Floats, labels: int) -> dict[str, Floats]:
    right, given, true, f1 = sums[:4]
    return {
        "micro_f1": ratio(2 * right, given + true),
        "macro_f1": f1 / labels,
        "precision": ratio(right, given),
        "recall": ratio(right, true),
    }
