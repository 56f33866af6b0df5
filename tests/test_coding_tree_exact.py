"""Against brute force: the optimum of every forest, and how near the rest comes."""

import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitin import Taxonomy
from hitin.coding_tree import Graph, coding_tree
from hitin.coding_tree.exact import best_modules, unbeaten
from hitin.coding_tree.forest import uppers
from hitin.coding_tree.running import Runner
from tests.coding_trees import all_coding_trees, entropy_of, least_entropy
from tests.strategies import graphs


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


def test_the_optimum_is_found_beside_a_loop_that_is_most_of_the_volume() -> None:
    edges = [(8, 4), (4, 0), (0, 3), (3, 2), (4, 5), (5, 7), (0, 6), (3, 1), (5, 5), (7, 7)]
    graph = Graph(9, edges, [2, 2, 1, 3, 2, 1, 1, 2, 10**6.25, 1e15])
    assert coding_tree(graph).entropy == pytest.approx(least_entropy(graph, 2), rel=1e-6)


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
