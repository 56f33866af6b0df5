"""The best closed set of labels: checked against all closed sets, and against a minimum cut of another library."""

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import decoding
from hitin import Taxonomy
from hitin.decisions.closure import _Choice, best_closed
from hitin.taxonomy.levels import with_ancestors
from tests.strategies import edge_lists

Table = NDArray[np.float64]
Problem = tuple[Taxonomy, Table]

WHOLE = st.integers(-4, 4).map(float)  # many sets are equally good
ANY = st.floats(-50, 50, width=32)


@st.composite
def problems(draw: st.DrawFn, values: st.SearchStrategy[float], *, tree: bool = False, most: int = 10) -> Problem:
    count, edges = draw(edge_lists(most, tree=tree))
    named = [(str(parent), str(child)) for parent, child in edges]
    taxonomy = Taxonomy.from_edges(named, labels=map(str, range(count)))
    rows = draw(st.lists(st.lists(values, min_size=count, max_size=count), min_size=1, max_size=3))
    return taxonomy, np.array(rows)


def closed_sets(taxonomy: Taxonomy) -> NDArray[np.bool_]:
    """All of them, a row each."""
    labels = len(taxonomy)
    sets = (np.arange(2**labels)[:, None] >> np.arange(labels) & 1).astype(np.bool_)
    parents, children = taxonomy.edges.T
    found: NDArray[np.bool_] = sets[(sets[:, parents] | ~sets[:, children]).all(axis=1)]
    return found


def sums(sets: NDArray[np.bool_], gains: Table) -> Table:
    """The gain of each set, rounded once."""
    return np.array([math.fsum(gains[each]) for each in sets])


def is_closed(chosen: NDArray[np.bool_], taxonomy: Taxonomy) -> bool:
    return np.array_equal(with_ancestors(chosen, taxonomy), chosen)


def by_cut(gains: Table, taxonomy: Taxonomy) -> NDArray[np.bool_]:
    """The cut alone, nothing folded before."""
    choice = _Choice(taxonomy, twig=np.zeros(len(taxonomy), dtype=np.bool_))
    return choice.best(np.ascontiguousarray(gains.T, dtype=np.float64)).T


@pytest.mark.parametrize("tree", [True, False])
@given(st.data())
def test_it_is_the_smallest_of_the_best_of_all_closed_sets(tree: bool, data: st.DataObject) -> None:
    taxonomy, gains = data.draw(problems(WHOLE, tree=tree))
    sets = closed_sets(taxonomy)
    for row, chosen in zip(gains, best_closed(gains, taxonomy), strict=True):
        best = sets[sums(sets, row) == sums(sets, row).max()]
        sizes = best.sum(axis=1)
        assert (sizes == sizes.min()).sum() == 1
        assert np.array_equal(chosen, best[sizes.argmin()])


@pytest.mark.parametrize("tree", [True, False])
@given(st.data())
def test_it_is_the_best_of_all_closed_sets_for_any_numbers(tree: bool, data: st.DataObject) -> None:
    taxonomy, gains = data.draw(problems(ANY, tree=tree))
    sets = closed_sets(taxonomy)
    for row, chosen in zip(gains, best_closed(gains, taxonomy), strict=True):
        found, nothing = sums(sets, row), 1e-11 * np.abs(row).sum()
        assert math.fsum(row[chosen]) >= found.max() - nothing
        if (found >= found.max() - nothing).sum() == 1:
            assert np.array_equal(chosen, sets[found.argmax()])


@given(problems(WHOLE, most=25))
def test_it_is_closed_and_no_label_at_its_end_is_a_loss(problem: Problem) -> None:
    taxonomy, gains = problem
    chosen = best_closed(gains, taxonomy)
    assert chosen.shape == gains.shape
    assert chosen.dtype == np.bool_
    assert is_closed(chosen, taxonomy)
    for row, labels in zip(gains, chosen, strict=True):
        assert (row[list(taxonomy.deepest(np.flatnonzero(labels).tolist()))] > 0).all()


@given(problems(WHOLE, tree=True, most=25))
def test_a_tree_comes_out_the_same_by_folding_and_by_a_cut(problem: Problem) -> None:
    taxonomy, gains = problem
    assert np.array_equal(best_closed(gains, taxonomy), by_cut(gains, taxonomy))


@given(problems(WHOLE, most=25))
def test_folding_twigs_changes_nothing_where_labels_have_several_parents(problem: Problem) -> None:
    taxonomy, gains = problem
    assert np.array_equal(best_closed(gains, taxonomy), by_cut(gains, taxonomy))


def smallest_cut(row: Table, taxonomy: Taxonomy) -> set[int]:
    """The labels on the gaining side of a minimum cut, by networkx."""
    graph = nx.DiGraph()
    graph.add_nodes_from(["gain", "loss"])
    for label, gain in enumerate(row.tolist()):
        graph.add_edge(*(("gain", label) if gain > 0 else (label, "loss")), capacity=int(abs(gain)))
    graph.add_edges_from((child, parent) for parent, child in taxonomy.edges.tolist())  # without a limit
    _, (chosen, _) = nx.minimum_cut(graph, "gain", "loss")
    return set(chosen) - {"gain"}


