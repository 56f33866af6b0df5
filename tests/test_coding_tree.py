"""`coding_tree`: every method against brute force, the paper to the letter, and what must hold of every tree."""

import itertools
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitin import Taxonomy
from hitin.coding_tree import CodingTree, Graph, Method, coding_tree, structural_entropy
from hitin.coding_tree.exact import best_modules, unbeaten
from hitin.coding_tree.forest import uppers
from hitin.coding_tree.moves import improved
from hitin.coding_tree.running import Runner
from tests.coding_trees import all_coding_trees, entropy_of, least_entropy, literal_algorithm_1
from tests.strategies import graphs, nested_partitions, taxonomies

METHODS: tuple[Method, ...] = ("optimal", "paper", "random")


def all_forests(count: int) -> Iterator[Graph]:
    """Every forest of so many vertices once, whatever its vertices are called; they are called at random."""
    draw = np.random.default_rng(count)
    for sizes in _sizes(count, count):
        for trees in itertools.product(*(list(_trees(size)) for size in sizes)):
            forest = nx.disjoint_union_all(trees)
            names = draw.permutation(count)
            yield Graph(count, [(names[i], names[j]) for i, j in forest.edges])


def _sizes(count: int, most: int) -> Iterator[list[int]]:
    if count == 0:
        yield []
    for size in range(min(count, most), 0, -1):
        for rest in _sizes(count - size, size):
            yield [size, *rest]


def _trees(size: int) -> list[nx.Graph]:
    return [nx.empty_graph(1)] if size == 1 else list(nx.nonisomorphic_trees(size))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
def test_optimal_at_height_2_is_the_optimum_of_every_forest(count: int) -> None:
    for graph in all_forests(count):
        assert coding_tree(graph).entropy == pytest.approx(least_entropy(graph, 2), abs=1e-10)


@given(graphs(7, forest=True))
@settings(max_examples=50)
def test_optimal_at_height_2_is_the_optimum_of_forests_with_weights_and_loops(graph: Graph) -> None:
    assert coding_tree(graph).entropy == pytest.approx(least_entropy(graph, 2), abs=1e-9)


@pytest.mark.parametrize(("height", "most"), [(2, 7), (3, 7)])
def test_no_coding_tree_at_all_is_below_the_least_entropy(height: int, most: int) -> None:
    """The programme over subsets, which the other tests use, against every coding tree there is."""
    draw = np.random.default_rng(0)
    for count in range(2, most + 1):
        edges = [pair for pair in itertools.combinations(range(count), 2) if draw.random() < 0.5]
        graph = Graph(count, edges, draw.random(len(edges)))
        brute = min(entropy_of(graph, partitions) for partitions in all_coding_trees(count, height))
        assert least_entropy(graph, height) == pytest.approx(brute, abs=1e-12)
        assert coding_tree(graph, height).entropy >= brute - 1e-12


def excess(graphs: list[Graph], height: int) -> float:
    """By how much `optimal` lies above the optimum on average, in per cent."""
    found = [(coding_tree(graph, height).entropy, least_entropy(graph, height)) for graph in graphs]
    return float(np.mean([100 * (entropy / least - 1) for entropy, least in found]))


@pytest.mark.parametrize("count", [6, 7])
def test_optimal_at_height_3_is_within_half_a_per_cent_on_trees(count: int) -> None:
    trees = [Graph(count, list(tree.edges)) for tree in nx.nonisomorphic_trees(count)]
    assert excess(trees, 3) < 0.5


@pytest.mark.parametrize(("count", "samples"), [(8, 40), (10, 60)])
def test_optimal_at_height_2_is_within_one_per_cent_on_random_graphs(count: int, samples: int) -> None:
    drawn = [nx.gnp_random_graph(count, 0.5, seed=seed) for seed in range(samples)]
    assert excess([Graph(count, list(graph.edges)) for graph in drawn if graph.edges], 2) < 1


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
@settings(deadline=None, max_examples=50)
def test_a_higher_tree_has_no_more_entropy(graph: Graph, height: int) -> None:
    assert coding_tree(graph, height + 1).entropy <= coding_tree(graph, height).entropy + 1e-9


