"""Trees to compare with: one that knows nothing of the graph, and the taxonomy itself."""

import numpy as np

from hitin.coding_tree.draft import NONE, Draft
from hitin.coding_tree.graph import Graph, Ids, sums
from hitin.coding_tree.running import Runner, kernel
from hitin.taxonomy import Taxonomy


def random_partitions(vertices: int, height: int, seed: int) -> list[Ids]:
    """The paper's random algorithm (Section 5.3): on each layer the nodes are paired at random, one may stay alone."""
    draw = np.random.RandomState(seed)  # whose numbers will never change
    partition = np.arange(vertices)
    partitions = [partition]
    for _ in range(height - 1):
        count = int(partition.max()) + 1
        parent = np.empty(count, dtype=np.int64)
        parent[draw.permutation(count)] = np.arange(count) // 2
        partition = parent[partition]
        partitions.append(partition)
    return [*partitions, np.zeros(vertices, dtype=np.int64)]


def taxonomy_draft(taxonomy: Taxonomy, graph: Graph, runner: Runner) -> Draft:
    """The label tree: a node for every label that has children, above the label itself and the nodes of its children.

    A label with several parents is put under the deepest of them (the first of those); its other edges meet in the
    lowest node above both ends. The artificial root, if it is a vertex, is a child of the root.
    """
    labels = len(taxonomy)  # also stands for the artificial root below
    parent = _deepest_parents(taxonomy)
    inner = np.flatnonzero(taxonomy.child_counts)[::-1]  # parents have the smaller numbers, nodes are made from below
    node = np.full(labels + 1, NONE)
    node[inner] = np.arange(len(inner))
    leaf = taxonomy.child_counts == 0
    holder = np.where(leaf, parent[:-1], np.arange(labels))  # the label whose node a label hangs from
    above = np.full(graph.vertices, NONE)
    above[:labels] = node[holder]
    nodes_above = node[parent[inner]]
    meeting = _meeting_labels(taxonomy, parent)
    volume = runner.sequence(sums(holder, graph.degrees[:labels], labels + 1)[inner])
    inside = runner.sequence(sums(meeting, np.ones(len(meeting)), labels + 1)[inner])
    runner.run(add_up, runner.sequence(nodes_above), volume, inside)
    return Draft(graph.vertices, np.concatenate([above, nodes_above]), np.asarray(volume), np.asarray(inside))


@kernel
def add_up(above: list[int], volume: list[float], inside: list[float]) -> None:
    """Each node's own numbers become those of all below it."""
    for a in range(len(above)):
        if above[a] != NONE:
            volume[above[a]] += volume[a]
            inside[above[a]] += inside[a]


def _deepest_parents(taxonomy: Taxonomy) -> Ids:
    """The parent of each label on the level right above it; the number of labels where there is none."""
    parents, children = taxonomy.edges[::-1].T  # so that the first parent is written last, and stays
    deepest = taxonomy.levels[parents] == taxonomy.levels[children] - 1
    parent = np.full(len(taxonomy) + 1, len(taxonomy))
    parent[children[deepest]] = parents[deepest]
    return parent


def _meeting_labels(taxonomy: Taxonomy, parent: Ids) -> Ids:
    """For each edge the label at which its two ends come together, going from parent to parent."""
    upper: Ids = taxonomy.edges[:, 0]
    lower: Ids = taxonomy.edges[:, 1]
    if taxonomy.is_tree:
        return upper
    leaps = [parent]  # leaps[j] goes up 2 ** j levels
    while (leaps[-1] != len(taxonomy)).any():
        leaps.append(leaps[-1][leaps[-1]])
    behind = taxonomy.levels[lower] - taxonomy.levels[upper]
    for power, leap in enumerate(leaps):
        lower = np.where(behind >> power & 1, leap[lower], lower)
    for leap in reversed(leaps):
        apart = leap[upper] != leap[lower]
        upper, lower = np.where(apart, leap[upper], upper), np.where(apart, leap[lower], lower)
    return np.where(upper == lower, upper, parent[upper])
