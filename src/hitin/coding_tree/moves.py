"""Local moves: a node goes to another parent where that lowers the entropy, until none does.

What counts is the gain, minus the sum over inner nodes a of e_a * ln v_a. A node x that leaves its parents p_1, p_2,
... (below the root) for q_1, q_2, ... takes its volume along and the edges to others, which then meet elsewhere:
only these nodes change, and from the first that both chains share on, only their e. x may also get a fresh
chain of parents below any q_i or below the root.
"""

from math import log

import numpy as np

from hitin.coding_tree.draft import NONE
from hitin.coding_tree.graph import Floats, Graph, Ids, adjacency, sums
from hitin.coding_tree.running import Runner, kernel

ROUNDS = 20  # over all layers, at most; few need more than five
SWEEPS = 20  # over the nodes of a layer, at most
TALL = 8  # the height beyond which moves take too long
LEAST = 1e-12  # of the weight of all edges: a smaller gain is taken for rounding


def improved(graph: Graph, partitions: list[Ids], runner: Runner) -> list[Ids]:
    """Partitions of the same height, with an entropy at most as high (but for rounding, which the caller checks)."""
    height = len(partitions) - 1
    for _ in range(ROUNDS):
        moved = 0
        for layer in range(height - 1):
            partitions, moves = _improved_layer(graph, partitions, layer, runner)
            moved += moves
        if not moved:
            break
    return partitions


def _improved_layer(graph: Graph, partitions: list[Ids], layer: int, runner: Runner) -> tuple[list[Ids], int]:
    """Move the nodes of one layer; answers the partitions and how many moves that were."""
    _, members = np.unique(partitions[layer], return_inverse=True)
    nodes = int(members.max()) + 1
    uppers = [np.unique(part, return_inverse=True)[1] for part in partitions[layer + 1 : -1]]
    starts, neighbours, weights = adjacency(Graph(nodes, members[graph.edges], graph.weights))
    up, volume, met, kids = [], [], [], []
    below, inside_below = members, _inside(graph, members, nodes)
    for number, upper in enumerate(uppers):
        parent_of = np.full(nodes, NONE)
        parent_of[below] = upper
        there = parent_of != NONE
        inside = _inside(graph, upper, nodes)
        up.append(np.where(there, parent_of + number * nodes, NONE))
        met.append(inside - sums(parent_of[there], inside_below[there], nodes))
        volume.append(sums(upper, graph.degrees, nodes) / graph.volume)
        kids.append(np.bincount(parent_of[there], minlength=nodes))
        below, inside_below = upper, inside
    up.append(np.full(nodes, NONE))
    parent = runner.sequence(up[0])
    chain = runner.sequence(np.concatenate(up[1:]))
    moves: int = runner.run(
        move_nodes,
        *map(runner.sequence, (starts, neighbours, weights)),
        runner.sequence(sums(members, graph.degrees, nodes) / graph.volume),
        parent,
        chain,
        *(runner.sequence(np.concatenate(columns)) for columns in (volume, met, kids)),
        *(runner.floats(nodes * len(uppers)) for _ in range(4)),
        runner.flags(nodes, True),
        LEAST * float(graph.weights.sum()),
    )
    found, moved = np.asarray(chain), []
    place = np.asarray(parent)[members]
    for _ in uppers:
        moved.append(place)
        place = found[place]
    return [*partitions[: layer + 1], *moved, partitions[-1]], moves


def _inside(graph: Graph, partition: Ids, nodes: int) -> Floats:
    """E of every node: the weight of the edges with both ends in it."""
    first, second = partition[graph.edges].T
    return sums(first, np.where(first == second, graph.weights, 0.0), nodes)


@kernel
def move_nodes(
    starts: list[int],
    neighbours: list[int],
    weights: list[float],
    size: list[float],
    parent: list[int],
    up: list[int],
    volume: list[float],
    met: list[float],
    kids: list[int],
    to: list[float],
    joining: list[float],
    passing: list[float],
    log_grown: list[float],
    stale: list[bool],
    least: float,
) -> int:
    """Sweep over the nodes of a layer until nothing moves; answers how often one did.

    The nodes of the layers above stand one layer after the other, as many places a layer as there are nodes below;
    `up` leads from one to the next. Volumes are parts of the whole, so that what meets in the root counts nothing.
    `to` is the weight of the edges from x to what is below a place. What x would gain there is in two parts:
    `joining` at the place itself, `passing` at those above, which only get the edges that do not meet below.
    """
    nodes = len(parent)
    spare = [place for place in range(len(up) - 1, -1, -1) if kids[place] == 0]
    free = [[place for place in spare if place // nodes == i] for i in range(len(up) // nodes)]
    moves = 0
    for _ in range(SWEEPS):
        before = moves
        for x in range(nodes):
            if not stale[x]:
                continue
            stale[x] = False
            touched = [0]
            touched.pop()
            for at in range(starts[x], starts[x + 1]):
                place = parent[neighbours[at]]
                while place != NONE:
                    if to[place] == 0.0:
                        touched.append(place)
                    to[place] += weights[at]
                    place = up[place]
            stay = 0.0  # what x gains where it is, beyond being alone below the root
            place, already = parent[x], 0.0
            while place != NONE:
                stay += share(met[place], volume[place])
                met[place] -= to[place] - already
                volume[place] -= size[x]
                stay -= share(met[place], volume[place])
                already = to[place]
                place = up[place]
            best, best_gain = NONE, 0.0
            touched.sort()
            for number in range(len(touched) - 1, -1, -1):  # those above come first
                place, above = touched[number], up[touched[number]]
                log_grown[place] = log(max(volume[place], 0.0) + size[x])
                joining[place] = -(met[place] + to[place]) * log_grown[place] - share(met[place], volume[place])
                passing[place] = 0.0
                if above != NONE:
                    passing[place] = passing[above] + joining[above] + to[place] * log_grown[above]
                if joining[place] + passing[place] > best_gain:
                    best, best_gain = place, joining[place] + passing[place]
            if best_gain > stay + least:
                moves += 1
                for at in range(starts[x], starts[x + 1]):
                    stale[neighbours[at]] = True
                detach(x, parent, up, kids, met, volume, free)
                attach(x, best, nodes, parent, up, kids, free)
            place, already = parent[x], 0.0
            while place != NONE:
                met[place] += to[place] - already
                volume[place] += size[x]
                already = to[place]
                place = up[place]
            for place in touched:
                to[place] = 0.0
        if moves == before:
            break
    return moves


@kernel
def detach(
    x: int,
    parent: list[int],
    up: list[int],
    kids: list[int],
    met: list[float],
    volume: list[float],
    free: list[list[int]],
) -> None:
    """Take x from its parent; parents that are left without children are free for others."""
    place, i = parent[x], 0
    while place != NONE:
        kids[place] -= 1
        if kids[place] > 0:
            break
        free[i].append(place)
        met[place] = volume[place] = 0.0
        place = up[place]
        i += 1


@kernel
def attach(
    x: int, place: int, nodes: int, parent: list[int], up: list[int], kids: list[int], free: list[list[int]]
) -> None:
    """Hang x from a node, or from the root (NONE), by fresh nodes on the layers between."""
    for i in range((len(up) if place == NONE else place) // nodes - 1, -1, -1):
        fresh = free[i].pop()
        up[fresh] = place
        if place != NONE:
            kids[place] += 1
        kids[fresh] = 0
        place = fresh
    parent[x] = place
    kids[place] += 1


@kernel
def share(met: float, volume: float) -> float:
    """What a node adds to the gain."""
    return -met * log(volume) if met > 0.0 and volume > 0.0 else 0.0
