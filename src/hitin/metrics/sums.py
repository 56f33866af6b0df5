"""What documents come to, block by block: all that scores are computed from, whichever blocks are drawn."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.metrics.bootstrap import Floats, Ids
from hitin.metrics.counts import ratio
from hitin.metrics.label_sums import LabelSums, flat_scores
from hitin.metrics.scores import at_name, level_name
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import level_slices


class Sums(LabelSums):
    """For each block of documents: labels given and right, and sums over the documents.

    Sums do not depend on how the documents were cut into chunks, to the last digit: whole numbers never do, and the
    others are added up one document after the other.
    """

    def __init__(self, taxonomy: Taxonomy, blocks: int, at: Sequence[int]) -> None:
        super().__init__(len(taxonomy), blocks)
        rows = len(self.true)
        self.taxonomy = taxonomy
        self.at = tuple(at)
        names = ("documents", "matches", "f1", "given", "consistent", "closed_right", "closed_given", "closed_true")
        self.documents: dict[str, Floats] = {name: np.zeros(rows) for name in (*names, *map(at_name, at))}

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
        light = self.light(weights)
        for level, labels in enumerate(level_slices(self.taxonomy), start=1):
            sums = self.label_sums(light, labels)
            size = labels.stop - labels.start
            found |= {level_name(level, name): values for name, values in flat_scores(sums, size).items()}
            whole += sums
        present = {"macro_f1_present": ratio(whole[3], whole[4])}  # those without documents have an F1 of zero
        return flat_scores(whole, len(self.taxonomy)) | present | found