def test_a_higher_tree_of_a_larger_graph_has_no_more_entropy_beyond_the_height_of_moves() -> None:
    network = nx.gnm_random_graph(600, 1_200, seed=0)
    graph = Graph(600, list(network.edges))
    entropies = [coding_tree(graph, height, compiled=True).entropy for height in (8, 9, 12)]
    assert entropies == sorted(entropies, reverse=True)


@given(graphs(25, weights=st.just(1.0)), st.integers(1, 6))
@settings(deadline=None, max_examples=40)
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
def test_the_order_and_direction_of_edges_make_no_difference(graph: Graph, height: int, random, method: Method) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
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


@given(graphs(30), st.integers(1, 5), st.sampled_from(METHODS))
@settings(deadline=None)
def test_compiled_gives_the_same_tree(graph: Graph, height: int, method: Method) -> None:
    plain = coding_tree(graph, height, method, compiled=False)
    fast = coding_tree(graph, height, method, compiled=True)
    assert plain == fast
    assert plain.entropy == fast.entropy


@given(graphs(60, weights=st.just(1.0), forest=True), st.integers(1, 5), st.sampled_from(METHODS))
@settings(deadline=None)
def test_compiled_gives_the_same_tree_of_a_forest(graph: Graph, height: int, method: Method) -> None:
    assert coding_tree(graph, height, method, compiled=False) == coding_tree(graph, height, method, compiled=True)


@given(st.data(), st.booleans())
@settings(deadline=None)
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


LEAST = {"wos": (5.7792, 3.2869), "nyt": (6.8176, 2.8814), "rcv1": (5.9012, 2.7943)}


@pytest.mark.parametrize("name", LEAST)
def test_the_label_trees_of_the_papers_have_their_least_entropy_at_height_2(name: str, shared: Path) -> None:
    taxonomy = Taxonomy.read(shared / "hierarchies" / f"{name}.taxonomy")
    graph = Graph.from_taxonomy(taxonomy)
    upper = uppers(graph, Runner(compiled=False))
    assert upper is not None
    modules = best_modules(graph, upper)
    assert modules is not None  # the exact programme came to its end: a proof
    exact = entropy_of(graph, [np.arange(len(taxonomy)), modules, np.zeros(len(taxonomy), dtype=np.int64)])
    tree = coding_tree(taxonomy)
    assert tree.entropy == pytest.approx(exact, abs=1e-12)
    assert (round(tree.flat_entropy, 4), round(tree.entropy, 4)) == LEAST[name]


def test_the_label_trees_of_the_papers_have_the_entropies_of_the_other_methods(shared: Path) -> None:
    wos, nyt = (Taxonomy.read(shared / "hierarchies" / f"{name}.taxonomy") for name in ("wos", "nyt"))
    for method in ("optimal", "paper", "taxonomy"):
        assert round(coding_tree(wos, 2, method).entropy, 4) == 3.2869
    assert coding_tree(wos, 2, "random").entropy > 5
    assert coding_tree(nyt, 2, "paper").entropy == pytest.approx(3.60, abs=0.01)
    assert round(coding_tree(wos, 3).entropy, 4) == 3.0782
    assert round(coding_tree(wos, 4).entropy, 4) == 3.0034
    assert coding_tree(nyt, 3).entropy <= 2.3224
    assert coding_tree(nyt, 4).entropy <= 2.1447


@given(st.lists(st.tuples(*[st.integers(0, 4).map(float)] * 3), min_size=1, max_size=30))
def test_states_that_another_beats_in_everything_are_dropped(numbers: list[tuple[float, float, float]]) -> None:
    found = [state[:3] for state in unbeaten([(*state, None) for state in numbers])]
    beaten = {
        (e, v, g)
        for e, v, g in numbers
        if any((a >= e and b <= v and c >= g) and (a, b, c) != (e, v, g) for a, b, c in numbers)
    }
    assert sorted(found) == sorted(set(numbers) - beaten)


@pytest.mark.parametrize("shape", ["star", "caterpillar"])
def test_a_forest_with_all_weights_different_takes_no_endless_time(shape: str) -> None:
    count = 400
    parents = [0] * (count - 1) if shape == "star" else [max(0, i - i % 2) for i in range(count - 1)]
    weights = np.random.default_rng(0).random(count - 1) + 0.5
    graph = Graph(count, list(zip(parents, range(1, count), strict=True)), weights)
    start = time.process_time()
    assert coding_tree(graph).entropy < coding_tree(graph, 1).entropy
    assert time.process_time() - start < 3


