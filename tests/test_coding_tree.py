"""`coding_tree`: every method against brute force, the paper to the letter, and what must hold of every tree."""

import json
import os
import subprocess
import sys
from random import Random

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitin import Taxonomy
from hitin.coding_tree import CodingTree, Graph, Method, coding_tree, structural_entropy
from tests.coding_trees import literal_algorithm_1
from tests.strategies import graphs, taxonomies

METHODS: tuple[Method, ...] = ("optimal", "paper", "random")


@given(graphs(8, weights=st.integers(1, 4).map(float)), st.integers(1, 4))
@settings(max_examples=60)
def test_paper_is_algorithm_1_to_the_letter(graph: Graph, height: int) -> None:
    assert coding_tree(graph, height, "paper") == CodingTree.from_partitions(literal_algorithm_1(graph, height))


@given(graphs(9, weights=st.just(1.0), forest=True), st.integers(2, 4))
@settings(max_examples=60)
def test_paper_is_algorithm_1_to_the_letter_on_forests_full_of_ties(graph: Graph, height: int) -> None:
    assert coding_tree(graph, height, "paper") == CodingTree.from_partitions(literal_algorithm_1(graph, height))


@given(graphs(), st.integers(1, 6), st.sampled_from(METHODS))
def test_every_vertex_is_at_the_same_depth_and_the_entropy_is_that_of_the_tree(
    graph: Graph, height: int, method: Method
) -> None:
    tree = coding_tree(graph, height, method)
    assert tree.height == height
    assert [len(layer) for layer in tree.child_to_parent] == list(tree.layer_sizes[:-1])
    assert tree.layer_sizes[0] == graph.vertices
    node, depth = np.arange(graph.vertices), 0
    while (tree.parents[node] != -1).all():
        node, depth = tree.parents[node], depth + 1
    assert depth == height
    assert set(node) == {len(tree) - 1}
    assert tree.entropy == structural_entropy(graph, tree)
    if method != "random":
        assert tree.entropy <= tree.flat_entropy + 1e-12


@given(graphs(12), st.integers(1, 10))
@settings(max_examples=50)
def test_a_higher_tree_has_no_more_entropy(graph: Graph, height: int) -> None:
    assert coding_tree(graph, height + 1).entropy <= coding_tree(graph, height).entropy + 1e-9


def test_a_higher_tree_of_a_larger_graph_has_no_more_entropy_beyond_the_height_of_moves() -> None:
    network = nx.gnm_random_graph(600, 1_200, seed=0)
    graph = Graph(600, list(network.edges))
    entropies = [coding_tree(graph, height, compiled=True).entropy for height in (8, 9, 12)]
    assert entropies == sorted(entropies, reverse=True)


@given(graphs(25, weights=st.just(1.0)), st.integers(1, 6))
@settings(max_examples=40)
def test_optimal_is_never_worse_than_paper(graph: Graph, height: int) -> None:
    assert coding_tree(graph, height).entropy <= coding_tree(graph, height, "paper").entropy + 1e-9


def test_optimal_is_not_worse_than_paper_where_the_fusion_rule_alone_would_be() -> None:
    edges = "0-12 0-15 1-22 2-14 2-16 3-8 3-12 4-16 5-9 5-11 5-13 6-20 6-21 7-11 8-15 9-12 10-11 15-21"
    graph = Graph(23, [tuple(map(int, edge.split("-"))) for edge in edges.split()])
    assert coding_tree(graph).entropy <= coding_tree(graph, method="paper").entropy + 1e-9


@given(graphs(7))
def test_height_1_is_the_star(graph: Graph) -> None:
    for method in METHODS:
        tree = coding_tree(graph, 1, method)
        assert tree.layer_sizes == (graph.vertices, 1)
        assert tree.entropy == pytest.approx(tree.flat_entropy, abs=1e-12)


def test_a_height_beyond_what_is_useful_is_padded_with_the_entropy_unchanged() -> None:
    graph = Graph(5, [(0, 1), (1, 2), (3, 4)])
    for method in ("optimal", "paper"):
        useful, padded = coding_tree(graph, 4, method), coding_tree(graph, 9, method)
        assert padded.entropy == pytest.approx(useful.entropy, abs=1e-12)
        assert padded.height == 9
        assert len(set(padded.layer_sizes)) < 6


def test_vertices_that_no_edge_touches_hang_from_the_root() -> None:
    tree = coding_tree(Graph(5, [(0, 1)]), 3)
    assert tree.groups(2) == [(0, 1), (2,), (3,), (4,)] or tree.groups(2) == [(0,), (1,), (2,), (3,), (4,)]
    assert coding_tree(Graph(4), 2).layer_sizes == (4, 4, 1)
    assert coding_tree(Graph(1), 3).layer_sizes == (1, 1, 1, 1)


@given(graphs(9), st.integers(2, 4), st.randoms(use_true_random=False), st.sampled_from(METHODS))
def test_the_order_and_direction_of_edges_make_no_difference(
    graph: Graph, height: int, random: Random, method: Method
) -> None:
    ends = [
        (tuple(edge) if random.random() < 0.5 else tuple(edge[::-1]), weight)
        for edge, weight in zip(graph.edges.tolist(), graph.weights.tolist(), strict=True)
    ]
    ends += [((i, i), weight) for i, weight in enumerate(graph.loops.tolist())]
    random.shuffle(ends)
    again = Graph(graph.vertices, [edge for edge, _ in ends], [weight for _, weight in ends])
    one, two = coding_tree(graph, height, method), coding_tree(again, height, method)
    assert one == two
    assert one.entropy == two.entropy


