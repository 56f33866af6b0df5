"""Forests: recognising them, and stage 1 where all edges weigh the same."""

from heapq import heapify, heappop, heapreplace

import numpy as np

from hitin.coding_tree.draft import NONE, Draft
from hitin.coding_tree.graph import Graph, Ids, adjacency
from hitin.coding_tree.running import Runner, kernel, paired


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


# What a cluster of `merge_forest` is: a record of eight numbers side by side in one sequence, named by its place. They
# have 32 bits where they fit, which is half a line of the processor's cache: what takes the time at a million vertices.
VOLUME, NAME, RANK, TOP, LEFT, RIGHT, NODE, EDGES, RECORD = range(9)


def merged_forest(upper: Ids, graph: Graph, runner: Runner) -> Draft:
    """The insert rule where all edges weigh the same and there are neither cycles nor loops."""
    count = graph.vertices
    vertices = np.arange(count)
    children = np.flatnonzero(upper != NONE)
    degrees = np.bincount(children, minlength=count) + np.bincount(upper[children], minlength=count)
    small = np.int32 if count < 2**31 // RECORD else np.int64
    clusters = np.full((count, RECORD), NONE, dtype=small)
    clusters[:, VOLUME] = clusters[:, RANK] = degrees
    clusters[:, NAME] = clusters[:, NODE] = vertices
    clusters[:, EDGES] = 0
    lightest_last = np.sort(degrees[children] * count + children)[::-1] % count
    above = runner.sequence(np.full(count + len(children), NONE, dtype=small))
    volume, inside = runner.ints(len(children)), runner.ints(len(children))
    made = runner.run(
        merge_forest,
        count,
        runner.sequence(clusters.ravel()),
        runner.sequence(lightest_last * RECORD),
        runner.sequence(upper[lightest_last] * RECORD),
        runner.sequence(np.full(2 * count, NONE, dtype=small)),
        above,
        volume,
        inside,
    )
    unit = float(graph.weights[0])
    volumes, edges = np.asarray(volume)[:made] * unit, np.asarray(inside)[:made] * unit
    return Draft(count, np.asarray(above, dtype=np.int64)[: count + made], volumes, edges)


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
    by RANK, their volume when they were put there, and NAME. It waits in the bucket of its smallest sum with the
    names of the pair. Volumes only grow, so that old ranks and buckets are lower bounds, brought up to date when
    their turn comes: a wide cluster costs no more than a narrow one. A name changes only with the volume, and only
    falls: a cluster whose name fell is put into its heap anew before it is used, and what lies below it there is
    still heavier.
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
            while clusters[lower + RANK] != clusters[lower + VOLUME]:
                rest = meld(clusters[lower + LEFT], clusters[lower + RIGHT], clusters)
                clusters[lower + LEFT] = clusters[lower + RIGHT] = NONE
                clusters[lower + RANK] = clusters[lower + VOLUME]
                lower = meld(rest, lower, clusters)
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
                now = both + clusters[rest + RANK]
                fresh = paired(clusters[upper + NAME], clusters[rest + NAME], count)
                waiting.append((fresh, upper, bucket[now]))
                bucket[now] = len(waiting) - 1
    return made


@kernel
def meld(first: int, second: int, clusters: list[int]) -> int:
    """Two skew heaps of clusters become one, with the smallest RANK and NAME on top (`meld_heaps`, on records)."""
    if first == NONE:
        return second
    if second == NONE:
        return first
    if lighter(second, first, clusters):
        first, second = second, first
    top = first
    while True:  # down the right side, whose nodes change sides: what keeps it short
        rest = clusters[first + RIGHT]
        clusters[first + RIGHT] = clusters[first + LEFT]
        if rest == NONE:
            clusters[first + LEFT] = second
            return top
        if lighter(second, rest, clusters):
            rest, second = second, rest
        clusters[first + LEFT] = rest
        first = rest


@kernel
def lighter(first: int, second: int, clusters: list[int]) -> bool:
    if clusters[first + RANK] != clusters[second + RANK]:
        return clusters[first + RANK] < clusters[second + RANK]
    return clusters[first + NAME] < clusters[second + NAME]
