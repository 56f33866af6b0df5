"""A taxonomy as steps from level to level, for work on whole tables of documents by labels.

Inside, labels are rows: numpy adds and compares whole rows several times faster than columns.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hitin.taxonomy.taxonomy import Ids, Taxonomy

T = TypeVar("T", bound=np.generic)

_TAXONOMIES = 4  # whose steps are remembered: a service asks for them with every document


class Step(NamedTuple):
    """The edges to the labels of one level. Those of `ends[i]` stand from `starts[i]` on."""

    parents: Ids
    children: Ids
    ends: Ids
    starts: Ids

    def gather(self, ufunc: np.ufunc, rows: NDArray[T]) -> NDArray[T]:
        """(edges, documents) -> (ends, documents): the values of the edges of each end, taken together."""
        if len(rows) == len(self.starts):  # one each, as below the parents of a tree
            return rows
        return np.asarray(ufunc.reduceat(rows, self.starts, axis=0))


def level_slices(taxonomy: Taxonomy) -> Iterator[slice]:
    """The labels of each level from the top, which stand together."""
    start = 0
    for size in taxonomy.level_sizes:
        yield slice(start, start + size)
        start += size


@lru_cache(maxsize=_TAXONOMIES)
def upwards(taxonomy: Taxonomy) -> tuple[Step, ...]:
    """From the lowest level to the top; the `ends` are parents."""
    levels = taxonomy.levels[taxonomy.edges[:, 1]]
    steps = []
    for level in range(taxonomy.depth, 1, -1):  # from the bottom: a parent of one step is a child of a later one
        edges = taxonomy.edges[levels == level]  # sorted by parent
        ends, starts = np.unique(edges[:, 0], return_index=True)
        steps.append(Step(edges[:, 0], edges[:, 1], ends, starts))
    return tuple(steps)


@lru_cache(maxsize=_TAXONOMIES)
def downwards(taxonomy: Taxonomy) -> tuple[Step, ...]:
    """From the second level to the lowest; the `ends` are children."""
    children = np.repeat(np.arange(len(taxonomy)), taxonomy.parent_counts)
    levels = taxonomy.levels[children]
    steps = []
    for level in range(2, taxonomy.depth + 1):
        chosen = levels == level
        ends, starts = np.unique(children[chosen], return_index=True)
        steps.append(Step(taxonomy.parent_ids[chosen], children[chosen], ends, starts))
    return tuple(steps)


def hopeful_columns(hopeful: NDArray[np.bool_], taxonomy: Taxonomy) -> Ids:
    """The labels that are hopeful for some document, with all above them: of very many labels they are few."""
    some = np.asarray(hopeful.any(axis=0, keepdims=True))
    return np.flatnonzero(with_ancestors(some, taxonomy)[0])


def among(steps: Iterable[Step], labels: Ids, count: int) -> tuple[Step, ...]:
    """The same steps with these labels alone, which are rising and hold their ancestors, in their own numbers."""
    numbers = np.full(count, -1)
    numbers[labels] = np.arange(len(labels))
    found = []
    for step in steps:
        parents, children = numbers[step.parents], numbers[step.children]
        kept = children >= 0  # and so is the parent
        owners = (parents if step.parents[0] == step.ends[0] else children)[kept]
        ends, starts = np.unique(owners, return_index=True)
        if len(ends):
            found.append(Step(parents[kept], children[kept], ends, starts))
    return tuple(found)


def highest_below(table: NDArray[T], taxonomy: Taxonomy) -> NDArray[T]:
    """For each label the highest value of it and all its descendants."""
    rows = table.T.copy(order="C")
    for step in upwards(taxonomy):
        rows[step.ends] = np.maximum(rows[step.ends], step.gather(np.maximum, rows[step.children]))
    return rows.T


def lowest_above(table: NDArray[T], taxonomy: Taxonomy) -> NDArray[T]:
    """For each label the lowest value of it and all its ancestors."""
    rows = table.T.copy(order="C")
    for step in downwards(taxonomy):
        rows[step.ends] = np.minimum(rows[step.ends], step.gather(np.minimum, rows[step.parents]))
    return rows.T


def with_ancestors(chosen: NDArray[np.bool_], taxonomy: Taxonomy) -> NDArray[np.bool_]:
    """The chosen labels and everything above them."""
    return highest_below(chosen, taxonomy)


def without_orphans(chosen: NDArray[np.bool_], taxonomy: Taxonomy) -> NDArray[np.bool_]:
    """The chosen labels whose ancestors are all chosen."""
    return lowest_above(chosen, taxonomy)
