"""Stage 1 of Algorithm 1: join the parts of a graph two by two into binary trees."""

from heapq import heapify, heappop, heappush
from typing import Literal, get_args

import numpy as np

from hitin.coding_tree.draft import NONE, Draft
from hitin.coding_tree.entropy import fuse_delta, merge_delta
from hitin.coding_tree.forest import merged_forest
from hitin.coding_tree.graph import Graph, Ids
from hitin.coding_tree.running import Runner, found, kernel, paired, rounded

Rule = Literal["insert", "fuse"]
RULES: tuple[Rule, ...] = get_args(Rule)

EAGER = 500  # vertices up to which every gain is kept up to date
WHOLE = 1 - 2.0**-40  # the part of the volume from which a cluster is the whole graph, whatever the rounding


def merged(graph: Graph, upper: Ids | None, runner: Runner, *, rule: Rule, slack: float = 0.0) -> Draft:
    """Join the pair of neighbours that gains most, again and again; `upper` is what `uppers` says of the graph.

    `rule` says what a pair gains: `insert`, the entropy saved by a node above the two (Algorithm 1), or
    `fuse`, that saved when two modules become one, which serves graphs with cycles better; the latter goes on
    when it costs, so that there is a choice of larger modules. Of pairs that gain the same, the one with the
    smallest vertices comes first. `slack` is how far a gain may have changed since a pair was put into the
    queue, as a part of it. At 0, the time grows with the square of the widest vertex, but for a forest without
    weights and loops, which is always merged exactly and fast.
    """
    plain = len(graph.weights) > 0 and bool((graph.weights == graph.weights[0]).all()) and not graph.loops.any()
    if rule == "insert" and upper is not None and plain:
        return merged_forest(upper, graph, runner)
    return _merged_graph(graph, runner, fuse=rule == "fuse", slack=slack)


def _merged_graph(graph: Graph, runner: Runner, *, fuse: bool, slack: float) -> Draft:
    """Either rule on any graph."""
    count, edges = graph.vertices, len(graph.edges)
    following = np.full(2 * edges, NONE)  # lists of edges: number 2 e in that of one end, 2 e + 1 in that of the other
    owner = graph.edges.ravel()
    order = np.argsort(owner, kind="stable")
    same = owner[order[1:]] == owner[order[:-1]]
    following[order[:-1][same]] = order[1:][same]
    first = np.full(count, NONE)
    first[owner[order][::-1]] = order[::-1]
    names = runner.dictionary()
    runner.run(number_edges, *(runner.sequence(ends) for ends in graph.edges.T), count, names)
    above = runner.ints(2 * count, NONE)
    volume, inside = runner.floats(count), runner.floats(count)
    made = runner.run(
        merge_graph,
        graph.volume,
        fuse,
        fuse and count <= EAGER,
        slack,
        *(runner.sequence(array) for array in (owner, graph.weights, graph.degrees, first, following)),
        names,
        above,
        volume,
        inside,
    )
    return Draft(count, np.asarray(above)[: count + made], np.asarray(volume)[:made], np.asarray(inside)[:made])


@kernel
def number_edges(first: list[int], second: list[int], count: int, names: dict[int, int]) -> None:
    for edge in range(len(first)):
        names[paired(first[edge], second[edge], count)] = edge


