"""How sure one can be of a score: the same computed on documents drawn anew, many times (the bootstrap)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hitin.errors import InputError, shown

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

_MOST_BLOCKS = 2_000
_LEAST_BLOCKS = 200
_CELLS = 20_000_000  # blocks by labels
_DRAWN = 1 << 23  # draws made at once


def usual_blocks(labels: int) -> int:
    """How many blocks documents are put into: as many as are of use, fewer where there are very many labels."""
    return min(_MOST_BLOCKS, max(_LEAST_BLOCKS, _CELLS // max(labels, 1)))


def blocks_of(first: int, count: int, blocks: int, seed: int) -> Ids:
    """The block of each of `count` documents, the first of which is number `first` (from 0).

    The first documents are blocks of their own, so with no more documents than blocks, drawing blocks is drawing
    documents: the ordinary bootstrap. Each later one is put into some block, by its number and the seed alone: the
    size of chunks is no matter, and two tallies of the same documents have the same blocks.
    """
    numbers = np.arange(first, first + count, dtype=np.int64)
    if blocks < 2:
        return np.zeros(count, dtype=np.int64)
    drawn = (_mixed(numbers.astype(np.uint64), seed) % np.uint64(blocks)).astype(np.int64)
    return np.where(numbers < blocks, numbers, drawn)


def weights_of(blocks: int, resamples: int, seed: int) -> Iterator[Floats]:
    """(some, blocks): how often each block was drawn, some resamples at a time; `resamples` rows in all."""
    chance = np.random.default_rng([seed % 2**64, 1])
    at_once = max(1, _DRAWN // blocks)
    for start in range(0, resamples, at_once):
        rows = min(at_once, resamples - start)
        drawn = chance.integers(0, blocks, (rows, blocks)) + blocks * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * blocks).reshape(rows, blocks).astype(np.float64)


def interval(resampled: Floats, confidence: float, score: float) -> tuple[float, float]:
    """Between which values the middle share of the resampled scores lies, and the score itself: on few documents,
    most resamples may lie to one side of it."""
    low, high = np.quantile(resampled, ((1 - confidence) / 2, (1 + confidence) / 2))
    return min(float(low), score), max(float(high), score)


def centred(resampled: Floats, estimate: float) -> Floats:
    """Resampled macro-F1, moved so that its mean is what the documents score.

    A label of few documents is in none of some resamples, and is then a zero in the mean over labels. So macro-F1 is
    lower in resamples than in the documents, and the interval would lie below the score that it belongs to.
    """
    return np.asarray(np.clip(resampled + (estimate - resampled.mean()), 0, 1))


def apart(one: Floats, other: Floats, scores: tuple[float, float]) -> Floats:
    """By how much one scores more than the other in each resample, where the documents give them these `scores`.

    What resamples take from macro-F1 is made up for by a factor that both share. So a resample on which both decide
    alike stays one without a difference, which it would not if each were centred by itself.
    """
    lower = float(one.mean() + other.mean())
    factor = sum(scores) / lower if lower > 0 else 1.0
    return np.asarray((one - other) * factor)


def check_bootstrap(resamples: int, confidence: float) -> None:
    if resamples < 0 or not 0 < confidence < 1:
        raise InputError(
            f"{shown(resamples)} resamples with a confidence of {shown(confidence)} make no interval",
            kind="bad-option",
            remedy="Resamples are 0 (no intervals) or more, say 1,000; the confidence is between 0 and 1, say 0.95.",
        )


def _mixed(numbers: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """Numbers as good as random, each from its own number and the seed: the finaliser of SplitMix64."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(seed * 0xD1342543DE82EF95 % 2**64)
    mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ mixed >> np.uint64(31))
