"""Decisions chosen on validation documents: never worse than 0.5, the best of what was tried, the same every time."""

from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import f1_score, precision_score, recall_score

from hitin import InputError, Taxonomy
from hitin.calibration import Calibration, Kind, choose_calibration, fit_calibration
from hitin.decisions import Decisions, DecisionSettings, Goal, Tuned, rows_to_tune_on, steps_to_tune, tune
from hitin.decisions.decisions import log_odds_of
from hitin.decisions.fitting import Candidate, Fit, _probability, candidates, grid_of
from hitin.decisions.goals import Metric
from hitin.decisions.policies import POLICIES, Policy
from hitin.metrics import Tally
from hitin.taxonomy.levels import with_ancestors, without_orphans
from tests.strategies import taxonomies

METRICS: tuple[Metric, ...] = get_args(Metric)
TREE = Taxonomy.from_nested({f"{top}": {f"{top}.{low}": {} for low in range(4)} for top in range(3)})

Case = tuple[NDArray[np.float32], NDArray[np.bool_], Taxonomy]


def documents(taxonomy: Taxonomy, count: int = 200, seed: int = 0, noise: float = 1.0, shift: float = -2.5) -> Case:
    """Logits that know something of the truth, which holds all ancestors. The usual shift makes them shy, so that 0.5
    is a bad threshold; at -1 it is a good one."""
    random = np.random.default_rng(seed)
    truth = with_ancestors(random.random((count, len(taxonomy))) < 1.5 / len(taxonomy), taxonomy)
    logits = 2.0 * truth + shift + noise * random.normal(size=truth.shape) + random.normal(size=len(taxonomy)) / 2
    return logits.astype(np.float32), truth, taxonomy


@st.composite
def cases(draw: st.DrawFn) -> Case:
    taxonomy, count, seed = draw(taxonomies()), draw(st.integers(1, 25)), draw(st.integers(0, 99))
    return documents(taxonomy, count, seed, draw(st.floats(0, 3)), draw(st.floats(-3, 1)))


def value_of(decisions: Decisions, metric: Metric, case: Case) -> float:
    """The score that is tuned for, the plain way."""
    logits, _, taxonomy = case
    return score(decisions.decide(logits, taxonomy), metric, case)


def score(given: NDArray[np.bool_], metric: Metric, case: Case) -> float:
    _, truth, taxonomy = case
    if len(taxonomy) == 1:  # which scikit-learn takes for two classes
        return float(f1_score(truth, given, zero_division=0))
    if metric == "hierarchical":
        return float(f1_score(truth, with_ancestors(given, taxonomy), average="micro", zero_division=0))
    kinds = ("micro", "macro") if metric == "mean" else (metric,)
    return float(np.mean([f1_score(truth, given, average=kind, zero_division=0) for kind in kinds]))


def chosen(tuned: Tuned) -> Any:
    return next(row for row in tuned.rows if row.chosen)


@given(cases(), st.sampled_from(METRICS), st.sampled_from(["raw", "consistent", "top-down"]), st.data())
@settings(max_examples=30)
def test_tuned_thresholds_never_score_below_one_half_on_what_they_were_tuned_for(
    case: Case, metric: Metric, policy: Policy, data: st.DataObject
) -> None:
    kind: Any = data.draw(st.sampled_from(["one", "level", "label"]))
    options = DecisionSettings(policy=policy, thresholds=kind, tune_for=metric)
    tuned = tune(*case, options)
    halves = [Decisions(policy, 0.5, calibration=tuned.decisions.calibration), Decisions(policy, 0.5)]
    for half in halves:
        assert value_of(tuned.decisions, metric, case) >= value_of(half, metric, case) - 1e-12
    assert chosen(tuned).value == pytest.approx(value_of(tuned.decisions, metric, case), abs=1e-12)


@pytest.mark.parametrize(
    ("seed", "noise", "policy", "kind", "which"),
    [(4, 0.5, "top-down", "one", 0), (5, 1.0, "consistent", "level", 1), (14, 1.0, "consistent", "one", 2)],
    ids=["the model's own half", "half of the calibrated", "half of the uncalibrated"],
)
def test_where_tuned_thresholds_are_worse_one_half_takes_their_place(
    seed: int, noise: float, policy: Policy, kind: Any, which: int
) -> None:
    logits, truth, taxonomy = case = documents(TREE, 20, seed, noise, shift=-1)
    tuned = tune(*case, DecisionSettings(policy=policy, thresholds=kind))
    calibration, _ = choose_calibration(*case)
    fit = Fit(calibration.odds(logits, taxonomy), truth, taxonomy, Goal(), calibration)
    half = fit.halves(policy)[which]
    assert value_of(half, "mean", case) > value_of(fit.decisions(Candidate(policy, kind)), "mean", case) + 1e-3
    assert tuned.decisions == half


