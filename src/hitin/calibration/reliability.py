"""How often labels that are given a probability are right."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hitin.calibration.tables import Table, Truth, check_shape, chunks
from hitin.taxonomy import Taxonomy


@dataclass(frozen=True)
class Bin:
    """The decisions whose probabilities are in one range."""

    count: int
    probability: float
    """Their mean."""
    share: float
    """How many of them are of a label that the document has."""


class Reliability:
    """Probabilities against what is true, in ranges of equal width. Documents may come in any number of chunks."""

    def __init__(self, taxonomy: Taxonomy, bins: int = 15) -> None:
        self.taxonomy = taxonomy
        self._counts, self._sums, self._positives = np.zeros((3, taxonomy.depth, bins))

    def add(self, probabilities: Table, truth: Truth) -> None:
        """Two tables, documents by labels."""
        check_shape(probabilities, self.taxonomy)
        check_shape(truth, self.taxonomy)
        depth, bins = self._counts.shape
        first = (self.taxonomy.levels.astype(np.int64) - 1) * bins
        for rows in chunks(*probabilities.shape):
            values = probabilities[rows].astype(np.float64)
            place = (np.minimum((values * bins).astype(np.int64), bins - 1) + first).ravel()
            self._counts += np.bincount(place, minlength=depth * bins).reshape(depth, bins)
            self._sums += np.bincount(place, values.ravel(), depth * bins).reshape(depth, bins)
            self._positives += np.bincount(place[truth[rows].ravel()], minlength=depth * bins).reshape(depth, bins)

    def bins(self, level: int | None = None) -> list[Bin]:
        """From the least probable; of one level, 1 at the top, or of all labels. Empty ones are left out."""
        chosen = slice(None) if level is None else slice(level - 1, level)
        columns = (table[chosen].sum(axis=0) for table in (self._counts, self._sums, self._positives))
        return [
            Bin(int(count), total / count, positives / count)
            for count, total, positives in zip(*(column.tolist() for column in columns), strict=True)
            if count
        ]

    def ece(self, level: int | None = None) -> float:
        """The expected calibration error: by how much probabilities are off on average; 0 of no documents."""
        bins = self.bins(level)
        off = sum(each.count * abs(each.probability - each.share) for each in bins)
        return off / max(sum(each.count for each in bins), 1)

    def to_json(self) -> dict[str, Any]:
        """Plain values for `json.dumps`: `all`, and `levels` from the top, each with its `bins` and `ece`."""
        by_level = [{"level": level, **self._json(level)} for level in range(1, self.taxonomy.depth + 1)]
        return {"all": self._json(None), "levels": by_level}

    def _json(self, level: int | None) -> dict[str, Any]:
        return {"ece": self.ece(level), "bins": [asdict(each) for each in self.bins(level)]}
