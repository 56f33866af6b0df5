"""Stage 1: join the parts of a graph two by two into a binary tree (or forest) of inner nodes."""

from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from math import log2

import numpy as np

from hitin.coding_tree.graph import Floats, Graph, Ids
from hitin.coding_tree.running import Runner, kernel

NONE = -1
SMALL = 2_000  # vertices up to which every score is kept up to date
WHOLE = 1 - 2.0**-40  # the part of the volume from which a cluster is the whole graph, whatever the rounding


@dataclass(frozen=True)
class Merged:
    """A tree over the vertices before it has layers: inner nodes, each made after those below it.

    `above[i]` is the inner node above vertex i and then above each inner node, counted from 0, or -1 for the
    root; `volume` (v_a) and `inside` (E_a, the weight of the edges inside) are those of the inner nodes.
    """

    above: Ids
    volume: Floats
    inside: Floats


def merged(graph: Graph, runner: Runner, *, rule: str, slack: float = 0.0) -> Merged:
    """Join the pair of neighbours that gains most, again and again.

    `rule` says what a pair gains: `insert`, the entropy saved by a node above the two (Algorithm 1), or
    `fuse`, that saved when two modules become one, which serves graphs with cycles better; the latter goes on
    when it costs, so that there is a choice of larger modules. Of pairs that gain the same, the one with the
    smallest vertices comes first. `slack` is how far a gain may have changed since a pair was put into the
    queue, as a part of it: above 0, a wide hub of a large graph takes less time.
    """
    if rule == "insert" and len(graph.weights) and not graph.loops.any():
        unit = float(graph.weights[0])
        upper = uppers(graph, runner) if (graph.weights == unit).all() else None
        if upper is not None:
            return _merged_forest(upper, unit, graph, runner)
    return _merged_graph(graph, runner, fuse=rule == "fuse", slack=slack)


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


# What a cluster of `merge_forest` is: a record of eight numbers side by side in one sequence, named by its place.
# That is one line of the processor's cache, which is what a million vertices are waited for.
VOLUME, NAME, RANK, TOP, LEFT, RIGHT, NODE, EDGES, RECORD = range(9)


def _merged_forest(upper: Ids, unit: float, graph: Graph, runner: Runner) -> Merged:
    """The insert rule where all edges weigh the same and there are neither cycles nor loops."""
    count = graph.vertices
    vertices = np.arange(count)
    children = np.flatnonzero(upper != NONE)
    degrees = np.bincount(children, minlength=count) + np.bincount(upper[children], minlength=count)
    clusters = np.full((count, RECORD), NONE)
    clusters[:, VOLUME] = degrees
    clusters[:, NAME] = clusters[:, NODE] = vertices
    clusters[:, RANK] = degrees * count + vertices
    clusters[:, EDGES] = 0
    lightest_last = np.sort(clusters[children, RANK])[::-1] % count
    above = runner.ints(count + len(children), NONE)
    volume, inside = runner.ints(len(children)), runner.ints(len(children))
    made = runner.run(
        merge_forest,
        count,
        runner.sequence(clusters.ravel()),
        runner.sequence(lightest_last * RECORD),
        runner.sequence(upper[lightest_last] * RECORD),
        runner.ints(2 * count, NONE),
        above,
        volume,
        inside,
    )
    return Merged(np.asarray(above)[: count + made], np.asarray(volume)[:made] * unit, np.asarray(inside)[:made] * unit)


