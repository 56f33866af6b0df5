"""Coding trees by brute force, and Algorithm 1 to the letter: what the tests compare with. Slow on purpose."""

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from hitin.coding_tree import CodingTree, Graph, structural_entropy
from hitin.coding_tree.graph import Ids

Tree = dict[int, frozenset[int]]  # the vertices below each node; which node is above which follows from that


def entropy_of(graph: Graph, partitions: list[Ids]) -> float:
    return structural_entropy(graph, CodingTree.from_partitions(partitions))


def set_partitions(count: int) -> Iterator[list[int]]:
    """Every way to split so many things, as the number of each one's part."""

    def extend(prefix: list[int]) -> Iterator[list[int]]:
        if len(prefix) == count:
            yield prefix
            return
        for part in range(max(prefix, default=-1) + 2):
            yield from extend([*prefix, part])

    yield from extend([])


def all_coding_trees(count: int, height: int) -> Iterator[list[Ids]]:
    """Every coding tree of this height over so many vertices."""
    if height == 1:
        yield [np.arange(count), np.zeros(count, dtype=np.int64)]
        return
    for part in set_partitions(count):
        first = np.array(part)
        for above in all_coding_trees(int(first.max()) + 1, height - 1):
            yield [np.arange(count), *(layer[first] for layer in above)]


def least_entropy(graph: Graph, height: int) -> float:
    """The optimum by a programme over all subsets of vertices: gains of modules add up, whatever else there is."""
    count = graph.vertices
    degrees, total = graph.degrees.tolist(), graph.volume
    if not len(graph.edges):
        return 0.0
    volume, inside = [0.0] * (1 << count), [0.0] * (1 << count)
    for mask in range(1 << count):
        volume[mask] = sum(degrees[i] for i in range(count) if mask >> i & 1)
    for (i, j), weight in zip(graph.edges.tolist(), graph.weights.tolist(), strict=True):
        both = 1 << i | 1 << j
        for mask in range(1 << count):
            if mask & both == both:
                inside[mask] += weight
    log = [math.log2(v) if v > 0 else 0.0 for v in volume]

    def split(whole: int, layers: int) -> float:
        """The most that nodes below one with these vertices gain: the sum of E * log2(v of the node above / v)."""
        best = {0: 0.0}
        for mask in sorted(submasks(whole)):
            lowest = mask & -mask
            best[mask] = max(
                best[mask ^ part] + inside[part] * (log[whole] - log[part]) + below(part, layers - 1)
                for part in submasks(mask)
                if part & lowest
            )
        return best[whole]

    known: dict[tuple[int, int], float] = {}

    def below(part: int, layers: int) -> float:
        if layers == 0:
            return 0.0
        if (part, layers) not in known:
            known[part, layers] = split(part, layers)
        return known[part, layers]

    cuts = graph.cuts.tolist()
    flat: float = sum(cut * math.log2(total / degree) for cut, degree in zip(cuts, degrees, strict=True) if cut)
    return (flat - 2 * split((1 << count) - 1, height - 1)) / total if height > 1 else flat / total


def submasks(mask: int) -> Iterator[int]:
    part = mask
    while part:
        yield part
        part = (part - 1) & mask


def literal_algorithm_1(graph: Graph, height: int) -> list[Ids]:
    """Stages 1 to 3 as the paper states them, each candidate judged by Eq. 6 on the whole tree.

    Of candidates within 1e-9 of each other, the pair with the smallest vertices, or the node that was made first.
    """
    tree: Tree = {vertex: frozenset([vertex]) for vertex in range(graph.vertices)}
    while len(tops := _tops(tree)) > 2:
        now = _eq6(graph, tree)
        pairs = sorted(itertools.combinations(sorted(tops, key=lambda node: min(tree[node])), 2), key=_names(tree))
        gains = [now - _eq6(graph, {**tree, len(tree): tree[i] | tree[j]}) for i, j in pairs]
        if not gains or max(gains) < 1e-9:
            break
        i, j = next(pair for pair, gain in zip(pairs, gains, strict=True) if gain > max(gains) - 1e-9)
        tree[len(tree)] = tree[i] | tree[j]
    while _height(tree) > height:
        inner = [node for node in tree if node >= graph.vertices]
        costs = [_eq6(graph, {a: tree[a] for a in tree if a != node}) for node in inner]
        del tree[next(node for node, cost in zip(inner, costs, strict=True) if cost < min(costs) + 1e-9)]
    return _shifted(tree, graph.vertices, height)