@kernel
def merge_graph(
    total: float,
    fuse: bool,
    eager: bool,
    slack: float,
    owner: list[int],
    weight: list[float],
    volumes: list[float],
    first: list[int],
    following: list[int],
    names: dict[int, int],
    above: list[int],
    volume: list[float],
    inside: list[float],
) -> int:
    """Merge until no pair is left; answers how many inner nodes that made.

    The edges between two clusters are one, found by the pair in `names`; an edge stands in the lists of both.
    Merging walks the shorter list. By the insert rule gains only fall unless the cut grows, so an entry of the
    queue is an upper bound, brought up to date when it comes to the top. By the fusion rule they also rise:
    `eager` puts every pair that a merge touches into the queue anew, otherwise only those of the shorter list.
    """
    count = len(volumes)
    cluster = list(range(count))  # union-find
    name = list(range(count))  # the smallest vertex
    node = list(range(count))  # in the tree
    within = [0.0] * count  # E
    size = [0] * count
    for end in owner:
        size[end] += 1
    version = [0] * len(weight)  # of an edge's entry in the queue; NONE once it lies inside or became part of another
    queue = [(0.0, 0, 0, 0, 0)]
    queue.pop()
    for edge in range(len(weight)):
        i, j = owner[2 * edge], owner[2 * edge + 1]
        gain = gained(weight[edge], volumes[i], 0.0, volumes[j], 0.0, total, fuse)
        queue.append((-gain, min(i, j), max(i, j), edge, 0))
    heapify(queue)
    made = 0
    while len(queue) > 0:
        loss, _, _, edge, entered = heappop(queue)
        if entered != version[edge]:
            continue
        i, j = found(cluster, owner[2 * edge]), found(cluster, owner[2 * edge + 1])
        low, high = min(name[i], name[j]), max(name[i], name[j])
        gain = gained(weight[edge], volumes[i], within[i], volumes[j], within[j], total, fuse)
        if abs(gain + loss) > slack * abs(loss):
            heappush(queue, (-gain, low, high, edge, entered))
            continue
        version[edge] = NONE
        if volumes[i] + volumes[j] >= total * WHOLE:  # the whole graph, which the root stands for
            continue
        if size[i] < size[j]:
            i, j = j, i
        above[node[i]] = above[node[j]] = made
        cluster[j] = i
        name[i] = low
        node[i] = count + made
        volumes[i] += volumes[j]
        within[i] += within[j] + weight[edge]
        volume[made] = volumes[i]
        inside[made] = within[i]
        made += 1
        place = first[j]
        while place != NONE:
            later = following[place]
            edge = place // 2
            if version[edge] != NONE:
                other = found(cluster, owner[place ^ 1])
                pair = paired(i, other, count)
                twin = names[pair] if pair in names else NONE  # noqa: SIM401 (numba has another get)
                if twin != NONE and version[twin] != NONE:
                    weight[twin] += weight[edge]
                    version[edge] = NONE
                    edge = twin
                else:
                    names[pair] = edge
                    following[place] = first[i]
                    first[i] = place
                    size[i] += 1
                if (fuse or edge == twin) and not eager:
                    enter(edge, i, other, weight, volumes, within, total, fuse, name, version, queue)
            place = later
        if eager:
            before, place = NONE, first[i]
            while place != NONE:
                edge = place // 2
                if version[edge] != NONE:
                    other = found(cluster, owner[place ^ 1])
                    enter(edge, i, other, weight, volumes, within, total, fuse, name, version, queue)
                    before = place
                elif before == NONE:
                    first[i] = following[place]
                else:
                    following[before] = following[place]
                place = following[place]
    return made


@kernel
def enter(
    edge: int,
    i: int,
    j: int,
    weight: list[float],
    volumes: list[float],
    within: list[float],
    total: float,
    fuse: bool,
    name: list[int],
    version: list[int],
    queue: list[tuple[float, int, int, int, int]],
) -> None:
    """Put the edge between clusters i and j into the queue in place of its older entry."""
    gain = gained(weight[edge], volumes[i], within[i], volumes[j], within[j], total, fuse)
    version[edge] += 1
    heappush(queue, (-gain, min(name[i], name[j]), max(name[i], name[j]), edge, version[edge]))


@kernel
def gained(
    cut: float, volume_i: float, inside_i: float, volume_j: float, inside_j: float, total: float, fuse: bool
) -> float:
    """What joining i and j saves by the rule, rounded so that ties are ties."""
    if fuse:
        return rounded(-fuse_delta(cut, inside_i, volume_i, inside_j, volume_j, total))
    return rounded(-merge_delta(cut, volume_i, volume_j, total))