@kernel
def merge_forest(
    count: int,
    clusters: list[int],
    children: list[int],
    parents: list[int],
    bucket: list[int],
    above: list[int],
    volume: list[int],
    inside: list[int],
) -> int:
    """Contract the edge with the smallest v_i + v_j, again and again; answers how many inner nodes that made.

    A cluster is called by the vertex nearest to the root. NAME is its smallest vertex, NODE what it is in the
    tree, EDGES how many lie inside. It owns the edges to the clusters below it: TOP is the top of a heap of them
    by RANK, volume * count + name as it was when they were put there. It waits in the bucket of its smallest sum
    with the names of the pair. Volumes only grow, so that old ranks and buckets are lower bounds, brought up to
    date when their turn comes: a wide cluster costs no more than a narrow one.
    """
    total = 2 * len(volume)
    for place in range(len(children)):  # from heavy to light, so that each heap begins as a sorted chain
        child, upper = children[place], parents[place]
        clusters[child + LEFT] = clusters[upper + TOP]
        clusters[upper + TOP] = child
    waiting = [(0, 0, NONE)]  # pair, cluster, and the one before in the same bucket
    for cluster in range(0, len(clusters), RECORD):
        if clusters[cluster + TOP] != NONE:
            child = clusters[cluster + TOP]
            both = clusters[cluster + VOLUME] + clusters[child + VOLUME]
            waiting.append((paired(clusters[cluster + NAME], clusters[child + NAME], count), cluster, bucket[both]))
            bucket[both] = len(waiting) - 1
    made = 0
    for both in range(total):  # a node with the volume of the whole graph would be the root
        if bucket[both] == NONE:
            continue
        queue = [(0, 0)]
        queue.pop()
        place = bucket[both]
        while place != NONE:
            pair, cluster, place = waiting[place]
            queue.append((pair, cluster))
        heapify(queue)
        while len(queue) > 0:
            pair, upper = queue[0]
            lower = clusters[upper + TOP]
            if lower == NONE:  # joined with the one above since
                heappop(queue)
                continue
            rank = clusters[lower + VOLUME] * count + clusters[lower + NAME]
            while rank != clusters[lower + RANK]:
                rest = meld(clusters[lower + LEFT], clusters[lower + RIGHT], clusters)
                clusters[lower + LEFT] = clusters[lower + RIGHT] = NONE
                clusters[lower + RANK] = rank
                lower = meld(rest, lower, clusters)
                rank = clusters[lower + VOLUME] * count + clusters[lower + NAME]
            clusters[upper + TOP] = lower
            now = clusters[upper + VOLUME] + clusters[lower + VOLUME]
            fresh = paired(clusters[upper + NAME], clusters[lower + NAME], count)
            if now > both:
                heappop(queue)
                waiting.append((fresh, upper, bucket[now]))
                bucket[now] = len(waiting) - 1
                continue
            if fresh != pair:
                heapreplace(queue, (fresh, upper))
                continue
            heappop(queue)
            above[clusters[upper + NODE]] = above[clusters[lower + NODE]] = made
            volume[made] = both
            clusters[upper + EDGES] += clusters[lower + EDGES] + 1
            inside[made] = clusters[upper + EDGES]
            clusters[upper + NODE] = count + made
            made += 1
            clusters[upper + VOLUME] = both
            clusters[upper + NAME] = min(clusters[upper + NAME], clusters[lower + NAME])
            rest = meld(clusters[lower + LEFT], clusters[lower + RIGHT], clusters)
            rest = meld(rest, clusters[lower + TOP], clusters)
            clusters[upper + TOP] = rest
            clusters[lower + TOP] = NONE
            if rest != NONE:
                now = both + clusters[rest + RANK] // count
                fresh = paired(clusters[upper + NAME], clusters[rest + RANK] % count, count)
                waiting.append((fresh, upper, bucket[now]))
                bucket[now] = len(waiting) - 1
    return made


@kernel
def paired(first: int, second: int, count: int) -> int:
    """Two names as one number, the smaller first."""
    return min(first, second) * count + max(first, second)


@kernel
def meld(first: int, second: int, clusters: list[int]) -> int:
    """Two skew heaps of clusters become one, with the smallest RANK on top."""
    if first == NONE:
        return second
    if second == NONE:
        return first
    if clusters[second + RANK] < clusters[first + RANK]:
        first, second = second, first
    top = first
    while True:  # down the right side, whose nodes change sides: what keeps it short
        rest = clusters[first + RIGHT]
        clusters[first + RIGHT] = clusters[first + LEFT]
        if rest == NONE:
            clusters[first + LEFT] = second
            return top
        if clusters[second + RANK] < clusters[rest + RANK]:
            rest, second = second, rest
        clusters[first + LEFT] = rest
        first = rest


def _merged_graph(graph: Graph, runner: Runner, *, fuse: bool, slack: float) -> Merged:
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
        fuse and count <= SMALL,
        slack,
        *(runner.sequence(array) for array in (owner, graph.weights, graph.degrees, first, following)),
        names,
        above,
        volume,
        inside,
    )
    return Merged(np.asarray(above)[: count + made], np.asarray(volume)[:made], np.asarray(inside)[:made])


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
    cluster = [vertex for vertex in range(count)]  # noqa: C416: union-find (numba wants it so)
    name = [vertex for vertex in range(count)]  # noqa: C416: the smallest vertex
    node = [vertex for vertex in range(count)]  # noqa: C416: in the tree
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
                twin = names[pair] if pair in names else NONE
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
    """`merge_delta` or `fuse_delta` times -V / 2, to 40 bits, so that what is equal on paper is equal here."""
    both = volume_i + volume_j
    gain = cut * log2(total / both)
    if fuse:
        gain -= inside_i * log2(both / volume_i) + inside_j * log2(both / volume_j)
    head = 8193.0 * gain
    return head - (head - gain)


@kernel
def found(cluster: list[int], vertex: int) -> int:
    """The cluster of a vertex, by union-find that halves the way as it goes."""
    while cluster[vertex] != vertex:
        cluster[vertex] = cluster[cluster[vertex]]
        vertex = cluster[vertex]
    return vertex
