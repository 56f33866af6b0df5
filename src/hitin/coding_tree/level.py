"""Stage 3: every vertex at the same depth. A unary node changes no entropy."""

import numpy as np
from numpy.typing import NDArray

from hitin.coding_tree.draft import NONE, Draft
from hitin.coding_tree.graph import Ids
from hitin.coding_tree.running import Runner, kernel


def layered(draft: Draft, keep: NDArray[np.bool_], height: int, runner: Runner) -> list[Ids]:
    """The node of every vertex on each layer from 0 to `height`, for `CodingTree.from_partitions`.

    A node stands as low as those below it let it, and the unary nodes are directly above it.
    """
    count = len(keep)
    kept, nodes_above = runner.sequence(keep), runner.sequence(draft.nodes_above)
    heights, nearest = runner.ints(count), runner.ints(count)
    runner.run(measure, nodes_above, kept, heights)
    runner.run(find_nearest, nodes_above, kept, nearest)
    tall = np.append(np.asarray(heights, dtype=np.int64), height)  # the root stands last, where NONE leads
    kept_above = np.append(np.where(keep, draft.nodes_above, NONE), NONE)
    up = np.append(np.asarray(nearest, dtype=np.int64), NONE)
    waiting = up[draft.above[: draft.vertices]]  # the next kept node above what each vertex has reached
    place = np.arange(draft.vertices)
    partitions = [place]
    for layer in range(1, height):
        rises = tall[waiting] == layer
        place = np.where(rises, draft.vertices + waiting, place)
        waiting = np.where(rises, up[kept_above[waiting]], waiting)
        partitions.append(place)
    return [*partitions, np.zeros(draft.vertices, dtype=np.int64)]


@kernel
def measure(above: list[int], keep: list[bool], heights: list[int]) -> int:
    """The height of the tree of the kept nodes; for each node, its own or the tallest below one that is not kept."""
    tallest = 1
    for a in range(len(above)):
        if keep[a]:
            heights[a] += 1
        p = above[a]
        if p == NONE:
            tallest = max(tallest, heights[a] + 1)
        else:
            heights[p] = max(heights[p], heights[a])
    return tallest


@kernel
def find_nearest(above: list[int], keep: list[bool], nearest: list[int]) -> None:
    """For each node itself if it is kept, or else the first above it that is."""
    for a in range(len(above) - 1, -1, -1):
        if keep[a]:
            nearest[a] = a
        else:
            nearest[a] = NONE if above[a] == NONE else nearest[above[a]]
