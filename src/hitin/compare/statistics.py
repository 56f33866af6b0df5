"""Whether a row is really worse than the best one: the paired bootstrap over documents, and Holm's correction."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from hitin.metrics.bootstrap import Floats, apart, blocks_of, interval, usual_blocks, weights_of
from hitin.metrics.counts import Decided
from hitin.metrics.label_sums import LabelSums
from hitin.metrics.looking import Cells

RESAMPLES = 10_000
CONFIDENCE = 0.95
SIGNIFICANT = 0.05
METRICS = ("micro_f1", "macro_f1")

Packed = NDArray[np.uint8]
"""Documents by labels, eight labels a byte (`numpy.packbits` along the labels)."""
Resampled = NDArray[np.float32]
Place = TypeVar("Place")

_CELLS = 1 << 24  # of a table, unpacked at once


@dataclass(frozen=True)
class Comparison:
    """By how much a row scores more than the best one (so the difference is seldom above 0), and how sure that is."""

    difference: float
    low: float
    high: float
    p: float
    corrected: float = float("nan")
    """By Holm, over all comparisons of a table."""

    @property
    def is_clear(self) -> bool:
        """Whether documents drawn anew would hardly turn the order round."""
        return self.corrected < SIGNIFICANT


def unpacked(given: Packed, truth: Packed, labels: int) -> Iterator[tuple[int, Decided, Decided]]:
    """Decisions and truth of some documents at a time, with the number of the first of them."""
    step = max(1, _CELLS // max(labels, 1))
    for start in range(0, len(truth), step):
        decided, true = (
            np.unpackbits(table[start : start + step], axis=1, count=labels).view(np.bool_) for table in (given, truth)
        )
        yield start, decided, true


class Resamples:
    """The test documents of a data set, drawn anew many times: the same resamples for every row."""

    def __init__(self, truth: Packed, labels: int, *, resamples: int = RESAMPLES, seed: int = 0) -> None:
        self.truth, self.labels, self.count, self.seed = truth, labels, resamples, seed
        self._blocks = min(usual_blocks(labels), max(len(truth), 1))
        self._weights: list[NDArray[np.float32]] = []

    def f1(self, given: Packed) -> tuple[Floats, Resampled]:
        """Micro- and macro-F1 of decisions on the documents, and in each resample: (2,) and (2, resamples)."""
        sums = self._sums(given)
        micro, macro = sums.f1(np.ones((1, self._blocks)))
        parts = [np.stack(sums.f1(weights)) for weights in self._drawn()]
        return np.array([micro[0], macro[0]]), np.concatenate(parts, axis=1).astype(np.float32)

    def _drawn(self) -> Sequence[NDArray[np.float32]]:
        if not self._weights:
            drawn = weights_of(self._blocks, self.count, self.seed)
            self._weights = [weights.astype(np.float32) for weights in drawn]
        return self._weights

    def _sums(self, given: Packed) -> LabelSums:
        sums = LabelSums(self.labels, self._blocks)
        for start, decided, true in unpacked(given, self.truth, self.labels):
            blocks = blocks_of(start, len(true), self._blocks, self.seed)
            cells = Cells.of(decided)
            sums.add_labels(blocks, cells.among(true), cells, Cells.of(true))
        return sums


def compared(row: Sequence[Resampled], best: Sequence[Resampled], scores: tuple[float, float]) -> Comparison:
    """A row with the best one by some score, from that score in each resample with each seed: their mean counts.

    `scores` are those of both on the documents. p is two-sided: how often a difference as large comes about by the
    choice of documents alone, were there none.
    """
    drawn = apart(_mean(row), _mean(best), scores)
    opposite = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    p = min(1.0, 2 * (1 + opposite) / (len(drawn) + 1))
    difference = scores[0] - scores[1]
    return Comparison(difference, *interval(drawn, CONFIDENCE, difference), p)


def _mean(seeds: Sequence[Resampled]) -> Floats:
    return np.asarray(np.mean(np.asarray(seeds, dtype=np.float64), axis=0))


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values, corrected for their number: the smallest times it, the next times one less, never falling."""
    values = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(values, kind="stable")
    steps = np.minimum(values[order] * np.arange(len(values), 0, -1), 1)
    corrected = np.empty_like(values)
    corrected[order] = np.maximum.accumulate(steps)
    return [float(value) for value in corrected]


def corrected(found: Mapping[Place, Comparison]) -> dict[Place, Comparison]:
    """All comparisons of a table, by their places in it, with corrected p-values."""
    values = holm([comparison.p for comparison in found.values()])
    return {
        place: replace(comparison, corrected=value)
        for (place, comparison), value in zip(found.items(), values, strict=True)
    }
