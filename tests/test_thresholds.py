"""Where thresholds stand: the points of a grid that serve a goal best, and what policies make of them."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hitin import Taxonomy
from hitin.calibration import Calibration
from hitin.decisions import Decisions, DecisionSettings, Goal, tune
from hitin.decisions.decisions import log_odds_of
from hitin.decisions.fitting import Alone, Candidate, Fit, sheet_of_points
from hitin.decisions.goals import Metric, Sheet, best_point, best_points, label_points, level_points, values
from hitin.decisions.policies import Policy
from tests.strategies import taxonomies
from tests.test_tuning import TREE, documents, value_of

METRICS: tuple[Metric, ...] = get_args(Metric)
Points = NDArray[np.int64]


def random_sheet(labels: int, documents: int, points: int, seed: int) -> Sheet:
    random = np.random.default_rng(seed)
    given = random.integers(0, points + 1, (documents, labels))
    return sheet_of_points(given, random.random(given.shape) < 0.3, points)


@st.composite
def sheets(draw: st.DrawFn) -> Sheet:
    points, labels = draw(st.integers(1, 6)), len(draw(taxonomies()))
    return random_sheet(labels, draw(st.integers(1, 12)), points, draw(st.integers(0, 99)))


def value(goal: Goal, sheet: Sheet, points: Points) -> float:
    """With a point of the grid for each label."""
    rows = np.arange(len(sheet.true))
    picked = Sheet(sheet.right[rows, points][:, None], sheet.given[rows, points][:, None], sheet.true)
    return float(values(goal, picked)[0])


@given(st.data(), st.sampled_from(METRICS))
def test_points_by_level_and_by_label_are_no_worse_than_one_for_all(data: st.DataObject, metric: Metric) -> None:
    sheet, goal = data.draw(sheets()), Goal(metric)
    labels = len(sheet.true)
    starts = np.unique([0, *data.draw(st.lists(st.integers(0, labels - 1), max_size=3))])
    one = best_point(values(goal, sheet))
    spread = np.repeat(level_points(goal, sheet, starts), np.diff([*starts, labels]))
    by_label = label_points(goal, sheet, spread)
    assert value(goal, sheet, spread) >= value(goal, sheet, np.full(labels, one)) - 1e-12
    assert value(goal, sheet, by_label) >= value(goal, sheet, spread) - 1e-12
    if metric == "macro":
        assert value(goal, sheet, by_label) == pytest.approx(sheet.f1().max(axis=1).mean())


@pytest.mark.parametrize("metric", ["mean", "micro"])
@pytest.mark.parametrize("seed", [0, 39, 46, 65])  # but for the first, one look at each level is not enough
def test_no_point_of_a_single_level_can_be_improved(metric: Metric, seed: int) -> None:
    sheet, goal = random_sheet(labels=12, documents=8, points=31, seed=seed), Goal(metric)
    found = level_points(goal, sheet, np.array([0, 3, 6, 9]))
    best = value(goal, sheet, np.repeat(found, 3))
    for level in range(4):
        for point in range(31):
            moved = np.where(np.arange(4) == level, point, found)
            assert value(goal, sheet, np.repeat(moved, 3)) <= best + 1e-12


@given(st.data())
def test_counts_at_each_point_are_those_of_the_decisions_there(data: st.DataObject) -> None:
    points = data.draw(st.integers(1, 5))
    random = np.random.default_rng(data.draw(st.integers(0, 99)))
    given = random.integers(0, points + 1, (7, 3))
    truth = random.random((7, 3)) < 0.4
    sheet = sheet_of_points(given, truth, points)
    for point in range(points):
        assert np.array_equal(sheet.given[:, point], (given > point).sum(axis=0))
        assert np.array_equal(sheet.right[:, point], ((given > point) & truth).sum(axis=0))
    assert np.array_equal(sheet.true, truth.sum(axis=0))


def test_the_middle_of_equally_good_thresholds_is_taken() -> None:
    assert best_point(np.array([0.1, 0.5, 0.5, 0.5, 0.2, 0.5])) == 2
    assert best_point(np.array([0.5])) == 0
    assert best_point(np.array([0.5, 0.5])) == 0


@given(st.lists(st.lists(st.integers(0, 2), min_size=7, max_size=7), min_size=1, max_size=9))
def test_the_best_points_of_many_labels_are_the_best_point_of_each(rows: list[list[int]]) -> None:
    found = np.array(rows, dtype=np.float64)
    assert best_points(found).tolist() == [best_point(row) for row in found]


def test_a_label_is_precise_at_the_lowest_point_with_the_wished_precision_and_never_where_it_is_not_given() -> None:
    right = np.array([[3, 3, 1], [3, 2, 2], [1, 0, 0], [0, 0, 0]], dtype=np.float64)
    given = np.array([[9, 4, 1], [9, 3, 2], [3, 1, 0], [2, 1, 1]], dtype=np.float64)
    sheet = Sheet(right, given, np.full(4, 3.0))
    points = label_points(Goal(precision=0.7), sheet, np.zeros(4, dtype=np.int64))
    assert points.tolist() == [1, 2, 2, 2]  # the last two have none: the highest
    nothing_first = Sheet(right[:, ::-1], given[:, ::-1], sheet.true)
    assert label_points(Goal(precision=0.7), nothing_first, points).tolist() == [0, 0, 2, 2]


def uncalibrated(metric: Metric, seed: int = 0) -> Fit:
    logits, truth, taxonomy = documents(TREE, 150, seed)
    return Fit(Calibration().odds(logits, taxonomy), truth, taxonomy, Goal(metric), Calibration())


def test_the_own_threshold_of_a_label_with_n_documents_weighs_n_to_the_30_of_its_level() -> None:
    fit = uncalibrated("macro")  # by which the best threshold of a label hangs on no other label
    alone = Alone(fit.odds.own, fit.truth, TREE, fit.goal)
    own = np.array([alone.grid[best_point(f1)] for f1 in alone.sheet.f1()])
    level = log_odds_of(fit.decisions(Candidate("raw", "level")).thresholds(TREE))
    count = fit.truth.sum(axis=0)
    found = log_odds_of(fit.decisions(Candidate("raw", "label")).thresholds(TREE))
    assert found == pytest.approx(count / (count + 30) * own + 30 / (count + 30) * level, abs=1e-6)
    assert np.abs(own - level).max() > 0.5


@pytest.mark.parametrize("kind", ["level", "label"])
@pytest.mark.parametrize("policy", ["consistent", "top-down"])
def test_thresholds_by_level_and_label_are_moved_together_to_where_they_serve_a_policy_best(
    policy: Policy, kind: Any
) -> None:
    fit = uncalibrated("mean", seed=1)
    case = fit.odds.own, fit.truth, TREE
    alone = log_odds_of(fit.decisions(Candidate("raw", kind)).thresholds(TREE))
    tuned = fit.decisions(Candidate(policy, kind))
    shift = log_odds_of(tuned.thresholds(TREE)) - alone
    assert np.ptp(shift) < 1e-6
    scores = []
    for moved in np.linspace(-3, 3, 63):
        at = dict(zip(TREE.labels, 1 / (1 + np.exp(-alone - moved)), strict=True))
        scores.append(value_of(Decisions(policy, at), "mean", case))
    assert value_of(tuned, "mean", case) == pytest.approx(max(scores), abs=1e-12)
    assert max(scores) > scores[31]  # where they are not moved


def test_a_probability_that_is_just_where_an_answer_stops_is_given() -> None:
    taxonomy = Taxonomy.from_edges([], labels=["right", "wrong"])
    logits = np.array([[0.0, -9], [-9, -0.01]], dtype=np.float32)  # exactly one half, and a little less
    truth = np.array([[True, False], [False, False]])
    tuned = tune(logits, truth, taxonomy, DecisionSettings("single-path", calibration="none"))
    assert tuned.decisions.stop == 0.5
    assert tuned.decisions.decide(logits, taxonomy).tolist() == truth.tolist()
    assert tuned.chosen.micro_f1 == 1