WILD = st.integers(-20, 20).map(lambda power: 10.0**power)


@given(graphs(11, weights=WILD), st.integers(2, 4), st.sampled_from(METHODS))
@settings(deadline=None)
def test_weights_of_any_size_beside_each_other_are_fine_compiled_or_not(
    graph: Graph, height: int, method: Method
) -> None:
    plain = coding_tree(graph, height, method, compiled=False)
    assert plain == coding_tree(graph, height, method, compiled=True)
    assert plain.entropy <= plain.flat_entropy * (1 + 1e-12) or method == "random"


def test_the_optimum_is_found_beside_a_loop_that_is_most_of_the_volume() -> None:
    edges = [(8, 4), (4, 0), (0, 3), (3, 2), (4, 5), (5, 7), (0, 6), (3, 1), (5, 5), (7, 7)]
    graph = Graph(9, edges, [2, 2, 1, 3, 2, 1, 1, 2, 10**6.25, 1e15])
    assert coding_tree(graph).entropy == pytest.approx(least_entropy(graph, 2), rel=1e-6)


@pytest.mark.parametrize("scale", [0.1, 1 / 3, 7.7])
@given(graph=graphs(12, weights=st.integers(1, 3).map(float)), height=st.integers(2, 4))
@settings(deadline=None, max_examples=40)
def test_ties_are_ties_whatever_the_rounding_of_weights(graph: Graph, height: int, scale: float) -> None:
    loops = [(i, i) for i in range(graph.vertices)]
    weights = np.concatenate([graph.weights, graph.loops]) * scale
    scaled = Graph(graph.vertices, [*graph.edges.tolist(), *loops], weights)
    assert coding_tree(scaled, height, "paper") == coding_tree(graph, height, "paper")


@pytest.mark.parametrize(("first", "second"), [(60, 24), (40, 40), (200, 90), (30, 9), (9, 3), (150, 2)])
def test_of_two_stars_as_many_leaves_are_grouped_as_is_best(first: int, second: int) -> None:
    """The exact programme where leaves are alike, against the best of all numbers of leaves in each star."""
    count = first + second + 2
    edges = [(0, i) for i in range(1, first + 1)] + [(first + 1, i) for i in range(first + 2, count)]
    graph = Graph(count, edges)
    total = graph.volume
    gain = sum(max(k * np.log2(total / (leaves + k)) for k in range(leaves + 1)) for leaves in (first, second))
    tree = coding_tree(graph)
    assert tree.entropy == pytest.approx(tree.flat_entropy - 2 * gain / total, abs=1e-12)


@given(graphs(30, weights=st.just(1.0)).filter(lambda graph: len(graph.edges) > 0), st.integers(2, 4))
@settings(deadline=None, max_examples=30)
def test_what_local_moves_leave_cannot_be_moved(graph: Graph, height: int) -> None:
    start = [*[np.arange(graph.vertices)] * height, np.zeros(graph.vertices, dtype=np.int64)]
    once = improved(graph, start, Runner(compiled=False))
    again = improved(graph, once, Runner(compiled=False))
    assert CodingTree.from_partitions(once) == CodingTree.from_partitions(again)


def test_a_large_graph_is_merged_nearly_as_well_as_with_every_gain_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    network = nx.powerlaw_cluster_graph(1_500, 3, 0.3, seed=0)
    graph = Graph(1_500, list(network.edges))
    quick = coding_tree(graph, compiled=True).entropy
    for module in ("construction", "merge"):
        monkeypatch.setattr(f"hitin.coding_tree.{module}.EAGER", 10**6)
    assert quick < coding_tree(graph, compiled=True).entropy * 1.01


def test_numba_is_imported_for_a_large_graph_only() -> None:
    script = (
        "import sys; from hitin.coding_tree import Graph, coding_tree;"
        "coding_tree(Graph(3, [(0, 1)])); print('numba' in sys.modules);"
        "coding_tree(Graph(60_000, [(0, i) for i in range(1, 60_000)])); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_an_entropy_that_the_identity_does_not_confirm_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitin.coding_tree.construction.entropy_by_identity", lambda *_: 1.0)
    with pytest.raises(ArithmeticError, match=r"by Eq\. 6 but 1\.0 by the identity"):
        coding_tree(Graph(3, [(0, 1), (1, 2)]))