def test_where_the_best_on_held_out_documents_is_below_one_half_the_best_on_all_takes_its_place() -> None:
    case = documents(TREE, 20, seed=28, shift=-1)
    tuned = tune(*case)
    allowed = [row for row in tuned.rows[1:] if row.policy != "raw"]
    held_out = max(allowed, key=lambda row: row.held_out)
    assert held_out.value < value_of(Decisions("consistent"), "mean", case)
    assert chosen(tuned).value == max(row.value for row in allowed) > held_out.value


def answers_held_out(case: Case, options: DecisionSettings, kind: Kind, seed: int = 0) -> list[NDArray[np.bool_]]:
    """What each way gives, a fifth of the documents at a time, tuned and calibrated on the others: the plain way."""
    logits, truth, taxonomy = case
    folds = np.random.default_rng((seed, 2)).permutation(len(truth)) % 5
    found = [np.zeros_like(truth) for _ in candidates(options, taxonomy)]
    for fold in range(5):
        others, held = folds != fold, folds == fold
        calibration = fit_calibration(kind, logits[others], truth[others], taxonomy)
        odds = calibration.odds(logits[others], taxonomy)
        fit = Fit(odds, truth[others], taxonomy, options.goal, calibration)
        for place, candidate in enumerate(candidates(options, taxonomy)):
            found[place][held] = fit.decisions(candidate).decide(logits[held], taxonomy)
    return found


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("kind", ["temperature", "isotonic"])
def test_held_out_documents_are_decided_by_what_was_calibrated_and_tuned_on_the_others(
    metric: Metric, kind: Kind
) -> None:
    case = documents(TREE, 60, shift=-1)
    for policy in ("raw", "consistent"):
        options = DecisionSettings(policy=policy, tune_for=metric, calibration=kind)
        expected = [score(given, metric, case) for given in answers_held_out(case, options, kind)]
        assert [row.held_out for row in tune(*case, options).rows[1:]] == pytest.approx(expected, abs=1e-12)


def test_a_wished_precision_that_is_missed_on_held_out_documents_costs_ten_times_what_is_missing() -> None:
    case = documents(TREE, 60, shift=-1)
    options = DecisionSettings(policy="consistent", wished_precision=0.9, calibration="temperature")
    answers = answers_held_out(case, options, "temperature")
    precision = np.array([precision_score(case[1], given, average="micro") for given in answers])
    recall = np.array([recall_score(case[1], given, average="micro") for given in answers])
    missing = np.maximum(0.9 - precision, 0)
    assert missing.max() > 0.01
    held_out = [row.held_out for row in tune(*case, options).rows[1:]]
    assert held_out == pytest.approx(recall - 10 * missing, abs=1e-12)


@given(cases(), st.sampled_from(METRICS))
@settings(max_examples=15)
def test_auto_takes_the_best_of_what_is_consistent(case: Case, metric: Metric) -> None:
    tuned = tune(*case, DecisionSettings(tune_for=metric))
    assert sum(row.chosen for row in tuned.rows) == 1
    assert chosen(tuned).policy == tuned.decisions.policy != "raw"
    allowed = [row for row in tuned.rows[1:] if row.policy != "raw"]
    best = max(allowed, key=lambda row: row.held_out)
    floor = max(value_of(Decisions("raw"), metric, case), value_of(Decisions("consistent"), metric, case))
    if best.value >= floor - 1e-12:
        assert chosen(tuned).held_out == best.held_out
    else:
        assert chosen(tuned).value == max(row.value for row in allowed)
    assert chosen(tuned).value >= value_of(Decisions("consistent"), metric, case) - 1e-12
    assert {row.policy for row in tuned.rows} == set(POLICIES)
    assert chosen(tuned).value == pytest.approx(value_of(tuned.decisions, metric, case), abs=1e-12)
    tally = Tally(case[2], blocks=0)
    tally.add(tuned.decisions.decide(case[0], case[2]), case[1])
    assert tally.scores(resamples=0).path_consistency == 1.0


def test_tuning_raises_the_score_where_one_half_is_a_bad_threshold() -> None:
    case = documents(TREE)
    tuned = tune(*case)
    papers = tuned.rows[0]
    assert papers.name == "as in papers"
    assert papers.value == pytest.approx(value_of(Decisions("raw"), "mean", case))
    assert chosen(tuned).held_out > papers.value + 0.05


def test_the_same_documents_are_tuned_the_same_way() -> None:
    case = documents(TREE)
    assert tune(*case) == tune(*case)
    assert tune(*case).decisions.tuned == tune(*case).to_json()


