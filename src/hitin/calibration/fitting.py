"""What suits the logits of one level best: a temperature, or any curve that rises."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hitin.calibration.calibration import Knots
from hitin.calibration.tables import Table, Truth, chunks

_SAMPLE = 1 << 20  # logits among which quantiles are looked for
_QUANTILES = 2048  # of all logits, and of those of true labels; up to so many values, each has a bin of its own
_TEMPERATURES = (0.2, 20.0)
_FEWEST_POSITIVES = 10  # for a curve
_LEAST_SLOPE = 1e-3  # of a curve: what rises less would come out as the same number


@dataclass(frozen=True, eq=False)
class Histogram:
    """Logits in narrow bins: all that is needed to fit, however many the documents, and it adds up."""

    counts: NDArray[np.float64]
    positives: NDArray[np.float64]
    """How many are of labels that their document has."""
    sums: NDArray[np.float64]
    """The logits of each bin together."""
    positive_sum: float
    """The logits of all positives together."""

    @classmethod
    def sum(cls, parts: Sequence["Histogram"]) -> "Histogram":
        """Of several that have the same bins."""
        return cls(
            np.sum([part.counts for part in parts], axis=0),
            np.sum([part.positives for part in parts], axis=0),
            np.sum([part.sums for part in parts], axis=0),
            math.fsum(part.positive_sum for part in parts),
        )

    def used(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Counts, positives and sums of the bins that are not empty."""
        some = self.counts > 0
        return self.counts[some], self.positives[some], self.sums[some]


def edges(logits: Table, truth: Truth) -> Table:
    """Where bins begin: as fine among the logits of positives, which are few, as among all."""
    some, positives = logits[:: max(1, logits.size // _SAMPLE)], logits[truth]
    some_positives = positives[:: max(1, positives.size // _SAMPLE)]
    return np.unique(np.concatenate([_quantiles(some), _quantiles(some_positives)]))


def histogram(logits: Table, truth: Truth, starts: Table, rows: NDArray[np.int64]) -> Histogram:
    """Of some of the documents."""
    bins = len(starts)
    found = Histogram(np.zeros(bins), np.zeros(bins), np.zeros(bins), positive_sum=0.0)
    for part in chunks(len(rows), logits.shape[1]):
        values, positive = logits[rows[part]].ravel(), truth[rows[part]].ravel()
        place = np.maximum(np.searchsorted(starts, values, side="right") - 1, 0)  # what is below all is in the first
        more = Histogram(
            np.bincount(place, minlength=bins).astype(np.float64),
            np.bincount(place[positive], minlength=bins).astype(np.float64),
            np.bincount(place, values, bins).astype(np.float64),
            float(values[positive].sum(dtype=np.float64)),
        )
        found = Histogram.sum([found, more])
    return found


def temperature(level: Histogram) -> float:
    """The one with the lowest log loss; 1 where no label is true or all are, which tells nothing.

    As in Platt's scaling, p positives count as true to (p + 1) / (p + 2) and n others to 1 / (n + 2): documents that
    are told apart without a fault do not make the model sure of everything. With b = 1 / temperature the loss is
    sum(log(1 + exp(b x))) - b sum(x true to some share). It is convex, so bisection finds where its derivative changes
    sign.
    """
    counts, positives, sums = level.used()
    if not 0 < positives.sum() < counts.sum():
        return 1.0
    logits, true = sums / counts, positives.sum()
    negative_sum = sums.sum() - level.positive_sum
    wanted = level.positive_sum * (true + 1) / (true + 2) + negative_sum / (counts.sum() - true + 2)
    coldest, hottest = map(math.log, _TEMPERATURES)
    for _ in range(60):
        middle = (coldest + hottest) / 2
        probabilities = (1 + np.tanh(math.exp(-middle) * logits / 2)) / 2
        if sums @ probabilities > wanted:
            coldest = middle
        else:
            hottest = middle
    return math.exp((coldest + hottest) / 2)


@dataclass(frozen=True)
class Block:
    """Neighbouring bins that have one share of positives."""

    count: float
    positives: float
    total: float

    def __add__(self, other: "Block") -> "Block":
        return Block(self.count + other.count, self.positives + other.positives, self.total + other.total)

    @property
    def share(self) -> float:
        return self.positives / self.count

    @property
    def knot(self) -> tuple[float, float]:
        """The mean logit, and log-odds that are finite whatever the share."""
        return self.total / self.count, math.log((self.positives + 0.5) / (self.count - self.positives + 0.5))


def curve(level: Histogram) -> Knots:
    """Through the blocks of the isotonic regression; no knots where positives are too few."""
    if level.positives.sum() < _FEWEST_POSITIVES:
        return ()
    return tuple(block.knot for block in _pooled(isotonic(level), _hardly_rises))


def isotonic(level: Histogram) -> list[Block]:
    """The shares that rise with the logit and fit best, by pooling adjacent violators."""
    bins = [Block(*each) for each in zip(*(column.tolist() for column in level.used()), strict=True)]
    return _pooled(bins, lambda low, high: high.share <= low.share)


def _pooled(blocks: Sequence[Block], is_wrong: Callable[[Block, Block], bool]) -> list[Block]:
    """Neighbours put together until none are in the wrong order."""
    found: list[Block] = []
    for each in blocks:
        block = each
        while found and is_wrong(found[-1], block):
            block = found.pop() + block
        found.append(block)
    return found


def _hardly_rises(low: Block, high: Block) -> bool:
    (x, y), (next_x, next_y) = low.knot, high.knot
    return next_x <= x or next_y - y <= _LEAST_SLOPE * (next_x - x)


def _quantiles(values: Table) -> Table:
    values = np.unique(values)
    return values[np.linspace(0, len(values) - 1, min(len(values), _QUANTILES)).astype(np.int64)]
