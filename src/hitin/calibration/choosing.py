"""Fitting a calibration to validation documents, and choosing the kind that does best on others."""

from typing import get_args

import numpy as np
from numpy.typing import NDArray

from hitin.calibration.calibration import Calibration, Kind
from hitin.calibration.fitting import Histogram, curve, edges, histogram, temperature
from hitin.calibration.tables import Table, Truth, check_shape, chunks
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import level_slices

_FOLDS = 5
_NEAREST = float(np.finfo(np.float32).eps)  # a probability nearer to 0 counts as this in a loss, which stays finite

_COHERENT: tuple[Kind, ...] = ("temperature", "isotonic")  # kinds with which no label is more probable than a parent

Rows = NDArray[np.int64]


def fit_calibration(kind: Kind, logits: Table, truth: Truth, taxonomy: Taxonomy) -> Calibration:
    """The calibration of a kind that suits these documents."""
    _check(logits, truth, taxonomy)
    everything = np.arange(len(logits))
    return _fitted(
        kind, [] if kind == "none" else [parts[0] for parts in _histograms(logits, truth, [everything], taxonomy)]
    )


def choose_calibration(
    logits: Table, truth: Truth, taxonomy: Taxonomy, seed: int = 0
) -> tuple[Calibration, dict[Kind, float]]:
    """The kind that does best on documents it was not fitted on, fitted on all; and the log loss of each kind there.

    Each fifth of the documents is left out in turn. It is never `none`, with which a label may be more probable than
    its parents: where there is nothing to change, a temperature is near 1. Fewer than two documents tell nothing; then
    it is 1, and there are no losses.
    """
    _check(logits, truth, taxonomy)
    if len(logits) < 2:
        return Calibration("temperature", (1.0,) * taxonomy.depth), {}
    fold = np.random.default_rng(seed).permutation(len(logits)) % _FOLDS
    folds = [np.flatnonzero(fold == number) for number in range(_FOLDS)]
    by_level = _histograms(logits, truth, folds, taxonomy)
    losses: dict[Kind, float] = dict.fromkeys(get_args(Kind), 0.0)
    for number, held_out in enumerate(folds):
        others = [Histogram.sum(parts[:number] + parts[number + 1 :]) for parts in by_level]
        for kind in losses:
            losses[kind] += _loss(_fitted(kind, others), logits, truth, held_out, taxonomy) / logits.size
    best = min(_COHERENT, key=lambda kind: losses[kind])  # of equally good ones the simplest
    return _fitted(best, [Histogram.sum(parts) for parts in by_level]), losses


def _fitted(kind: Kind, by_level: list[Histogram]) -> Calibration:
    if kind == "none":
        return Calibration()
    return Calibration(
        kind, tuple(map(temperature, by_level)), tuple(map(curve, by_level)) if kind == "isotonic" else ()
    )


def _histograms(logits: Table, truth: Truth, parts: list[Rows], taxonomy: Taxonomy) -> list[list[Histogram]]:
    """For each level, the histograms of some parts of the documents, in the same bins."""
    found = []
    for columns in level_slices(taxonomy):
        starts = edges(logits[:, columns], truth[:, columns])
        found.append([histogram(logits[:, columns], truth[:, columns], starts, rows) for rows in parts])
    return found


def _loss(calibration: Calibration, logits: Table, truth: Truth, rows: Rows, taxonomy: Taxonomy) -> float:
    """The log loss of all cells of some documents together."""
    total = 0.0
    for part in chunks(len(rows), logits.shape[1]):
        likely = calibration.probabilities(logits[rows[part]], taxonomy)
        of_truth = np.where(truth[rows[part]], likely, 1 - likely)
        total -= float(np.log(np.maximum(of_truth, _NEAREST)).sum(dtype=np.float64))
    return total


def _check(logits: Table, truth: Truth, taxonomy: Taxonomy) -> None:
    check_shape(logits, taxonomy)
    if truth.shape != logits.shape:
        raise ValueError(f"logits have the shape {logits.shape}, true labels {truth.shape}")
