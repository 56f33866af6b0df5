"""At which thresholds a label is given: the same for every point of a grid, found at once.

A label that a policy gives at one threshold it also gives at every lower one, all thresholds moving together. So each
cell of a table of documents by labels needs one number: at how many points of the grid, from the lowest, it is given.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.decisions.closure import best_closed
from hitin.decisions.policies import Policy
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import Step, among, downwards, highest_below, hopeful_columns, lowest_above, upwards

Bins = NDArray[np.int16]
Grid = NDArray[np.float64]

_CHUNK = 1 << 18  # cells at once, which stay in the processor's cache
_FEWEST_ROWS = 32  # at once, so that labels that no document could be given are left out for many together
_DAG_POINTS = 31  # of a grid where each takes a minimum cut


def grid_size(taxonomy: Taxonomy, policy: Policy, most: int = 255) -> int:
    """How many points a grid may have, always 2^r - 1: `most`, or fewer where they are dear."""
    if policy == "consistent" and not taxonomy.is_tree:
        return min(most, _DAG_POINTS)
    return most if len(taxonomy) <= 10_000 else min(most, 63)


def points_given(
    policy: Policy, gains: NDArray[np.floating[Any]], taxonomy: Taxonomy, grid: Grid, *, closed: bool = False
) -> Bins:
    """For each cell the number of grid points, which rise, at which the label is given.

    `gains` are log-odds less those of the thresholds, to which the points of the grid are added. `closed` adds the
    ancestors to what `raw` gives.
    """
    if policy == "consistent":
        return (_tree_points if taxonomy.is_tree else _dag_points)(gains, taxonomy, grid)
    if policy == "top-down":
        gains = lowest_above(gains, taxonomy)
    elif closed:
        gains = highest_below(gains, taxonomy)
    return _points_below(gains, grid)


def _points_below(values: NDArray[np.floating[Any]], grid: Grid) -> Bins:
    found = np.zeros(values.shape, dtype=np.int16)
    some = values > grid[0]  # few, where labels are many
    found[some] = np.searchsorted(grid, values[some], side="left")
    return found


def _dag_points(gains: NDArray[np.floating[Any]], taxonomy: Taxonomy, grid: Grid) -> Bins:
    found = np.zeros(gains.shape, dtype=np.int16)
    for point in grid:
        found += best_closed(gains - point, taxonomy)
    return found


def _tree_points(gains: NDArray[np.floating[Any]], taxonomy: Taxonomy, grid: Grid) -> Bins:
    """By halves: whatever is given at the middle of an interval is decided above it without regard to the rest, and
    the rest below it with what was given as granted. So a label and its parent are only looked at together while they
    share an interval."""
    rounds = len(grid).bit_length()
    if len(grid) != (1 << rounds) - 1:
        raise ValueError(f"a grid has 2^r - 1 points, not {len(grid)}")
    up, down = upwards(taxonomy), downwards(taxonomy)
    found = np.zeros(gains.shape, dtype=np.int16)
    rows = max(_FEWEST_ROWS, _CHUNK // len(taxonomy))
    for start in range(0, len(gains), rows):
        some = gains[start : start + rows]
        labels = hopeful_columns(some > grid[0], taxonomy)  # others are worth nothing at any point, nor what is below
        steps = (among(each, labels, len(taxonomy)) for each in (up, down))
        part = some[:, labels].T.astype(np.float64, order="C")
        found[start : start + rows, labels] = _by_halves(part, grid, rounds, *steps).T
    return found


def _by_halves(gains: Grid, grid: Grid, rounds: int, up: tuple[Step, ...], down: tuple[Step, ...]) -> Bins:
    """(|Y|, documents), of gains in the same form."""
    low = np.zeros(gains.shape, dtype=np.int16)
    for bit in reversed(range(rounds)):
        total = gains - grid[low + np.int16((1 << bit) - 1)]
        for step in up:
            together = low[step.parents] == low[step.children]
            total[step.ends] += step.gather(np.add, np.maximum(total[step.children], 0) * together)
        inside = total > 0
        for step in down:  # of a tree: one parent each
            apart = low[step.parents] != low[step.children]
            inside[step.children] &= inside[step.parents] | apart
        low += inside.astype(np.int16) << bit
    return low
