"""The best set of labels that leaves out no ancestor: exact, on trees and where labels have several parents."""

from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import among, downwards, hopeful_columns, upwards
from hitin.taxonomy.taxonomy import Ids, run_starts

Worth = NDArray[np.float64]
Chosen = NDArray[np.bool_]
Groups = list[tuple[Ids, Ids, Ids]]
"""The edges of each level, from the bottom: their owners, all others sorted by owner, and where those of each begin."""

_CHUNK = 1 << 20  # cells that are decided at once
_MANY = 4096  # labels, among which it is worth while to leave out those that no document could have
_ROUNDING = 1e-12  # what is left of a gain or a debt below this share of it is nothing


def best_closed(gains: NDArray[np.floating[Any]], taxonomy: Taxonomy) -> Chosen:
    """(documents, |Y|): for each document the labels with the highest sum of gains, none without all its parents.

    Of equally good sets it is the smallest. Where a gain is the log-odds of its label, this is the likeliest set.
    """
    if gains.ndim != 2 or gains.shape[1] != len(taxonomy):
        raise ValueError(f"gains have the shape {gains.shape}, but the taxonomy has {len(taxonomy)} labels")
    chosen = np.zeros(gains.shape, dtype=np.bool_)
    choice, everything = _choice(taxonomy), slice(None)
    rows = max(1, _CHUNK // len(taxonomy))
    for start in range(0, len(gains), rows):
        some = gains[start : start + rows]
        labels: Ids | slice = everything
        if len(taxonomy) > _MANY and taxonomy.is_tree:
            labels = hopeful_columns(some > 0, taxonomy)
        worth = some[:, labels].T.astype(np.float64, order="C")  # labels first: whole rows are added
        best = choice.best(worth) if isinstance(labels, slice) else _best_of_tree(worth, labels, taxonomy)
        chosen[start : start + rows, labels] = best.T
    return chosen


def _best_of_tree(worth: Worth, labels: Ids, taxonomy: Taxonomy) -> Chosen:
    """Among some labels of a tree, which hold their ancestors: (labels, documents), from gains in the same form."""
    for step in among(upwards(taxonomy), labels, len(taxonomy)):
        worth[step.ends] += step.gather(np.add, np.maximum(worth[step.children], 0))
    chosen = worth > 0
    for step in among(downwards(taxonomy), labels, len(taxonomy)):
        chosen[step.ends] &= chosen[step.parents]  # one each
    return chosen


class _Choice:
    """What of a taxonomy is the same for all documents.

    A label is a twig if neither it nor any label below has several parents. Twigs are folded into the label above
    them, for all documents at once; on a tree that leaves only the top. The labels that remain, the core, hold all
    their own ancestors, and there the best set is the smaller side of a minimum cut, document by document.
    """

    def __init__(self, taxonomy: Taxonomy, twig: Chosen) -> None:
        of_twig = twig[taxonomy.edges[:, 1]]
        self.twigs = _grouped(taxonomy.edges[of_twig], taxonomy.levels, by="parent")
        self.core = np.flatnonzero(~twig)
        edges = (np.cumsum(~twig) - 1)[taxonomy.edges[~of_twig]]  # in the core's own numbers, in the same order
        self.below = _grouped(edges, taxonomy.levels[self.core], by="parent")
        self.above = _grouped(edges, taxonomy.levels[self.core], by="child")
        self.parents = _parent_lists(edges, len(self.core))

    def best(self, worth: Worth) -> Chosen:
        """(|Y|, documents), from gains in the same form, which are overwritten."""
        _fold(worth, self.twigs)
        chosen = worth > 0
        if self.below:
            chosen[self.core] = self.best_of_core(worth[self.core])
        for parents, children, starts in reversed(self.twigs):
            chosen[children] &= np.repeat(chosen[parents], np.diff(starts, append=len(children)), axis=0)
        return chosen

    def best_of_core(self, gains: Worth) -> Chosen:
        """(labels of the core, documents). Only labels that could be chosen at all take part in the cut."""
        hopeful = self._hopeful(gains).T
        chosen = np.zeros(gains.shape, dtype=np.bool_)
        for document in np.flatnonzero(hopeful.any(axis=1)):
            labels = np.flatnonzero(hopeful[document])
            payments = _Payments(self.parents)
            for label, gain in zip(labels.tolist(), gains[labels, document].tolist(), strict=True):
                payments.add(label, gain)
            chosen[list(payments.chosen), document] = True
        return chosen

    def _hopeful(self, gains: Worth) -> Chosen:
        """Whether a label and its ancestors could be paid, each by all that is gained below, counted on every path."""
        most = gains.copy()
        with np.errstate(over="ignore"):  # there can be more paths than a number holds; infinitely much is hope too
            _fold(most, self.below)
        hopeful = most > 0
        for children, parents, starts in reversed(self.above):
            hopeful[children] &= np.logical_and.reduceat(hopeful[parents], starts, axis=0)
        return hopeful


class _Payments:
    """A maximum flow for one document: labels with a gain pay the debts of their ancestors, added from the top down.

    A label whose gain is more than all debts it can reach, also by taking over what others pay, is chosen with all
    it has reached. Labels added later can only add to what is chosen, so nothing of it is looked at again.
    """

    def __init__(self, parents: list[list[int]]) -> None:
        self.parents = parents
        self.chosen: set[int] = set()
        self.debts: dict[int, float] = {}
        self.paid: dict[int, dict[int, float]] = {}  # for each label, what came from or through which child

    def add(self, label: int, gain: float) -> None:
        """The next label, after all its parents."""
        self.debts[label] = max(-gain, 0.0)
        self.paid[label] = {}
        left = gain
        while left > gain * _ROUNDING:
            came_from, left, is_over = self._search(label, left, gain * _ROUNDING)
            if is_over:
                self.chosen.update(came_from)
                return

    def _search(self, start: int, left: float, nothing: float) -> tuple[dict[int, int], float, bool]:
        """Pay the nearest debts first, until all is spent, no debt is left, or a way is used up and others are open.

        Gives the labels reached, what is left, and whether that is more than all the debts there were.
        """
        came_from, queue = {start: start}, [start]
        for label in queue:
            for parent in self.parents[label]:
                if parent in came_from or parent in self.chosen:
                    continue
                came_from[parent] = label
                queue.append(parent)
                if self.debts[parent]:
                    amount, is_open = self._pay(start, parent, left, came_from)
                    left -= amount
                    if left <= nothing or not is_open:
                        return came_from, left, False
            for child in self.paid[label]:  # what it pays here the searching label can pay, and the child another
                if child not in came_from:
                    came_from[child] = label
                    queue.append(child)
        return came_from, left, True

    def _pay(self, start: int, end: int, most: float, came_from: dict[int, int]) -> tuple[float, bool]:
        """Pay a debt over the way found: how much, and whether the whole way can be used again."""
        way = [end]
        while way[-1] != start:
            way.append(came_from[way[-1]])
        steps = list(pairwise(way))
        debt = self.debts[end]
        amount = min([most, debt, *(self.paid[before][after] for after, before in steps if after > before)])
        is_open = True
        for after, before in steps:
            if after < before:  # up, to a parent
                self.paid[after][before] = self.paid[after].get(before, 0.0) + amount
            elif self.paid[before][after] > amount:
                self.paid[before][after] -= amount
            else:
                del self.paid[before][after]
                is_open = False
        self.debts[end] = debt - amount if debt - amount > debt * _ROUNDING else 0.0
        return amount, is_open


@lru_cache(maxsize=4)
def _choice(taxonomy: Taxonomy) -> _Choice:
    return _Choice(taxonomy, _twigs(taxonomy))


def _fold(worth: Worth, below: Groups) -> None:
    """Add to each label what its children are worth with all below them, where that is a gain."""
    for parents, children, starts in below:
        worth[parents] += np.add.reduceat(np.maximum(worth[children], 0), starts, axis=0)


def _twigs(taxonomy: Taxonomy) -> Chosen:
    """Labels with one parent that have no label with several parents below."""
    twig = np.asarray(taxonomy.parent_counts == 1)
    for parents, children, starts in _grouped(taxonomy.edges, taxonomy.levels, by="parent"):
        twig[parents] &= np.logical_and.reduceat(twig[children], starts)
    return twig


def _grouped(edges: Ids, levels: NDArray[np.int32], *, by: str) -> Groups:
    """The edges of each level, by the level of the child: all labels between it and the bottom come before."""
    owner, other = (edges[:, 0], edges[:, 1]) if by == "parent" else (edges[:, 1], edges[:, 0])
    level = levels[edges[:, 1]]
    order = np.lexsort((other, owner, -level))
    cuts = np.flatnonzero(np.diff(level[order])) + 1
    groups: Groups = []
    for part in np.split(order, cuts) if len(order) else []:
        owners, starts = np.unique(owner[part], return_index=True)
        groups.append((owners, other[part], starts))
    return groups


def _parent_lists(edges: Ids, labels: int) -> list[list[int]]:
    order = np.lexsort((edges[:, 0], edges[:, 1]))
    parents = edges[order, 0].tolist()
    return [parents[start:end] for start, end in pairwise(run_starts(edges[:, 1], labels).tolist())]
