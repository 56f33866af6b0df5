"""Structural entropy (Eq. 6 of the paper) and how it changes when the tree does.

Symbols: V is the volume of the graph (the sum of degrees) and v_a that of the vertices below node a; g_a is the
weight of the edges that leave a; c_ij that of the edges between i and j; E_a that of the edges inside a; e_a that
of the edges which meet in a, i.e. lie inside a but inside none of its children.
"""

from math import log2

import numpy as np

from hitin.coding_tree.graph import Graph, sums
from hitin.coding_tree.running import kernel
from hitin.coding_tree.tree import CodingTree


def structural_entropy(graph: Graph, tree: CodingTree) -> float:
    """Eq. 6: minus the sum over all nodes a but the root of g_a / V * log2(v_a / v_parent), in bits."""
    _check_fit(graph, tree)
    if not graph.volume:
        return 0.0
    entropy = 0.0
    ends = graph.edges.T
    volumes = graph.degrees
    for partition, above in zip(tree.partitions(), tree.child_to_parent, strict=False):
        first, second = partition[ends[0]], partition[ends[1]]
        crossing = np.where(first != second, graph.weights, 0.0)
        cuts = sums(first, crossing, len(above)) + sums(second, crossing, len(above))  # g_a
        parents = sums(above, volumes, int(above.max()) + 1)
        cut = cuts > 0  # a node that no edge leaves adds nothing, whatever its volume
        entropy += float(np.dot(cuts[cut], np.log2(parents[above[cut]] / volumes[cut])))
        volumes = parents
    return entropy / graph.volume


def flat_entropy(graph: Graph) -> float:
    """H^1: the entropy under the star, in which every vertex is a child of the root."""
    cut = graph.cuts > 0
    if not cut.any():
        return 0.0
    return float(np.dot(graph.cuts[cut], np.log2(graph.volume / graph.degrees[cut]))) / graph.volume


def entropy_by_identity(graph: Graph, tree: CodingTree) -> float:
    """The same number another way: H^1 - 2 / V * sum over inner nodes a of e_a * log2(V / v_a)."""
    _check_fit(graph, tree)
    if not graph.volume:
        return 0.0
    saved = 0.0
    apart = np.ones(len(graph.edges), dtype=bool)  # edges whose ends have not met
    for layer, partition in enumerate(tree.partitions()):
        if 0 < layer < tree.height:
            meeting = apart & (partition[graph.edges[:, 0]] == partition[graph.edges[:, 1]])
            apart &= ~meeting
            volumes = np.bincount(partition, graph.degrees)
            met = volumes[partition[graph.edges[meeting, 0]]]
            saved += float(np.dot(graph.weights[meeting], np.log2(graph.volume / met)))
    return flat_entropy(graph) - 2 * saved / graph.volume


def _check_fit(graph: Graph, tree: CodingTree) -> None:
    if not isinstance(graph, Graph) or not isinstance(tree, CodingTree):
        raise TypeError("the structural entropy is that of a Graph under a CodingTree")
    if tree.vertices != graph.vertices:
        raise ValueError(f"a tree over {tree.vertices} vertices does not fit a graph of {graph.vertices}")


@kernel
def merge_delta(cut: float, volume_i: float, volume_j: float, volume: float) -> float:
    """The change when a node is inserted between the root and its children i and j; never positive."""
    return -2.0 * cut / volume * log2(volume / (volume_i + volume_j))


@kernel
def delete_delta(met: float, volume_a: float, volume_parent: float, volume: float) -> float:
    """The change when node a, in which edges of weight `met` (e_a) meet, is deleted; never negative."""
    return 2.0 * met / volume * log2(volume_parent / volume_a)


@kernel
def fuse_delta(cut: float, inside_i: float, volume_i: float, inside_j: float, volume_j: float, volume: float) -> float:
    """The change when two modules of a tree of height 2, joined by an edge, become one."""
    both = volume_i + volume_j
    saved = cut * log2(volume / both)
    spent = inside_i * log2(both / volume_i) + inside_j * log2(both / volume_j)
    return 2.0 * (spent - saved) / volume
