"""Whether differences are real: the paired bootstrap against loops and exact cases, Holm's correction by hand."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import f1_score

from hitin import Taxonomy
from hitin.compare.resampling import ResampledScores
from hitin.compare.results import gather
from hitin.compare.statistics import Comparison, Resamples, compared, corrected, holm
from hitin.errors import InputError
from hitin.metrics import Tally, differences
from hitin.metrics.bootstrap import weights_of
from tests.comparison_harness import FLAT, HITIN, LINEAR, comparison, copied, data_set, guesses, plan, truth_of

Table = NDArray[np.bool_]


def packed(table: Table) -> NDArray[np.uint8]:
    return np.packbits(table, axis=1)


def resamples(truth: Table, count: int = 50) -> Resamples:
    return Resamples(packed(truth), truth.shape[1], resamples=count)


@pytest.mark.parametrize(("documents", "labels"), [(1, 1), (7, 9), (40, 3)])
def test_scores_in_resamples_are_those_of_documents_repeated_as_often_as_drawn(documents: int, labels: int) -> None:
    truth = truth_of(documents, labels=labels)
    decided = guesses(truth, 0.3, 1)
    scores, drawn = resamples(truth, 20).f1(packed(decided))
    expected = []
    for weights in next(weights_of(documents, 20, 0)).astype(int):
        chosen = np.repeat(np.arange(documents), weights)
        expected.append([f1(decided[chosen], truth[chosen], average) for average in ("micro", "macro")])
    micro, macro = np.transpose(expected)
    assert scores == pytest.approx([f1(decided, truth, "micro"), f1(decided, truth, "macro")])
    assert drawn[0] == pytest.approx(micro, abs=1e-6)
    assert drawn[1] == pytest.approx(macro, abs=1e-6)


def f1(decided: Table, truth: Table, average: str) -> float:
    """By scikit-learn; a label alone is a table of one column there."""
    columns = [f1_score(truth[:, label], decided[:, label], zero_division=0) for label in range(truth.shape[1])]
    if average == "macro":
        return float(np.mean(columns))
    return float(f1_score(truth.ravel(), decided.ravel(), zero_division=0))


def test_thousands_of_documents_are_drawn_in_the_same_blocks_as_in_an_evaluation() -> None:
    taxonomy = Taxonomy.from_edges([("a", "b"), ("a", "c"), ("d", "e")])
    truth = truth_of(5000, labels=5)
    one, other = guesses(truth, 0.1, 1), guesses(truth, 0.12, 2)
    tallies = []
    for decided in (one, other):
        tallies.append(Tally(taxonomy))
        tallies[-1].add(decided, truth)
    expected = differences(*tallies, resamples=100)
    drawn = resamples(truth, 100)
    (mine, first), (theirs, second) = drawn.f1(packed(one)), drawn.f1(packed(other))
    for place, name in enumerate(("micro_f1", "macro_f1")):
        found = compared([first[place]], [second[place]], (mine[place], theirs[place]))
        assert found.difference == pytest.approx(expected[name].estimate)
        assert (found.low, found.high) == pytest.approx((expected[name].low, expected[name].high), abs=1e-6)


def test_p_is_that_of_all_possible_resamples_where_these_can_be_counted() -> None:
    truth = np.ones((4, 1), dtype=np.bool_)
    one, other = (np.array(column, dtype=np.bool_)[:, None] for column in ([1, 1, 0, 1], [1, 0, 1, 0]))
    higher = lower = 0
    for chosen in itertools.product(range(4), repeat=4):
        rows = list(chosen)
        difference = f1(one[rows], truth[rows], "micro") - f1(other[rows], truth[rows], "micro")
        higher += difference >= 0
        lower += difference <= 0
    exact = min(1, 2 * min(higher, lower) / 4**4)
    drawn = resamples(truth, 10_000)
    found = compared([drawn.f1(packed(one))[1][0]], [drawn.f1(packed(other))[1][0]], (0.8, 0.6))
    assert 0.1 < exact < 1
    assert found.p == pytest.approx(exact, abs=0.03)


def test_rows_that_differ_on_few_documents_are_not_told_apart_by_labels_missing_in_resamples() -> None:
    labels, documents = 12, 13
    truth = np.eye(documents, labels, dtype=np.bool_)
    truth[labels:, 0] = True
    one, other = truth.copy(), truth.copy()
    other[[3, 5]] = False  # the only documents on which they differ
    drawn = resamples(truth, 4_000)
    (mine, first), (theirs, second) = drawn.f1(packed(one)), drawn.f1(packed(other))
    for place in range(2):
        found = compared([second[place]], [first[place]], (theirs[place], mine[place]))
        without_both = (11 / 13) ** 13  # resamples in which there is nothing to tell
        assert found.p == pytest.approx(2 * without_both, rel=0.15)
        assert found.low <= found.difference < found.high == 0


def test_the_interval_of_a_difference_lies_around_it_though_rare_labels_are_missing_in_resamples() -> None:
    truth = np.eye(300, dtype=np.bool_)  # each label has one document: a third of them is missing in each resample
    one, other = guesses(truth, 0.0, 1), guesses(truth, 0.001, 2)
    other[::5] = False
    drawn = resamples(truth, 1_000)
    (mine, first), (theirs, second) = drawn.f1(packed(one)), drawn.f1(packed(other))
    found = compared([first[1]], [second[1]], (mine[1], theirs[1]))
    assert 0 < found.low < found.difference < found.high


def test_the_smallest_p_is_what_so_many_resamples_can_tell() -> None:
    high, low = np.full(99, 0.8, dtype=np.float32), np.full(99, 0.7, dtype=np.float32)
    assert compared([low], [high], (0.7, 0.8)).p == compared([high], [low], (0.8, 0.7)).p == 2 / 100
    assert compared([low], [low], (0.7, 0.7)).p == 1


def test_of_several_seeds_their_mean_counts() -> None:
    drawn = np.random.default_rng(0).random((5, 200)).astype(np.float32)
    found = compared(list(drawn[:3]), list(drawn[3:]), (float(drawn[:3].mean()), float(drawn[3:].mean())))
    means = drawn[:3].astype(float).mean(axis=0) - drawn[3:].astype(float).mean(axis=0)
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(means, (0.025, 0.975))))
    assert found.p == min(1, 2 * (1 + min((means <= 0).sum(), (means >= 0).sum())) / 201)


def test_a_planted_difference_is_found_and_chance_is_seldom_taken_for_one() -> None:
    truth = truth_of(400)
    drawn = resamples(truth, 400)

    def p_of(errors: float, seed: int) -> float:
        (_, one), (_, other) = (
            drawn.f1(packed(guesses(truth, share, n))) for share, n in ((0.1, 2 * seed), (errors, 2 * seed + 1))
        )
        return compared([other[0]], [one[0]], (0.5, 0.5)).p

    assert max(p_of(0.14, seed) for seed in range(50, 55)) < 0.01
    false = sum(p_of(0.1, seed) < 0.05 for seed in range(100, 150))
    assert false <= 8  # 2.5 are to be expected of 50, and 9 or more in one of 1,000 times


def test_holm_of_a_worked_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []
    assert holm([0.3]) == [0.3]
    assert holm([0.6, 0.7]) == [1, 1]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.999))
def test_holm_rejects_what_stepping_down_rejects(p_values: list[float], level: float) -> None:
    rejected = set()
    for step, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        if p_values[place] * (len(p_values) - step) > level:
            break
        rejected.add(place)
    assert {place for place, value in enumerate(holm(p_values)) if value <= level} == rejected


def test_comparisons_keep_their_places_when_corrected() -> None:
    found = corrected({"a": Comparison(0, 0, 0, 0.04), "b": Comparison(0, 0, 0, 0.01)})
    assert {place: comparison.corrected for place, comparison in found.items()} == {"a": 0.04, "b": 0.02}
    assert found["b"].is_clear


# Comparisons of a table.


def test_each_row_is_compared_with_the_best_and_corrected_over_the_whole_table(tmp_path: Path) -> None:
    wanted = plan([LINEAR, FLAT, HITIN], [data_set("one"), data_set("two")])
    cells = comparison(tmp_path, wanted, {"linear": 0.2, "flat": 0.1, "hitin": 0.05})
    (view,) = gather(wanted, cells, tmp_path, resamples=500).views
    assert set(view.best.values()) == {"hitin"}
    tuned = {place: found for (way, place), found in view.comparisons.items() if way == "tuned"}
    assert set(tuned) == {
        (row, data, f"{kind}_f1")
        for row in ("linear", "flat")
        for data in ("one", "two")
        for kind in ("micro", "macro")
    }
    assert [found.corrected for found in tuned.values()] == holm([found.p for found in tuned.values()])
    assert all(found.is_clear and found.low < found.difference < found.high < 0 for found in tuned.values())


def test_rows_that_decide_alike_cannot_be_told_apart(tmp_path: Path) -> None:
    wanted = plan([FLAT, HITIN], [data_set("one")])
    cells = comparison(tmp_path, wanted, {})
    copied(cells, FLAT, HITIN)
    (view,) = gather(wanted, cells, tmp_path, resamples=100).views
    assert set(view.best.values()) == {"flat"}  # the first of equal ones
    assert {(found.difference, found.p, found.is_clear) for found in view.comparisons.values()} == {(0, 1, False)}


def test_each_way_takes_its_own_decisions(tmp_path: Path) -> None:
    wanted = plan([HITIN], [data_set("one")])
    cell, *_ = comparison(tmp_path, wanted, {})
    scores = ResampledScores(tmp_path, resamples=30)
    with np.load(cell.folder / "decisions.npz") as decisions, np.load(tmp_path / "data" / "one.npz") as truth:
        drawn = Resamples(truth["truth"], int(truth["labels"]), resamples=30)
        for way, metric, source in (
            ("tuned", "micro_f1", "tuned"),
            ("half", "macro_f1", "half"),
            ("per_metric", "micro_f1", "micro_best"),
            ("per_metric", "macro_f1", "half"),  # as good as the best by macro-F1, so that is not kept
        ):
            expected = drawn.f1(decisions[source])[1][int(metric == "macro_f1")]
            assert np.array_equal(scores.of("one", cell.folder, way, metric), expected)


def test_resampled_scores_are_worked_out_once_and_anew_when_something_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = plan([HITIN], [data_set("one")])
    cell, *_ = comparison(tmp_path, wanted, {})
    kept = cell.folder / "resampled.npz"

    def score(count: int = 30) -> float:
        return float(ResampledScores(tmp_path, resamples=count).of("one", cell.folder, "tuned", "micro_f1").mean())

    first, asked, worked_out = score(), list[int](), Resamples.f1

    def counted(drawn: Resamples, table: NDArray[np.uint8]) -> tuple[NDArray[np.float64], NDArray[np.float32]]:
        asked.append(1)
        return worked_out(drawn, table)

    monkeypatch.setattr(Resamples, "f1", counted)
    assert score() == first
    assert not asked
    kept.write_bytes(kept.read_bytes()[:-40])
    assert score() == first
    assert len(asked) == 3
    assert score(31) != first
    assert len(asked) == 6
    truth = np.load(tmp_path / "data" / "one.npz")["truth"]
    np.savez(tmp_path / "data" / "one.npz", truth=~truth, labels=np.array(12))
    assert score(31) < 0.5


def test_decisions_on_other_documents_are_refused(tmp_path: Path) -> None:
    wanted = plan([FLAT, HITIN], [data_set("one")])
    cells = comparison(tmp_path, wanted, {})
    truth = truth_of(200)
    np.savez(tmp_path / "data" / "one.npz", truth=packed(truth), labels=np.array(12))
    with pytest.raises(InputError, match="decisions on 300 documents are not on the 200 test documents") as told:
        gather(wanted, cells, tmp_path, resamples=10)
    assert "decisions.npz" in str(told.value.file)
    (tmp_path / "data" / "one.npz").unlink()
    with pytest.raises(InputError, match="cannot be read"):
        gather(wanted, cells, tmp_path, resamples=10)
