"""`Graph` and `CodingTree`: what they take, what they refuse, and the ways out and back in."""

import itertools
import json
import pickle
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from hitin import Taxonomy
from hitin.coding_tree import CodingTree, Graph, coding_tree
from tests.strategies import graphs, nested_partitions


def test_edges_add_up_loops_count_twice_and_nothing_is_dense() -> None:
    graph = Graph(5, [(1, 0), (0, 1), (2, 2), (3, 1), (3, 4)], [1, 2, 5, 4, 0])
    assert graph.edges.tolist() == [[0, 1], [1, 3]]
    assert graph.weights.tolist() == [3, 4]
    assert graph.loops.tolist() == [0, 0, 5, 0, 0]
    assert graph.cuts.tolist() == [3, 7, 0, 4, 0]
    assert graph.degrees.tolist() == [3, 7, 10, 4, 0]
    assert graph.volume == 24
    assert repr(Graph(1_000_000, [(0, 999_999)])) == "Graph(1,000,000 vertices, 1 edge)"


@given(graphs())
def test_a_matrix_makes_the_same_graph_dense_or_sparse(graph: Graph) -> None:
    matrix = np.diag(graph.loops)
    matrix[tuple(graph.edges.T)] = matrix[tuple(graph.edges.T[::-1])] = graph.weights
    for given_matrix in (matrix, scipy.sparse.csr_array(matrix)):
        again = Graph.from_matrix(given_matrix)
        assert np.array_equal(again.edges, graph.edges)
        assert np.allclose(again.degrees, graph.degrees)


def test_the_order_in_which_edges_and_loops_are_given_changes_not_a_bit() -> None:
    for weights in itertools.permutations([0.1, 0.2, 0.3, 0.7]):
        graph = Graph(2, [(0, 1)] * 4 + [(1, 1)] * 4, [*weights, *weights])
        assert graph.weights.tolist() == [0.1 + 0.2 + 0.3 + 0.7]
        assert graph.loops.tolist() == [0, 0.1 + 0.2 + 0.3 + 0.7]


def test_a_directed_matrix_is_made_symmetric() -> None:
    assert Graph.from_matrix(np.array([[0, 2], [0, 0]])).degrees.tolist() == [1, 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0,), "the graph is empty"),
        ((-1,), "the graph is empty"),
        ((2.5,), "the number of vertices must be a whole number, not 2.5"),
        ((True,), "must be a whole number"),
        ((2, [(0, 2)]), "edge 0 joins 0 and 2, but the vertices are numbered 0 to 1"),
        ((2, [(0, 1), (-1, 0)]), "edge 1 joins -1 and 0"),
        ((2, [(0.0, 1.0)]), "the ends of edges are vertex numbers, not float64"),
        ((2, [0, 1]), r"edges are pairs of vertices, an array of shape \(edges, 2\), not \(2,\)"),
        ((2, [(0, 1)], [-1]), r"edge 0 \(0, 1\) has the weight -1.0: weights must be finite and not negative"),
        ((2, [(0, 1)], [float("nan")]), "has the weight nan"),
        ((2, [(0, 1)], [float("inf")]), "has the weight inf"),
        ((2, [(0, 1)], [1, 2]), r"1 edge needs as many weights, not an array of shape \(2,\)"),
        ((2, [(0, 1)], ["heavy"]), "weights must be numbers"),
        ((2, [(0, 1)], ["1"]), "weights must be numbers"),
        ((2, [(0, 1)], [1j]), "weights must be numbers"),
        ((2, [(0, 1)], [10**400]), "weights must be numbers"),
        ((10**30,), "a graph can have 2,147,483,648 vertices at most, not 1,000"),
        ((2, [(0, 1), (1,)]), "edges are pairs of vertices"),
        ((2, (), None, "AB"), "labels are a list of names, in the order of the vertices, not a str"),
        ((2, (), None, {"A", "B"}), "not a set"),
        ((2, (), None, 5), "not a int"),
        ((2, (), None, ["A", 2]), "labels are names, which 2 is not"),
    ],
)
def test_a_graph_that_is_none_is_refused_with_the_reason(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Graph(*arguments)


def test_other_wrong_graphs_are_refused() -> None:
    with pytest.raises(ValueError, match=r"square, not of shape \(2, 3\)"):
        Graph.from_matrix(np.zeros((2, 3)))
    with pytest.raises(ValueError, match=r"edge 0 \(0, 1\) has the weight -2.0"):
        Graph.from_matrix(np.array([[0, -2.0], [0, 0]]))
    for matrix in (None, [["a"]], [[1j]], [1, 2]):
        with pytest.raises(ValueError, match=r"square|weights must be numbers"):
            Graph.from_matrix(matrix)
    with pytest.raises(ValueError, match="2 vertices need as many labels, not 1"):
        Graph(2, labels=["A"])


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e200, 1e307])
def test_the_scale_of_the_weights_makes_no_difference(scale: float) -> None:
    edges = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5)]
    weights = np.array([3.0, 1.0, 4.0, 1.0, 5.0, 1.0])
    plain = coding_tree(Graph(6, edges, weights))
    scaled = coding_tree(Graph(6, edges, weights * scale))
    assert scaled == plain
    assert scaled.entropy == pytest.approx(plain.entropy, rel=1e-3 if scale < 1e-300 else 1e-12)


def test_what_was_scaled_is_not_scaled_again() -> None:
    graph = Graph(3, [(0, 1), (0, 1), (1, 2)], [1.5 * 2.0**299] * 2 + [2.0**-299])
    again = pickle.loads(pickle.dumps(graph))
    assert again.edges.tolist() == graph.edges.tolist()
    assert again.weights.tolist() == graph.weights.tolist()