def test_every_policy_keeps_what_was_tuned_for_it() -> None:
    case = documents(TREE)
    tuned = tune(*case)
    for policy in POLICIES:
        decisions = tuned.decisions.with_options(policy=policy)
        best = max((row for row in tuned.rows[1:] if row.policy == policy), key=lambda row: row.held_out)
        assert value_of(decisions, "mean", case) == pytest.approx(best.value, abs=1e-12)


@pytest.mark.parametrize("wished", [0.6, 0.8, 0.95])
@pytest.mark.parametrize("kind", ["one", "level", "label"])
def test_a_wished_precision_is_kept_on_the_documents(wished: float, kind: Any) -> None:
    logits, truth, taxonomy = documents(TREE, 400, noise=0.8)
    options = DecisionSettings(policy="consistent", thresholds=kind, wished_precision=wished)
    given = tune(logits, truth, taxonomy, options).decisions.decide(logits, taxonomy)
    assert precision_score(truth, given, average="micro") >= wished
    assert given.any()


@pytest.mark.parametrize("policy", ["auto", "consistent", "raw"])
@pytest.mark.parametrize("wished", [0.7, 0.9, 1.0])
def test_only_ways_with_the_wished_precision_are_chosen(wished: float, policy: Any) -> None:
    logits, truth, taxonomy = documents(TREE, 300, noise=0.6)
    tuned = tune(logits, truth, taxonomy, DecisionSettings(policy=policy, wished_precision=wished))
    given = tuned.decisions.decide(logits, taxonomy)
    assert tuned.reached
    assert precision_score(truth, given, average="micro") >= wished
    allowed = [row for row in tuned.rows[1:] if row.reached and (policy != "auto" or row.policy != "raw")]
    assert chosen(tuned).held_out == max(row.held_out for row in allowed)
    for row in tuned.rows:
        assert row.reached == (row.precision >= wished)


def test_a_threshold_that_was_tuned_is_reached_as_it_is_kept() -> None:
    """Seeds whose best threshold lay on a score, and was rounded below it."""
    taxonomy = Taxonomy.from_paths([["A", "B"], ["A", "C"], ["D", "E"]])
    for seed in range(12):
        logits, truth, _ = documents(taxonomy, 40, seed, noise=1.0)
        tuned = tune(logits, truth, taxonomy, DecisionSettings("top-down", "one", wished_precision=0.9))
        (at,) = set(tuned.decisions.thresholds(taxonomy).tolist())
        above = Decisions("top-down", at + 2e-9, calibration=tuned.decisions.calibration)
        assert (above.decide(logits, taxonomy) == tuned.decisions.decide(logits, taxonomy)).all()


@given(st.lists(st.integers(-16_000, 16_000), min_size=1, max_size=40), st.sampled_from([7, 63, 255]))
def test_points_of_a_grid_give_the_same_labels_once_they_are_kept_as_probabilities(
    thousandths: list[int], size: int
) -> None:
    scores = np.array([thousandths], dtype=np.float32) / 1000
    grid = grid_of(scores, np.ones_like(scores, dtype=np.bool_), size)
    assert len(grid) == size
    kept = log_odds_of(np.array([_probability(point) for point in grid]))
    assert ((scores > grid[:, None]) == (scores > kept[:, None])).all()


def test_a_precision_that_no_way_reaches_gives_the_most_precise_and_says_so() -> None:
    logits, truth, taxonomy = documents(TREE, 60, noise=0.0)
    tuned = tune(-logits, truth, taxonomy, DecisionSettings(wished_precision=0.99))
    assert not tuned.reached
    assert not tuned.to_json()["reached"]
    assert chosen(tuned).precision == max(row.precision for row in tuned.rows[1:] if row.policy != "raw")


@given(cases(), st.sampled_from(["raw", "top-down"]), st.sampled_from(["one", "level", "label"]))
@settings(max_examples=20)
def test_what_is_shown_above_its_threshold_is_given_and_nothing_else(case: Case, policy: Policy, kind: Any) -> None:
    logits, _, taxonomy = case
    decisions = tune(*case, DecisionSettings(policy=policy, thresholds=kind)).decisions
    shown, at = decisions.probabilities(logits, taxonomy), decisions.thresholds(taxonomy)
    above, below = shown > at + 1e-6, shown < at - 1e-6
    given = decisions.decide(logits, taxonomy)
    assert not (given & below).any()
    if policy == "top-down":
        above = without_orphans(above, taxonomy)
    assert not (above & ~given).any()


def test_k_and_where_to_stop_are_the_best_of_all() -> None:
    case = documents(TREE, 150)
    for metric in METRICS:
        tuned = tune(*case, DecisionSettings(policy="top-k", tune_for=metric, calibration="none"))
        by_k = [value_of(Decisions("top-k", k=k), metric, case) for k in range(1, len(TREE) + 1)]
        assert value_of(tuned.decisions, metric, case) == pytest.approx(max(by_k), abs=1e-12)
        tuned = tune(*case, DecisionSettings(policy="single-path", tune_for=metric, calibration="none"))
        stops = [value_of(Decisions("single-path", stop=number / 64), metric, case) for number in range(63)]
        assert tuned.rows[2].value == pytest.approx(max(stops), abs=1e-12)


