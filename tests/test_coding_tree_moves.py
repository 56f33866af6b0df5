"""Local moves: never worse, nothing left to move, groups made where there were none."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitin.coding_tree import CodingTree, Graph
from hitin.coding_tree.moves import improved
from hitin.coding_tree.running import Runner
from tests.coding_trees import entropy_of
from tests.strategies import graphs, nested_partitions


@given(st.data(), st.booleans())
def test_local_moves_never_raise_the_entropy(data: st.DataObject, compiled: bool) -> None:
    graph = data.draw(graphs(12).filter(lambda graph: len(graph.edges) > 0))
    partitions = data.draw(nested_partitions(graph.vertices, data.draw(st.integers(2, 4))))
    better = improved(graph, partitions, Runner(compiled))
    assert len(better) == len(partitions)
    assert entropy_of(graph, better) <= entropy_of(graph, partitions) + 1e-12
    for below, above in itertools.pairwise(better):  # each layer is coarser than the one below
        assert all(len(set(above[below == node])) == 1 for node in set(below.tolist()))


def test_local_moves_find_two_cliques_from_a_poor_start() -> None:
    cliques = nx.barbell_graph(5, 0)
    graph = Graph(10, list(cliques.edges))
    start = [np.arange(10), np.array([0, 0, 0, 0, 1, 0, 1, 1, 1, 1]), np.zeros(10, dtype=np.int64)]
    better = improved(graph, start, Runner(compiled=False))
    assert CodingTree.from_partitions(better).groups() == [tuple(range(5)), tuple(range(5, 10))]


@pytest.mark.parametrize("height", [2, 3])
def test_local_moves_make_a_group_where_there_was_none(height: int) -> None:
    """A clique that is nearly all of the graph is better split, though there is no other group for its vertices."""
    clique = list(itertools.combinations(range(6), 2))
    graph = Graph(8, [*clique, (6, 7)])
    together = np.array([0] * 6 + [1] * 2)
    start = [np.arange(8), *[together] * (height - 1), np.zeros(8, dtype=np.int64)]
    better = improved(graph, start, Runner(compiled=False))
    assert CodingTree.from_partitions(better).groups() == [(0, 1, 2), (3, 4, 5), (6, 7)]
    assert entropy_of(graph, better) < entropy_of(graph, start)


@given(graphs(30, weights=st.just(1.0)).filter(lambda graph: len(graph.edges) > 0), st.integers(2, 4))
@settings(max_examples=30)
def test_what_local_moves_leave_cannot_be_moved(graph: Graph, height: int) -> None:
    start = [*[np.arange(graph.vertices)] * height, np.zeros(graph.vertices, dtype=np.int64)]
    once = improved(graph, start, Runner(compiled=False))
    again = improved(graph, once, Runner(compiled=False))
    assert CodingTree.from_partitions(once) == CodingTree.from_partitions(again)