def literal_fusion(graph: Graph) -> list[frozenset[int]]:
    """The modules that arise, one by one, where those two neighbours become one that save most entropy of a tree of
    height 2, or cost least; the whole of a graph is none."""
    modules = [frozenset([vertex]) for vertex in range(graph.vertices)]
    found: list[frozenset[int]] = []
    while True:
        pairs = [
            pair
            for pair in itertools.combinations(sorted(modules, key=min), 2)
            if _is_cut(graph, *pair) and sum(graph.degrees[i] for i in pair[0] | pair[1]) < graph.volume * (1 - 1e-9)
        ]
        if not pairs:
            return found
        entropies = [_of_modules(graph, [*(m for m in modules if m not in pair), pair[0] | pair[1]]) for pair in pairs]
        i, j = next(pair for pair, each in zip(pairs, entropies, strict=True) if each < min(entropies) + 1e-10)
        modules = [*(module for module in modules if module not in (i, j)), i | j]
        found.append(i | j)


def _is_cut(graph: Graph, one: frozenset[int], two: frozenset[int]) -> bool:
    return any((i in one and j in two) or (i in two and j in one) for i, j in graph.edges.tolist())


def _of_modules(graph: Graph, modules: list[frozenset[int]]) -> float:
    place = [next(number for number, module in enumerate(modules) if i in module) for i in range(graph.vertices)]
    return entropy_of(graph, [np.arange(graph.vertices), np.array(place), np.zeros(graph.vertices, dtype=np.int64)])


def _names(tree: Tree) -> Callable[[tuple[int, int]], list[int]]:
    return lambda pair: sorted(min(tree[node]) for node in pair)


def _tops(tree: Tree) -> list[int]:
    return [node for node in tree if _parent(tree, node) is None]


def _parent(tree: Tree, node: int) -> int | None:
    """The smallest set around this one."""
    around = [other for other in tree if tree[other] > tree[node]]
    return min(around, key=lambda other: len(tree[other]), default=None)


def _eq6(graph: Graph, tree: Tree) -> float:
    entropy = 0.0
    for node, below in tree.items():
        parent = _parent(tree, node)
        cut = sum(
            weight
            for (i, j), weight in zip(graph.edges.tolist(), graph.weights.tolist(), strict=True)
            if (i in below) != (j in below)
        )
        if cut:
            around = graph.volume if parent is None else sum(graph.degrees[i] for i in tree[parent])
            entropy -= cut / graph.volume * math.log2(sum(graph.degrees[i] for i in below) / around)
    return entropy


def _node_height(tree: Tree, node: int) -> int:
    below = [other for other in tree if _parent(tree, other) == node]
    return 1 + max(_node_height(tree, other) for other in below) if below else 0


def _height(tree: Tree) -> int:
    return 1 + max(_node_height(tree, node) for node in _tops(tree))


def _shifted(tree: Tree, vertices: int, height: int) -> list[Ids]:
    """Layer k holds the nodes of height k, and above a node as many copies as its parent is too far away."""
    partitions = [np.arange(vertices)]
    for layer in range(1, height):
        place = []
        for vertex in range(vertices):
            node, parent = vertex, _parent(tree, vertex)
            while parent is not None and _node_height(tree, parent) <= layer:
                node, parent = parent, _parent(tree, parent)
            place.append(node)
        partitions.append(np.array(place))
    return [*partitions, np.zeros(vertices, dtype=np.int64)]