def test_of_very_many_documents_some_are_taken() -> None:
    assert np.array_equal(rows_to_tune_on(50, TREE), np.arange(50))
    rows = rows_to_tune_on(4_000_000, TREE)
    assert 1000 < len(rows) < 4_000_000
    assert (np.diff(rows) > 0).all()
    assert np.array_equal(rows, rows_to_tune_on(4_000_000, TREE))


def test_tuning_tells_how_far_it_has_come() -> None:
    for options in (DecisionSettings(), DecisionSettings(policy="top-k")):
        told: list[int] = []
        tune(*documents(TREE), options, advance=told.append)
        assert sum(told) <= steps_to_tune(options, TREE)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_documents_are_enough_to_go_on(count: int) -> None:
    tuned = tune(*documents(TREE, count))
    assert chosen(tuned).held_out <= 1


def test_goals_that_make_no_sense_are_refused() -> None:
    with pytest.raises(InputError, match="no score 'speed'"):
        Goal("speed")  # type: ignore[arg-type]
    for precision in (-0.5, 1.5, float("nan")):
        with pytest.raises(InputError, match="precision"):
            DecisionSettings(wished_precision=precision)
    assert DecisionSettings(wished_precision=1).goal.precision == 1.0


@pytest.mark.parametrize("name", ["policy", "thresholds", "tune_for", "calibration"])
def test_settings_that_there_are_not_are_told_with_the_choices(name: str) -> None:
    values: list[Any] = ["loud", 3, None, ["raw"]]
    for value in values:
        with pytest.raises(InputError, match=name) as caught:
            DecisionSettings(**{name: value})
        assert "It is one of" in str(caught.value.remedy)
    with pytest.raises(InputError, match=r"no option 'polcy'") as caught:
        DecisionSettings.of(polcy="raw")
    assert caught.value.remedy == "Did you mean policy?"
    with pytest.raises(InputError, match=r"no option 'speed'"):
        DecisionSettings.of(speed=3)


def test_what_is_shown_stays_coherent_where_one_half_of_the_model_itself_is_best() -> None:
    logits, truth, taxonomy = documents(TREE, 100)
    calibration = fit_calibration("isotonic", logits, truth, taxonomy)
    fit = Fit(calibration.odds(logits, taxonomy), truth, taxonomy, Goal(), calibration)
    half = fit.halves("consistent")[-1]
    assert np.array_equal(half.decide(logits, taxonomy), Decisions("consistent").decide(logits, taxonomy))
    shown = half.probabilities(logits, taxonomy)
    assert (shown[:, taxonomy.edges[:, 1]] <= shown[:, taxonomy.edges[:, 0]]).all()
    assert fit.halves("raw")[-1] == Decisions("raw")


def test_few_documents_or_a_single_way_have_nothing_held_out() -> None:
    assert tune(*documents(TREE, 9)).folds == 0
    assert tune(*documents(TREE, 10)).folds == 5
    assert tune(*documents(TREE, 50), DecisionSettings(policy="top-k")).folds == 0


def test_ways_are_told_apart_by_name() -> None:
    rows = tune(*documents(TREE)).rows
    names = [(row.name, row.thresholds) for row in rows]
    assert len(set(names)) == len(names)
    assert {"as in papers", "single-path", "single-path, stopping"} <= {row.name for row in rows}


def test_thresholds_of_sure_scores_stay_off_0_and_1() -> None:
    logits, truth, taxonomy = documents(TREE, 40, noise=0.0)
    decisions = tune(1e4 * logits, truth, taxonomy, DecisionSettings(calibration="none", policy="raw")).decisions
    assert ((decisions.thresholds(taxonomy) > 0) & (decisions.thresholds(taxonomy) < 1)).all()


def test_a_policy_that_does_best_uncalibrated_leaves_the_others_their_calibration() -> None:
    calibration = Calibration("temperature", (1.0, 2.0))
    raw = {"threshold": 0.4, "k": 3, "stop": 0.0, "calibration": calibration.to_json()}
    others: dict[Policy, dict[str, Any]] = {"raw": raw}
    decisions = Decisions("consistent", others=others)
    assert decisions.with_options(policy="raw").calibration == calibration
    assert Decisions.from_json(decisions.to_json(), "file").with_options(policy="raw").calibration == calibration
    decisions.check(TREE)
    with pytest.raises(InputError, match="2 temperatures for 1 level\n"):
        decisions.check(Taxonomy.from_edges([], labels=["a", "b"]))