def test_an_edge_that_vanishes_beside_another_is_none() -> None:
    tree = coding_tree(Graph(4, [(0, 1), (2, 3)], [1e300, 1e-300]))
    assert np.isfinite(tree.entropy)


def test_a_taxonomy_is_a_graph_with_or_without_its_root() -> None:
    taxonomy = Taxonomy.from_paths([["A", "a"], ["B"]])
    assert Graph.from_taxonomy(taxonomy).edges.tolist() == [[0, 2]]
    with_root = Graph.from_taxonomy(taxonomy, with_root=True)
    assert with_root.labels == ("A", "B", "a", "Root")
    assert with_root.edges.tolist() == [[0, 2], [0, 3], [1, 3]]


TREE = CodingTree([[0, 1, 0, 2], [0, 1, 0], [0, 0]], entropy=1.5, flat_entropy=2, method="paper", labels=list("ABCD"))


def test_a_tree_tells_its_parents_layers_and_groups() -> None:
    assert TREE.height == 3
    assert TREE.vertices == 4
    assert len(TREE) == 10
    assert TREE.layer_sizes == (4, 3, 2, 1)
    assert TREE.parents.tolist() == [4, 5, 4, 6, 7, 8, 7, 9, 9, -1]
    assert TREE.layers.tolist() == [0, 0, 0, 0, 1, 1, 1, 2, 2, 3]
    assert TREE.groups() == [(0, 2), (1,), (3,)]
    assert TREE.groups(2) == [(0, 2, 3), (1,)]
    assert repr(TREE) == "CodingTree(4 > 3 > 2 > 1, 1.5000 of 2.0000 bits)"
    for layer in (4, -1, 1.5):
        with pytest.raises(ValueError, match=f"layers are numbered 0 to 3, there is no {layer}"):
            TREE.groups(layer)  # type: ignore[arg-type]


def test_neither_a_graph_nor_a_tree_changes() -> None:
    graph = pickle.loads(pickle.dumps(Graph(3, [(0, 1), (2, 2)], [1, 4], labels=list("ABC"))))
    assert (graph.edges.tolist(), graph.loops.tolist(), graph.labels) == ([[0, 1]], [0, 0, 4], ("A", "B", "C"))
    for array in (graph.edges, graph.weights, graph.loops, graph.cuts, graph.degrees):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
    for thing, name in ((graph, "volume"), (TREE, "entropy"), (TREE, "labels"), (TREE, "child_to_parent")):
        with pytest.raises(AttributeError, match=f"does not change: its {name} cannot be set"):
            setattr(thing, name, 1)
    for array in (*TREE.child_to_parent, TREE.parents, TREE.layers):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_trees_are_equal_however_their_nodes_were_numbered() -> None:
    other = CodingTree([[2, 0, 2, 1], [1, 1, 0], [0, 0]], entropy=0, flat_entropy=0, labels=list("ABCD"))
    assert other != TREE
    same = CodingTree([[1, 2, 1, 0], [1, 1, 0], [0, 0]], entropy=0, flat_entropy=0, labels=list("ABCD"))
    assert same == TREE
    assert hash(same) == hash(TREE)
    assert CodingTree([[0, 1, 0, 2], [0, 1, 0], [0, 0]], entropy=1.5, flat_entropy=2) != TREE
    assert TREE != "a tree"


@given(st.data())
def test_json_and_pickle_bring_the_same_tree_back(data: st.DataObject) -> None:
    graph = data.draw(graphs())
    tree = CodingTree.from_partitions(data.draw(nested_partitions(graph.vertices, data.draw(st.integers(1, 4)))))
    tree = tree.with_entropy(1.25, 2.5)
    for again in (CodingTree.from_json(json.loads(json.dumps(tree.to_json()))), pickle.loads(pickle.dumps(tree))):
        assert again == tree
        assert (again.entropy, again.flat_entropy) == (1.25, 2.5)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ([], "a height of at least 1"),
        ([[]], "layer 0 must be a list"),
        ([[0, -1]], "layer 0 must be a list"),
        ([[0.5, 0]], "layer 0 must be a list"),
        ([[0, 1], [0]], "layer 1 has 1 nodes, but the layer below leads to 2"),
        ([[0, 1]], "must lead to one root"),
        ([[0, 2, 2], [0, 0, 0]], "layer 1 has a node that no vertex leads to"),
        ([np.array([0, 2**64 - 1], dtype=np.uint64), [0]], "layer 0 must be a list"),
    ],
)
def test_layers_that_are_no_tree_are_refused(layers: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CodingTree(layers, entropy=0, flat_entropy=0)


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        "tree",
        {"child_to_parent": [[0]], "entropy": 1},
        {"child_to_parent": 3},
        {**TREE.to_json(), "entropy": 10**400},
        {**TREE.to_json(), "entropy": "much"},
        {**TREE.to_json(), "method": 5},
        {**TREE.to_json(), "height": 2},
        {**TREE.to_json(), "layer_sizes": [4, 3, 1]},
        {**TREE.to_json(), "labels": ["A", "B", "C", 4]},
        {**TREE.to_json(), "child_to_parent": [[0, 10**30, 0, 2], [0, 1, 0], [0, 0]]},
    ],
)
def test_json_that_is_no_tree_is_refused(data: Any) -> None:
    with pytest.raises(ValueError, match="this is not a coding tree"):
        CodingTree.from_json(data)


def test_labels_must_be_as_many_as_vertices() -> None:
    with pytest.raises(ValueError, match="2 vertices need as many labels, not 3"):
        CodingTree([[0, 0]], entropy=0, flat_entropy=0, labels=list("ABC"))
