"""Stage 1: join the parts of a graph two by two into a binary tree (or forest) of inner nodes."""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from math import log2
from typing import Any

import numpy as np

from hitin.coding_tree.graph import Floats, Graph, Ids
from hitin.coding_tree.heaps import NONE, meld
from hitin.coding_tree.running import Runner, kernel

SMALL = 2_000  # vertices up to which every score is kept up to date
SLACK = 0.1  # beyond that, how much a score may have changed since it was put into the queue


@dataclass(frozen=True)
class Merged:
    """A tree over the vertices before it has layers: inner nodes, each made after those below it.

    `above[i]` is the inner node above vertex i and then above each inner node, counted from 0, or -1 for the
    root; `volume` (v_a) and `inside` (E_a, the weight of the edges inside) are those of the inner nodes.
    """

    above: Ids
    volume: Floats
    inside: Floats


def merged(graph: Graph, runner: Runner, *, rule: str) -> Merged:
    """Join the pair of neighbours that gains most, again and again, until none gains anything.

    `rule` says what a pair gains: `insert`, the entropy saved by a node above the two (Algorithm 1), or
    `fuse`, that saved when two modules become one, which serves graphs with cycles better. Of pairs that gain
    the same, the one with the smallest vertices comes first.
    """
    upper = uppers(graph, runner)
    unit = float(graph.weights[0]) if len(graph.weights) else 1.0
    degrees = graph.degrees / unit
    whole = bool((graph.weights == unit).all() and (degrees == np.round(degrees)).all() and degrees.max() < 2**31)
    if upper is not None and whole and rule == "insert":
        return _merged_forest(upper, degrees.astype(np.int64), unit, graph, runner)
    return _merged_graph(graph, runner, fuse=rule == "fuse")


def uppers(graph: Graph, runner: Runner) -> Ids | None:
    """The neighbour of each vertex towards the smallest vertex of its tree, or -1; None when there is a cycle."""
    low, high = graph.edges[:, 0], graph.edges[:, 1]
    upper = np.full(graph.vertices, NONE)
    if len(low) >= graph.vertices:
        return None
    upper[high] = low
    if np.count_nonzero(upper != NONE) == len(low):  # each vertex has at most one smaller neighbour
        return upper
    starts, neighbours, _ = adjacency(graph)
    sequences = [runner.sequence(array) for array in (starts, neighbours)]
    found = runner.ints(graph.vertices, NONE)
    trees = runner.run(orient, *sequences, found, runner.flags(graph.vertices), runner.ints(graph.vertices))
    return np.asarray(found) if len(low) == graph.vertices - trees else None


def adjacency(graph: Graph) -> tuple[Ids, Ids, Floats]:
    """Compressed rows: the neighbours of i and the weights to them stand from starts[i] to starts[i + 1]."""
    ends = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    starts = np.zeros(graph.vertices + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends[:, 0], minlength=graph.vertices), out=starts[1:])
    return starts, ends[order, 1], np.concatenate([graph.weights, graph.weights])[order]


@kernel
def orient(starts: list[int], neighbours: list[int], upper: list[int], seen: list[bool], waiting: list[int]) -> int:
    """Walk breadth first from the smallest vertex of each component; answers how many there are."""
    components = 0
    for start in range(len(upper)):
        if seen[start]:
            continue
        components += 1
        seen[start] = True
        waiting[0] = start
        first, last = 0, 1
        while first < last:
            vertex = waiting[first]
            first += 1
            for place in range(starts[vertex], starts[vertex + 1]):
                other = neighbours[place]
                if not seen[other]:
                    seen[other] = True
                    upper[other] = vertex
                    waiting[last] = other
                    last += 1
    return components


def _merged_forest(upper: Ids, degrees: Ids, unit: float, graph: Graph, runner: Runner) -> Merged:
    """The insert rule where all edges weigh the same and there is no cycle."""
    count = graph.vertices
    children = np.flatnonzero(upper != NONE)
    children = children[np.lexsort((children, degrees[children], upper[children]))]
    siblings = upper[children][1:] == upper[children][:-1]
    following = np.full(count, NONE)  # each heap of children begins as a sorted chain
    following[children[:-1][siblings]] = children[1:][siblings]
    top = np.full(count, NONE)
    top[upper[children][::-1]] = children[::-1]
    rank = degrees * count + np.arange(count)
    above = runner.ints(count + len(children), NONE)
    volume, inside = runner.ints(len(children)), runner.ints(len(children))
    made = runner.run(
        merge_forest,
        int(degrees.sum()),
        *(runner.sequence(array) for array in (degrees, rank, top, following)),
        runner.ints(count, NONE),
        above,
        volume,
        inside,
    )
    return Merged(
        np.asarray(above)[: count + made], np.asarray(volume)[:made] * unit, np.asarray(inside)[:made] * unit
    )


@kernel
def merge_forest(
    total: int,
    volumes: list[int],
    rank: list[int],
    top: list[int],
    left: list[int],
    right: list[int],
    above: list[int],
    volume: list[int],
    inside: list[int],
) -> int:
    """Contract the edge with the smallest v_i + v_j, again and again; answers how many inner nodes that made.

    A cluster is called by the vertex nearest to the root. It owns the edges to the clusters below it, as a heap
    by (volume, smallest vertex) in one number, `rank`, and stands in the queue once, with the best of them.
    Volumes only grow, so an old rank or entry is a lower bound: it is brought up to date when it comes to the
    top. A wide cluster then costs no more than a narrow one.
    """
    count = len(volumes)
    name = [vertex for vertex in range(count)]  # noqa: C416: the smallest vertex of the cluster (numba wants it so)
    node = [vertex for vertex in range(count)]  # noqa: C416: the node of the tree that the cluster is now
    queue = [
        (volumes[i] + volumes[top[i]], min(i, top[i]), max(i, top[i]), i) for i in range(count) if top[i] != NONE
    ]
    heapify(queue)
    made = 0
    while len(queue) > 0:
        best = queue[0]
        upper = best[3]
        lower = top[upper]
        if lower == NONE:  # joined with the one above, or nothing left below
            heappop(queue)
            continue
        now = volumes[lower] * count + name[lower]
        while now != rank[lower]:
            rest = meld(left[lower], right[lower], rank, left, right)
            left[lower] = right[lower] = NONE
            rank[lower] = now
            lower = meld(rest, lower, rank, left, right)
            now = volumes[lower] * count + name[lower]
        top[upper] = lower
        both = volumes[upper] + volumes[lower]
        entry = (both, min(name[upper], name[lower]), max(name[upper], name[lower]), upper)
        if entry != best:
            heapreplace(queue, entry)
            continue
        if both == total:  # the whole graph, which the root stands for
            break
        edges = 1
        for vertex in (upper, lower):
            above[node[vertex]] = made
            if node[vertex] >= count:
                edges += inside[node[vertex] - count]
        volume[made] = both
        inside[made] = edges
        node[upper] = count + made
        made += 1
        volumes[upper] = both
        name[upper] = entry[1]
        rest = meld(left[lower], right[lower], rank, left, right)
        rest = meld(rest, top[lower], rank, left, right)
        top[upper] = rest
        top[lower] = NONE
        if rest == NONE:
            heappop(queue)
        else:
            below = rank[rest] % count
            heapreplace(queue, (both + rank[rest] // count, min(entry[1], below), max(entry[1], below), upper))
    return made
