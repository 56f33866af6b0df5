"""Structural entropy: Eq. 6, the identity, and the changes."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin.coding_tree import CodingTree, Graph, structural_entropy
from hitin.coding_tree.entropy import delete_delta, entropy_by_identity, flat_entropy, fuse_delta, merge_delta
from tests.coding_trees import entropy_of
from tests.strategies import graphs, nested_partitions


def test_the_entropy_of_a_path_of_four_is_what_one_computes_by_hand() -> None:
    graph = Graph(4, [(0, 1), (1, 2), (2, 3)])  # degrees 1 2 2 1, volume 6
    halves = CodingTree([[0, 0, 1, 1], [0, 0]], entropy=0, flat_entropy=0)
    by_hand = 2 * (1 / 6 * math.log2(3 / 1) + 2 / 6 * math.log2(3 / 2) + 1 / 6 * math.log2(6 / 3))
    assert structural_entropy(graph, halves) == pytest.approx(by_hand, abs=1e-15)
    star = 2 * (1 / 6 * math.log2(6) + 2 / 6 * math.log2(3))
    assert flat_entropy(graph) == pytest.approx(star, abs=1e-15)


@given(st.data())
def test_eq_6_is_what_networkx_sees_in_the_graph(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    partitions = data.draw(nested_partitions(graph.vertices, data.draw(st.integers(1, 4))))
    other = nx.Graph()
    other.add_nodes_from(range(graph.vertices))
    for (i, j), weight in zip(graph.edges.tolist(), graph.weights.tolist(), strict=True):
        other.add_edge(i, j, weight=weight)
    other.add_edges_from((i, i, {"weight": weight}) for i, weight in enumerate(graph.loops.tolist()) if weight)
    total = sum(degree for _, degree in other.degree(weight="weight"))
    assert graph.volume == pytest.approx(total)
    entropy = 0.0
    for below, above in itertools.pairwise(partitions):
        for node in set(below.tolist()):
            members = np.flatnonzero(below == node)
            around = np.flatnonzero(above == above[members[0]])
            cut = nx.cut_size(other, members.tolist(), weight="weight")
            if cut:
                volumes = [nx.volume(other, group.tolist(), weight="weight") for group in (members, around)]
                entropy -= cut / total * math.log2(volumes[0] / volumes[1])
    assert entropy_of(graph, partitions) == pytest.approx(entropy, abs=1e-12)


@given(st.data())
def test_the_identity_gives_the_same_number(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    partitions = data.draw(nested_partitions(graph.vertices, data.draw(st.integers(1, 4))))
    tree = CodingTree.from_partitions(partitions)
    assert entropy_by_identity(graph, tree) == pytest.approx(structural_entropy(graph, tree), abs=1e-12)


def inside(graph: Graph, members: set[int]) -> float:
    both = np.isin(graph.edges, sorted(members)).all(axis=1)
    return float(graph.weights[both].sum())


def volume(graph: Graph, members: set[int]) -> float:
    return float(graph.degrees[sorted(members)].sum())


@given(st.data())
def test_merging_and_fusing_change_the_entropy_by_their_deltas(data: st.DataObject) -> None:
    graph = data.draw(graphs().filter(lambda graph: graph.vertices > 1 and len(graph.edges) > 0))
    _, modules, top = data.draw(nested_partitions(graph.vertices, 2))
    vertices = np.arange(graph.vertices)
    if len(set(modules.tolist())) < 2:
        modules = vertices
    i, j = data.draw(st.permutations(sorted(set(modules.tolist()))))[:2]
    both = np.where(modules == j, i, modules)
    one, two = set(np.flatnonzero(modules == i).tolist()), set(np.flatnonzero(modules == j).tolist())
    cut = inside(graph, one | two) - inside(graph, one) - inside(graph, two)
    volumes = volume(graph, one), volume(graph, two)
    if not cut:
        return
    before = entropy_of(graph, [vertices, modules, top])
    merged = entropy_of(graph, [vertices, modules, both, top])
    assert merged - before == pytest.approx(merge_delta(cut, *volumes, graph.volume), abs=1e-12)
    fused = entropy_of(graph, [vertices, both, top])
    delta = fuse_delta(cut, inside(graph, one), volumes[0], inside(graph, two), volumes[1], graph.volume)
    assert fused - before == pytest.approx(delta, abs=1e-12)


@given(st.data())
def test_deleting_a_node_changes_the_entropy_by_its_delta(data: st.DataObject) -> None:
    graph = data.draw(graphs().filter(lambda graph: len(graph.edges) > 0))
    vertices, low, high, top = data.draw(nested_partitions(graph.vertices, 3))
    node = int(data.draw(st.sampled_from(sorted(set(high.tolist())))))
    members = set(np.flatnonzero(high == node).tolist())
    children = [set(np.flatnonzero(low == child).tolist()) for child in set(low[sorted(members)].tolist())]
    met = inside(graph, members) - sum(inside(graph, child) for child in children)
    if not met:
        return
    without = np.where(high == node, graph.vertices + low, high)  # its children go to the root, with a unary node
    before, after = entropy_of(graph, [vertices, low, high, top]), entropy_of(graph, [vertices, low, without, top])
    delta = delete_delta(met, volume(graph, members), graph.volume, graph.volume)
    assert after - before == pytest.approx(delta, abs=1e-12)


def test_a_graph_without_edges_has_no_entropy() -> None:
    for graph in (Graph(3), Graph(3, [(1, 1)], [2.0])):
        assert entropy_of(graph, [np.arange(3), np.array([0, 0, 1]), np.zeros(3, dtype=np.int64)]) == 0
        assert flat_entropy(graph) == 0


def test_a_tree_over_other_vertices_is_refused() -> None:
    with pytest.raises(ValueError, match="3 vertices does not fit a graph of 2"):
        entropy_of(Graph(2, [(0, 1)]), [np.arange(3), np.zeros(3, dtype=np.int64)])
    with pytest.raises(TypeError, match="a Graph under a CodingTree"):
        structural_entropy(CodingTree([[0, 0]], entropy=0, flat_entropy=0), Graph(2))  # type: ignore[arg-type]
