"""The ways from scores to labels. Odds are log-odds, tables of documents by labels."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hitin.decisions.closure import best_closed
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import downwards, with_ancestors, without_orphans

Policy = Literal["raw", "consistent", "top-down", "single-path", "top-k"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
WITH_THRESHOLDS: tuple[Policy, ...] = ("raw", "consistent", "top-down")
AS_SHOWN: tuple[Policy, ...] = ("raw", "top-down")
"""Those that compare probabilities as people see them; the others weigh labels by what the model says of each."""
Odds = NDArray[np.floating[Any]]
Given = NDArray[np.bool_]

_LARGEST = 1e6  # of a gain: thresholds of 0 and 1 have no finite log-odds
_CELLS = 1 << 20  # of sums over paths at once


def raw(scores: Odds, at: Odds, taxonomy: Taxonomy, k: int) -> Given:  # noqa: ARG001
    """Every label above its threshold, whatever is above it."""
    return np.asarray(scores > at)


def consistent(scores: Odds, at: Odds, taxonomy: Taxonomy, k: int) -> Given:  # noqa: ARG001
    """Of all sets of labels that hold the ancestors of each, the likeliest."""
    gains = np.subtract(scores, at, dtype=np.float64)
    return best_closed(np.clip(gains, -_LARGEST, _LARGEST, out=gains), taxonomy)


def top_down(scores: Odds, at: Odds, taxonomy: Taxonomy, k: int) -> Given:  # noqa: ARG001
    """From the top, every label above its threshold whose parents are all given."""
    return without_orphans(scores > at, taxonomy)


def single_path(scores: Odds, at: Odds, taxonomy: Taxonomy, k: int) -> Given:  # noqa: ARG001
    """One lowest label with its ancestors: those with the highest sum of scores."""
    given = np.zeros(scores.shape, dtype=np.bool_)
    rows = max(1, _CELLS // len(taxonomy))
    for first in range(0, len(scores), rows):
        sums = _path_sums(scores[first : first + rows], taxonomy)
        given[np.arange(first, first + len(sums)), taxonomy.leaves[sums.argmax(axis=1)]] = True
    return with_ancestors(given, taxonomy)


def _path_sums(scores: Odds, taxonomy: Taxonomy) -> NDArray[np.float64]:
    """(documents, lowest labels): the sum of the scores of each and all its ancestors, from the top."""
    if not taxonomy.is_tree:
        closures, starts = _paths(taxonomy)
        return np.asarray(np.add.reduceat(scores[:, closures], starts[:-1], axis=1, dtype=np.float64))
    sums = scores.T.astype(np.float64, order="C")
    for step in downwards(taxonomy):
        sums[step.children] += sums[step.parents]
    return np.asarray(sums[taxonomy.leaves].T)


def top_k(scores: Odds, at: Odds, taxonomy: Taxonomy, k: int) -> Given:  # noqa: ARG001
    """The labels with the highest scores, k of them, and their ancestors."""
    given = np.zeros(scores.shape, dtype=np.bool_)
    best = best_labels(scores, k)
    np.put_along_axis(given, best, True, axis=1)
    return with_ancestors(given, taxonomy)


def best_labels(scores: Odds, count: int) -> NDArray[np.int64]:
    """(documents, count): the labels with the highest scores, best first; of equals that with the lower number."""
    if 8 * count >= scores.shape[1]:
        return np.argsort(-scores, axis=1, kind="stable")[:, :count]
    least = -np.partition(-scores, count - 1, axis=1)[:, [count - 1]]
    found = np.empty((len(scores), count), dtype=np.int64)
    for row, (values, at) in enumerate(zip(scores, least[:, 0], strict=True)):
        some = np.flatnonzero(values >= at)  # more than wanted where some are equal
        found[row] = some[np.argsort(-values[some], kind="stable")[:count]]
    return found


WAYS: dict[Policy, Callable[[Odds, Odds, Taxonomy, int], Given]] = {
    "raw": raw,
    "consistent": consistent,
    "top-down": top_down,
    "single-path": single_path,
    "top-k": top_k,
}


@lru_cache(maxsize=4)
def _paths(taxonomy: Taxonomy) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of each of the lowest labels with its ancestors one after another, and where each begins."""
    closures = [taxonomy.closure((label,)) for label in taxonomy.leaves.tolist()]
    starts = np.cumsum([0, *map(len, closures)])
    return np.array([label for closure in closures for label in closure]), starts