def test_the_tree_does_not_depend_on_the_hash_seed() -> None:
    script = (
        "import json, networkx as nx; from hitin.coding_tree import Graph, coding_tree;"
        "graph = nx.gnp_random_graph(40, 0.2, seed=1); tree = nx.random_labeled_tree(60, seed=1);"
        "print(json.dumps([coding_tree(Graph(len(g), list(g.edges)), 3, m).to_json()"
        " for g in (graph, tree) for m in ('optimal', 'paper', 'random')]))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1
    assert len(json.loads(found.pop())) == 6


def test_random_pairs_the_nodes_of_each_layer() -> None:
    graph = Graph(11, [(0, 1), (2, 3)])
    tree = coding_tree(graph, 4, "random", seed=3)
    assert tree.layer_sizes == (11, 6, 3, 2, 1)
    for layer in tree.child_to_parent[:-1]:
        assert sorted(np.bincount(layer))[1:] == [2] * (len(layer) // 2) or len(layer) % 2 == 0
        assert np.bincount(layer).max() == 2
    assert tree == coding_tree(graph, 4, "random", seed=3)
    assert tree != coding_tree(graph, 4, "random", seed=4)
    assert coding_tree(graph, 9, "random").layer_sizes == (11, 6, 3, 2, 1, 1, 1, 1, 1, 1)


def test_taxonomy_groups_labels_as_their_tree_does() -> None:
    taxonomy = Taxonomy.from_paths([["A", "a", "x"], ["A", "a", "y"], ["A", "b"], ["B", "c"], ["C"]])
    tree = coding_tree(taxonomy, 3, "taxonomy")
    names = [sorted(taxonomy.labels[i] for i in group) for group in tree.groups(2)]
    assert names == [["A", "a", "b", "x", "y"], ["B", "c"], ["C"]]
    assert [sorted(taxonomy.labels[i] for i in group) for group in tree.groups(1)] == [
        ["A"],
        ["B", "c"],
        ["C"],
        ["a", "x", "y"],
        ["b"],
    ]


@given(taxonomies(), st.integers(1, 5), st.booleans())
def test_taxonomy_keeps_labels_of_one_parent_together_also_in_dags(
    taxonomy: Taxonomy, height: int, with_root: bool
) -> None:
    tree = coding_tree(taxonomy, height, "taxonomy", with_root=with_root)
    assert tree.height == height
    assert tree.labels == (*taxonomy.labels, "Root") if with_root else taxonomy.labels
    below: dict[int, set[int]] = {label: {label} for label in range(len(taxonomy))}
    for label in range(len(taxonomy) - 1, -1, -1):
        parents = [p for p in taxonomy.parents(label).tolist() if taxonomy.levels[p] == taxonomy.levels[label] - 1]
        if parents:
            below[parents[0]] |= below[label]
    allowed = {frozenset(group) for group in below.values()} | {frozenset([i]) for i in range(tree.vertices)}
    for layer in range(1, height):
        assert {frozenset(group) for group in tree.groups(layer)} <= allowed


def test_a_taxonomy_is_a_graph_without_its_root_unless_asked() -> None:
    taxonomy = Taxonomy.from_paths([["A", "a"], ["B", "b"]])
    assert coding_tree(taxonomy).labels == taxonomy.labels
    assert coding_tree(taxonomy, with_root=True).labels == (*taxonomy.labels, "Root")
    assert coding_tree(taxonomy) == coding_tree(Graph(4, taxonomy.edges, labels=taxonomy.labels))


@pytest.mark.parametrize("height", [0, -1, 2.0, True, "2", None])
def test_a_height_that_is_no_whole_number_from_1_on_is_refused(height: object) -> None:
    with pytest.raises(ValueError, match="the height of a coding tree is a whole number from 1 on"):
        coding_tree(Graph(2, [(0, 1)]), height)  # type: ignore[arg-type]


def test_other_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="no method 'best'; the methods are optimal, paper, random, taxonomy"):
        coding_tree(Graph(2), 2, "best")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'taxonomy' needs a Taxonomy"):
        coding_tree(Graph(2), 2, "taxonomy")
    with pytest.raises(ValueError, match="with_root is for a Taxonomy"):
        coding_tree(Graph(2), with_root=True)
    for seed in (-1, 1.5, "x", None, True, 2**32):
        with pytest.raises(ValueError, match="the seed is a whole number from 0 to 4294967295"):
            coding_tree(Graph(2), 2, "random", seed=seed)  # type: ignore[arg-type]
    for thing in (None, [(0, 1)], "taxonomy.tsv"):
        with pytest.raises(TypeError, match="a coding tree is made of a Graph or a Taxonomy"):
            coding_tree(thing)  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 7.7])
@given(graph=graphs(12, weights=st.integers(1, 3).map(float)), height=st.integers(2, 4))
@settings(max_examples=40)
def test_ties_are_ties_whatever_the_rounding_of_weights(graph: Graph, height: int, scale: float) -> None:
    loops = [(i, i) for i in range(graph.vertices)]
    weights = np.concatenate([graph.weights, graph.loops]) * scale
    scaled = Graph(graph.vertices, [*graph.edges.tolist(), *loops], weights)
    assert coding_tree(scaled, height, "paper") == coding_tree(graph, height, "paper")


def test_an_entropy_that_the_identity_does_not_confirm_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitin.coding_tree.construction.entropy_by_identity", lambda *_: 1.0)
    with pytest.raises(ArithmeticError, match=r"by Eq\. 6 but 1\.0 by the identity"):
        coding_tree(Graph(3, [(0, 1), (1, 2)]))