@pytest.mark.parametrize("shape", sorted(decoding.TAXONOMIES))
@pytest.mark.parametrize("mean", [0.0, -0.3, -0.6])
def test_it_is_the_minimum_cut_of_another_library(shape: str, mean: float) -> None:
    random = np.random.default_rng(5)
    for _ in range(8):
        taxonomy = decoding.TAXONOMIES[shape](60, random)
        gains = np.rint(1e6 * random.normal(mean, 1, (3, 60)))  # whole: networkx rounds nothing either
        for row, chosen in zip(gains, best_closed(gains, taxonomy), strict=True):
            assert set(np.flatnonzero(chosen).tolist()) == smallest_cut(row, taxonomy)


def test_a_payment_is_passed_on_when_that_frees_a_label() -> None:
    taxonomy = Taxonomy.from_edges([("a", "u"), ("b", "u"), ("a", "v")])
    order = [taxonomy.index(label) for label in "abuv"]
    gains = np.zeros((2, 4))
    gains[0, order] = [-3, -3, 4, 3]  # u has paid part of a; v takes that over, and u can pay all of b
    gains[1, order] = [-3, -3, 4, 2]  # a tie with nothing at all
    assert best_closed(gains, taxonomy).tolist() == [[True] * 4, [False] * 4]


def test_rounding_is_no_gain() -> None:
    taxonomy = Taxonomy.from_edges([("a", "c"), ("b", "c"), ("a", "d"), ("b", "d"), ("a", "e"), ("b", "e")])
    gains = np.array([[-0.3, -0.3, 0.1, 0.2, 0.3]])  # 0.1 + 0.2 + 0.3 is 0.6000000000000001
    assert not best_closed(gains, taxonomy).any()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_huge_gain_does_not_hide_small_ones_elsewhere(kind: type[np.floating]) -> None:
    taxonomy = Taxonomy.from_edges([("a", "c"), ("b", "c"), ("d", "e"), ("a", "e")])
    largest = float(np.finfo(np.float32).max)
    gains = np.array([[largest, -1e-3, -1e-3, 2e-3, 0]], dtype=kind)
    chosen = best_closed(gains, taxonomy)[0]
    row = dict(zip(taxonomy.labels, chosen.tolist(), strict=True))
    assert row == {"a": True, "b": True, "c": True, "d": False, "e": False}


def test_no_documents_and_a_single_label() -> None:
    taxonomy = Taxonomy.from_edges([("a", "c"), ("b", "c")])
    assert best_closed(np.zeros((0, 3), dtype=np.float32), taxonomy).shape == (0, 3)
    single = Taxonomy.from_edges([], labels=["one"])
    gains = np.array([[0.5], [0.0], [-0.5]], dtype=np.float32)
    assert best_closed(gains, single).tolist() == [[True], [False], [False]]


def test_gains_of_another_taxonomy_are_refused() -> None:
    taxonomy = Taxonomy.from_edges([("a", "b")])
    for shape in ((2, 3), (2,), (1, 2, 1)):
        with pytest.raises(ValueError, match="2 labels"):
            best_closed(np.zeros(shape), taxonomy)


@pytest.mark.parametrize("parents", [1, 2])
def test_a_label_500_deep_is_reached(parents: int) -> None:
    edges = [(str(label - back), str(label)) for label in range(1, 500) for back in range(1, min(parents, label) + 1)]
    taxonomy = Taxonomy.from_edges(edges)
    assert taxonomy.depth == 500
    gains = np.full((2, 500), -1.0)
    gains[0, taxonomy.index("499")], gains[1, taxonomy.index("499")] = 499.5, 498.5
    assert best_closed(gains, taxonomy).sum(axis=1).tolist() == [500, 0]


def test_more_paths_than_a_number_holds() -> None:
    edges = [(f"{level}{above}", f"{level + 1}{below}") for level in range(1_100) for above in "ab" for below in "ab"]
    taxonomy = Taxonomy.from_edges(edges)
    gains = np.full((1, len(taxonomy)), -1.0)
    gains[0, -2:] = 10_000
    assert best_closed(gains, taxonomy).all()


def test_the_same_gains_give_the_same_labels_in_whatever_company() -> None:
    random = np.random.default_rng(2)
    taxonomy = decoding.random_dag(80, random)
    gains = random.integers(-3, 3, (50, 80)).astype(np.float32)
    before = gains.copy()
    chosen = best_closed(gains, taxonomy)
    assert np.array_equal(gains, before)
    assert np.array_equal(best_closed(gains, taxonomy), chosen)
    assert np.array_equal(best_closed(np.asfortranarray(gains[::-1]), taxonomy), chosen[::-1])
    assert np.array_equal(np.concatenate([best_closed(row[None], taxonomy) for row in gains]), chosen)


def test_a_million_cells_of_a_tree_take_no_time() -> None:
    taken, _ = decoding.seconds("likely", "tree", 1_000, 1_000)
    assert taken < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("shape", sorted(decoding.TAXONOMIES))
@pytest.mark.parametrize("kind", ["real", "likely", "unlikely"])
def test_a_thousand_documents_of_a_thousand_labels_take_less_than_ten_seconds(shape: str, kind: str) -> None:
    taken, _ = decoding.seconds(kind, shape, 1_000, 1_000, calls=1)
    assert taken < 10
