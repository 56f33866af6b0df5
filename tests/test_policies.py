"""The policies against the plainest thing that could be written for each, and thresholds found many at a time."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hitin import Taxonomy
from hitin.decisions.critical import points_given
from hitin.decisions.policies import POLICIES, WAYS, Policy, best_labels
from hitin.taxonomy.levels import highest_below, lowest_above, with_ancestors, without_orphans
from tests.strategies import taxonomies

Table = NDArray[np.float64]
SCORES = st.one_of(st.integers(-3, 3).map(float), st.floats(-5, 5, width=32))


@st.composite
def scored(draw: st.DrawFn, *, most: int = 3, tree: bool = False, least: int = 0) -> tuple[Taxonomy, Table]:
    """A taxonomy and the log-odds of its labels for some documents."""
    taxonomy = draw(taxonomies(tree=tree))
    count = len(taxonomy)
    rows = draw(st.lists(st.lists(SCORES, min_size=count, max_size=count), min_size=least, max_size=most))
    return taxonomy, np.array(rows, dtype=np.float64).reshape(-1, count)


def decide(policy: Policy, scores: Table, taxonomy: Taxonomy, at: float | Table = 0.0, k: int = 2) -> list[set[int]]:
    given = WAYS[policy](scores, np.broadcast_to(at, len(taxonomy)).astype(np.float64), taxonomy, k)
    assert given.shape == scores.shape
    assert given.dtype == np.bool_
    return [set(np.flatnonzero(row).tolist()) for row in given]


def is_closed(labels: set[int], taxonomy: Taxonomy) -> bool:
    return set(taxonomy.closure(labels)) == labels


@given(scored(), st.floats(-2, 2), st.integers(1, 20), st.sampled_from([each for each in POLICIES if each != "raw"]))
def test_every_policy_but_raw_gives_a_label_only_with_its_ancestors(
    case: tuple[Taxonomy, Table], at: float, k: int, policy: Policy
) -> None:
    taxonomy, scores = case
    assert all(is_closed(labels, taxonomy) for labels in decide(policy, scores, taxonomy, at, k))


@given(scored())
def test_raw_gives_what_is_above_the_threshold(case: tuple[Taxonomy, Table]) -> None:
    taxonomy, scores = case
    at = np.linspace(-1, 1, len(taxonomy))
    expected = [{label for label, each in enumerate(row) if each > at[label]} for row in scores]
    assert decide("raw", scores, taxonomy, at) == expected


@given(scored(), st.floats(-2, 2))
def test_consistent_gives_the_likeliest_closed_set(case: tuple[Taxonomy, Table], at: float) -> None:
    taxonomy, scores = case
    labels = range(min(len(taxonomy), 10))
    taxonomy = Taxonomy.from_edges(
        [(str(parent), str(child)) for parent, child in taxonomy.edges.tolist() if child < 10],
        labels=[str(label) for label in labels],
        root=None,
    )
    scores = scores[:, [int(name) for name in taxonomy.labels]]
    sets = [set(some) for size in range(len(labels) + 1) for some in combinations(labels, size)]
    closed = [each for each in sets if is_closed(each, taxonomy)]
    for row, found in zip(scores - at, decide("consistent", scores, taxonomy, at), strict=True):
        assert sum(row[list(found)]) == pytest.approx(max(sum(row[list(each)]) for each in closed), abs=1e-9)


@given(scored(), st.floats(-2, 2))
def test_top_down_goes_on_only_below_what_is_given(case: tuple[Taxonomy, Table], at: float) -> None:
    taxonomy, scores = case
    for row, found in zip(scores, decide("top-down", scores, taxonomy, at), strict=True):
        expected: set[int] = set()
        for label in range(len(taxonomy)):
            if row[label] > at and expected.issuperset(taxonomy.parents(label).tolist()):
                expected.add(label)
        assert found == expected


@given(scored())
def test_a_single_path_is_the_lowest_label_with_the_highest_sum(case: tuple[Taxonomy, Table]) -> None:
    taxonomy, scores = case
    paths = [taxonomy.closure([label]) for label in taxonomy.leaves.tolist()]
    for row, found in zip(scores, decide("single-path", scores, taxonomy), strict=True):
        assert tuple(sorted(found)) in paths
        assert sum(row[list(found)]) == pytest.approx(max(sum(row[list(path)]) for path in paths))


@given(scored(), st.integers(1, 20))
def test_top_k_gives_the_best_labels_and_their_ancestors(case: tuple[Taxonomy, Table], k: int) -> None:
    taxonomy, scores = case
    for row, found in zip(scores, decide("top-k", scores, taxonomy, k=k), strict=True):
        best = sorted(range(len(row)), key=lambda label: (-row[label], label))[:k]
        assert found == set(taxonomy.closure(best))


@given(st.integers(1, 4), st.integers(1, 30), st.integers(0, 99), st.sampled_from([2, 5, 1000]))
def test_the_best_of_many_labels_stand_in_order_and_of_equals_the_first(
    k: int, more: int, seed: int, values: int
) -> None:
    scores = np.random.default_rng(seed).integers(-values, values, (3, 8 * k + more)) / 4
    expected = [sorted(range(len(row)), key=lambda label: (-row[label], label))[:k] for row in scores]
    assert best_labels(scores, k).tolist() == expected


@given(st.data(), st.sampled_from(["raw", "consistent", "top-down"]), st.booleans(), st.integers(1, 4))
def test_all_thresholds_of_a_grid_at_once_give_what_each_gives_alone(
    data: st.DataObject, policy: Policy, tree: bool, rounds: int
) -> None:
    taxonomy, scores = data.draw(scored(tree=tree))
    points = data.draw(st.lists(st.floats(-4, 4), min_size=2**rounds - 1, max_size=2**rounds - 1))
    grid = np.sort(np.array(points) + 1e-3 * np.pi)  # away from scores, where rounding would decide
    found = points_given(policy, scores, taxonomy, grid)
    for point, at in enumerate(grid):
        given = WAYS[policy](scores, np.full(len(taxonomy), at), taxonomy, 1)
        if policy == "consistent":  # equally good sets differ by rounding
            gains = scores - at
            assert np.allclose((gains * given).sum(axis=1), (gains * (found > point)).sum(axis=1), atol=1e-9)
            assert np.array_equal(with_ancestors(found > point, taxonomy), found > point)
        else:
            assert np.array_equal(found > point, given)


@given(scored())
def test_the_highest_below_and_the_lowest_above_are_those_of_all_descendants_and_ancestors(
    case: tuple[Taxonomy, Table],
) -> None:
    taxonomy, scores = case
    below = [
        [each for each in range(len(taxonomy)) if label in taxonomy.closure([each])] for label in range(len(taxonomy))
    ]
    highest, lowest = highest_below(scores, taxonomy), lowest_above(scores, taxonomy)
    for label in range(len(taxonomy)):
        assert np.array_equal(highest[:, label], scores[:, below[label]].max(axis=1))
        assert np.array_equal(lowest[:, label], scores[:, list(taxonomy.closure([label]))].min(axis=1))


@given(scored())
def test_closing_adds_ancestors_and_pruning_drops_orphans(case: tuple[Taxonomy, Table]) -> None:
    taxonomy, scores = case
    chosen = scores > 0
    before = chosen.copy()
    closed, kept = with_ancestors(chosen, taxonomy), without_orphans(chosen, taxonomy)
    assert np.array_equal(chosen, before)
    for row, more, fewer in zip(chosen, closed, kept, strict=True):
        labels = set(np.flatnonzero(row).tolist())
        assert set(np.flatnonzero(more).tolist()) == set(taxonomy.closure(labels))
        expected = {label for label in labels if labels.issuperset(taxonomy.closure([label]))}
        assert set(np.flatnonzero(fewer).tolist()) == expected


def test_a_grid_has_one_point_less_than_a_power_of_two() -> None:
    taxonomy = Taxonomy.from_edges([("a", "b")])
    with pytest.raises(ValueError, match="not 4"):
        points_given("consistent", np.zeros((1, 2)), taxonomy, np.zeros(4))


def test_a_long_chain_is_closed_to_the_top() -> None:
    taxonomy = Taxonomy.from_paths([[str(number) for number in range(500)]])
    chosen = np.zeros((1, 500), dtype=bool)
    chosen[0, -1] = True
    assert with_ancestors(chosen, taxonomy).all()
