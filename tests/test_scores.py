"""Scores of a tally: those of other libraries and of plain sets, whatever the chunks; intervals that hold."""

import json
import time
import tracemalloc
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hiclass import metrics as hiclass
from hypothesis import given as each
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score

from hitin import InputError, Taxonomy
from hitin.metrics import (
    Counts,
    Scores,
    Tally,
    differences,
    label_f1,
    macro_f1,
    micro_f1,
    micro_precision,
    micro_recall,
)
from hitin.metrics.bootstrap import blocks_of, usual_blocks, weights_of
from hitin.metrics.looking import hits
from hitin.metrics.sums import Sums
from hitin.taxonomy.levels import level_slices
from tests.strategies import taxonomies

Table = NDArray[np.bool_]
Floats = NDArray[np.float64]
Sets = list[set[int]]

SCORES = (
    ("micro_f1", f1_score, "micro"),
    ("macro_f1", f1_score, "macro"),
    ("precision", precision_score, "micro"),
    ("recall", recall_score, "micro"),
    ("samples_f1", f1_score, "samples"),
)


@st.composite
def decisions(draw: st.DrawFn, *, tree: bool = False) -> tuple[Taxonomy, Table, Table]:
    """A taxonomy, and any decisions and true labels, ancestors or not."""
    taxonomy = draw(taxonomies(tree=tree))
    shape = (draw(st.integers(1, 10)), len(taxonomy))
    return taxonomy, draw(st_numpy.arrays(np.bool_, shape)), draw(st_numpy.arrays(np.bool_, shape))


def scores_of(taxonomy: Taxonomy, given: Table, truth: Table, probabilities: Floats | None = None) -> Scores:
    tally = Tally(taxonomy, blocks=0)
    tally.add(given, truth, probabilities)
    return tally.scores()


def sets_of(table: Table) -> Sets:
    return [set(np.flatnonzero(row).tolist()) for row in table]


def share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


@each(decisions())
def test_flat_scores_are_those_of_scikit_learn(drawn: tuple[Taxonomy, Table, Table]) -> None:
    taxonomy, given, truth = drawn
    found = scores_of(taxonomy, given, truth)
    wide = [np.pad(table, ((0, 0), (0, 1))) for table in (truth, given)]  # one column would be one binary problem
    for name, score, average in SCORES:
        expected = score(*wide, labels=range(len(taxonomy)), average=average, zero_division=0)
        assert getattr(found, name) == pytest.approx(float(expected), abs=1e-12), name
    assert found.exact_match == pytest.approx(accuracy_score(*wide), abs=1e-12)
    present = np.flatnonzero(truth.any(axis=0))
    if len(present):
        expected = f1_score(*wide, labels=present, average="macro", zero_division=0)
        assert found.macro_f1_present == pytest.approx(float(expected), abs=1e-12)
    else:
        assert found.macro_f1_present == 0


@each(decisions())
def test_hierarchical_scores_are_those_of_sets_with_ancestors(drawn: tuple[Taxonomy, Table, Table]) -> None:
    taxonomy, given, truth = drawn
    found = scores_of(taxonomy, given, truth)
    closed_given, closed_truth = ([set(taxonomy.closure(labels)) for labels in sets_of(table)] for table in drawn[1:])
    right = sum(len(one & other) for one, other in zip(closed_given, closed_truth, strict=True))
    all_given, all_true = sum(map(len, closed_given)), sum(map(len, closed_truth))
    assert found.hierarchical_precision == pytest.approx(share(right, all_given), abs=1e-12)
    assert found.hierarchical_recall == pytest.approx(share(right, all_true), abs=1e-12)
    assert found.hierarchical_f1 == pytest.approx(share(2 * right, all_given + all_true), abs=1e-12)
    consistent = sum(one == other for one, other in zip(sets_of(given), closed_given, strict=True))
    assert found.path_consistency == pytest.approx(consistent / len(given), abs=1e-12)
    assert found.labels_given == pytest.approx(given.sum() / len(given), abs=1e-12)


@each(st.data())
def test_hierarchical_scores_of_single_paths_are_those_of_hiclass(data: st.DataObject) -> None:
    taxonomy = data.draw(taxonomies(tree=True))
    ends = st.lists(st.integers(0, len(taxonomy) - 1), min_size=6, max_size=6)
    tables, paths = [], []
    for chosen in (data.draw(ends), data.draw(ends)):
        table = np.zeros((6, len(taxonomy)), dtype=bool)
        table[np.arange(6), chosen] = True  # the end of the path only: ancestors are added by the score
        tables.append(table)
        paths.append(np.array([padded(taxonomy.closure((end,)), taxonomy.depth) for end in chosen]))
    found = scores_of(taxonomy, tables[0], tables[1])
    assert found.hierarchical_precision == pytest.approx(hiclass.precision(paths[1], paths[0]), abs=1e-12)
    assert found.hierarchical_recall == pytest.approx(hiclass.recall(paths[1], paths[0]), abs=1e-12)
    expected = hiclass.f1(paths[1], paths[0], zero_division=0.0)
    assert found.hierarchical_f1 == pytest.approx(expected, abs=1e-12)


def padded(path: Iterable[int], depth: int) -> list[str]:
    names = [f"label {number}" for number in path]
    return names + [""] * (depth - len(names))


@each(st.data())
def test_precision_is_among_the_most_probable_labels(data: st.DataObject) -> None:
    taxonomy, given, truth = data.draw(decisions())
    values = st.sampled_from([0.0, 0.25, 0.5, 1.0])  # ties are common
    probabilities = data.draw(st_numpy.arrays(np.float64, given.shape, elements=values))
    before = probabilities.copy()
    found = scores_of(taxonomy, given, truth, probabilities).precision_at
    assert list(found) == [1, 3, 5]
    for count, value in found.items():
        shares = []
        for row, true in zip(probabilities.tolist(), sets_of(truth), strict=True):
            best = sorted(range(len(row)), key=lambda label: (-row[label], label))[:count]
            shares.append(len(true & set(best)) / len(best))
        assert value == pytest.approx(sum(shares) / len(shares), abs=1e-12)
    np.testing.assert_array_equal(probabilities, before)


def test_of_equally_probable_labels_the_first_comes_first() -> None:
    truth = np.array([[False, True, False], [True, False, False]])
    probabilities = np.array([[0.5, 0.5, 0.5], [0.2, 0.9, 0.9]])
    assert hits(probabilities, truth, 3).tolist() == [[False, True, False], [False, False, True]]


def simulated(documents: int, seed: int, labels: int = 12, skill: float = 0.8) -> tuple[Table, Table, Floats]:
    """Given, true and probable labels of documents that are drawn independently."""
    rng = np.random.default_rng(seed)
    truth = rng.random((documents, labels)) < np.linspace(0.5, 0.02, labels)
    given = np.where(rng.random(truth.shape) < skill, truth, rng.random(truth.shape) < 0.2)
    return given, truth, np.clip(given * 0.5 + rng.random(truth.shape) / 2, 0, 1)


TREE = Taxonomy.from_edges([(f"L{i // 2}", f"L{i}") for i in range(2, 13)], labels=["L1"])
"""Twelve labels: L1, below it L2 and L3, and so on."""


@settings(max_examples=30)
@each(st.lists(st.integers(0, 60), max_size=4), st.integers(0, 80), st.booleans())
def test_chunks_do_not_matter(cuts: list[int], blocks: int, ranked: bool) -> None:
    given, truth, probabilities = simulated(60, seed=1)
    whole, parts = (Tally(TREE, blocks=blocks, seed=3) for _ in range(2))
    whole.add(given, truth, probabilities if ranked else None)
    edges = [0, *sorted(cuts), 60]
    for start, stop in pairwise(edges):
        parts.add(given[start:stop], truth[start:stop], probabilities[start:stop] if ranked else None)
    assert parts.documents == 60
    assert parts.scores(resamples=20) == whole.scores(resamples=20)
    for tally in (whole, parts):
        for name in ("true_positives", "predicted", "actual"):
            expected = getattr(Counts.of(given, truth), name)
            np.testing.assert_array_equal(getattr(tally.counts, name), expected)


@pytest.mark.parametrize("turned", [np.asfortranarray, lambda table: np.repeat(table, 2, axis=1)[:, ::2]])
def test_tables_in_any_memory_order_score_the_same(turned: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
    given, truth, probabilities = simulated(50, seed=2)
    plain = scores_of(TREE, given, truth, probabilities)
    assert scores_of(TREE, turned(given), turned(truth), turned(probabilities)) == plain


def test_intervals_are_those_of_documents_drawn_one_by_one() -> None:
    given, truth, probabilities = simulated(40, seed=4)
    tally = Tally(TREE, blocks=64, seed=9)
    tally.add(given, truth, probabilities)
    found = tally.scores(resamples=50, confidence=0.9)
    resampled: dict[str, list[float]] = {name: [] for name in found.by_name()}
    for weights in weights_of(40, 50, seed=9):
        for drawn in weights.astype(int):
            rows = np.repeat(np.arange(40), drawn)
            assert len(rows) == 40
            for name, value in scores_of(TREE, given[rows], truth[rows], probabilities[rows]).by_name().items():
                resampled[name].append(value)
    assert set(found.intervals) == set(resampled)
    for name, values in resampled.items():
        expected = np.quantile(values, (0.05, 0.95))
        if "macro_f1" in name:
            expected = np.clip(expected + found.by_name()[name] - np.mean(values), 0, 1)
        np.testing.assert_allclose(found.intervals[name], expected, atol=1e-12, err_msg=name)


def test_each_score_but_numbers_of_things_has_an_interval_around_it() -> None:
    tally = Tally(TREE)
    tally.add(*simulated(3_000, seed=5))
    scores = tally.scores()
    names = {"micro_f1", "labels_given", "precision_at_5", "level_1_macro_f1", "level_4_recall"}
    assert names < set(scores.intervals) == set(scores.by_name())
    for name, (low, high) in scores.intervals.items():
        assert low < scores.by_name()[name] < high, name


def test_rare_labels_do_not_pull_the_interval_away_from_macro_f1() -> None:
    labels = 400
    taxonomy = Taxonomy.from_edges([], labels=[f"label {number}" for number in range(labels)])
    truth = np.random.default_rng(0).random((500, labels)) < 0.003
    tally = Tally(taxonomy)
    tally.add(truth, truth)
    scores = tally.scores(resamples=200)
    low, high = scores.intervals["macro_f1"]
    assert low < scores.macro_f1 < high  # though nearly every resample lacks a third of the labels
    assert scores.intervals["macro_f1_present"] == (1, 1)


@each(st.integers(2, 12), st.integers(0, 99), st.floats(0, 1))
def test_an_interval_holds_its_own_score_on_few_documents_too(documents: int, seed: int, share: float) -> None:
    chance = np.random.default_rng(seed)
    truth = chance.random((documents, len(TREE))) < 0.1
    one, other = Tally(TREE), Tally(TREE)
    one.add(truth & (chance.random(truth.shape) < share), truth)
    other.add(truth, truth)
    scores = one.scores(resamples=50)
    for name, (low, high) in scores.intervals.items():
        assert low <= scores.by_name()[name] <= high, name
    for name, found in differences(one, other, resamples=50).items():
        assert found.low <= found.estimate <= found.high, name


def test_a_single_document_has_no_intervals_and_tells_no_models_apart() -> None:
    given, truth, probabilities = simulated(1, seed=4)
    one, other = Tally(TREE), Tally(TREE)
    one.add(truth, truth, probabilities)
    other.add(~truth, truth, probabilities)
    assert one.scores().intervals == {}
    found = differences(one, other)["micro_f1"]
    assert (found.estimate, found.clear) == (1.0, False)
    assert found.to_json() == {"estimate": 1.0, "clear": False}
    other.add(given, truth, probabilities)
    assert other.scores().intervals


@pytest.mark.parametrize(("documents", "blocks"), [(150, None), (600, 200)])
def test_the_interval_holds_the_true_score_about_as_often_as_it_says(documents: int, blocks: int | None) -> None:
    truth_known = micro_f1(Counts.of(*simulated(400_000, seed=0)[:2]))
    holds = 0
    for trial in range(200):
        tally = Tally(TREE, blocks=blocks)
        tally.add(*simulated(documents, seed=1_000 + trial)[:2])
        low, high = tally.scores(resamples=300).intervals["micro_f1"]
        holds += low <= truth_known <= high
    assert 0.88 <= holds / 200 <= 0.99


def test_blocks_make_intervals_about_as_wide_as_single_documents_do() -> None:
    given, truth, _ = simulated(4_000, seed=6)
    widths = []
    for blocks in (400, 4_000):
        tally = Tally(TREE, blocks=blocks)
        tally.add(given, truth)
        low, high = tally.scores(resamples=2_000).intervals["samples_f1"]
        widths.append(high - low)
    assert widths[0] == pytest.approx(widths[1], rel=0.15)


def test_a_tally_is_deterministic_and_its_seed_matters() -> None:
    found = []
    for seed in (0, 0, 1):
        tally = Tally(TREE, blocks=50, seed=seed)
        tally.add(*simulated(200, seed=7))
        found.append(tally.scores(resamples=100))
    assert found[0] == found[1] != found[2]
    assert found[0].micro_f1 == pytest.approx(found[2].micro_f1, abs=1e-12)


def test_the_first_documents_are_blocks_and_later_ones_go_anywhere() -> None:
    blocks = blocks_of(0, 100_000, 100, seed=0)
    assert blocks[:100].tolist() == list(range(100))
    sizes = np.bincount(blocks, minlength=100)
    assert len(sizes) == 100
    assert np.abs(sizes - 1_000).max() < 5 * np.sqrt(1_000)
    np.testing.assert_array_equal(blocks_of(777, 50, 100, seed=0), blocks[777:827])
    assert (blocks_of(100, 9_000, 100, seed=1) != blocks[100:9_100]).mean() > 0.95


def test_very_many_labels_have_fewer_blocks() -> None:
    assert usual_blocks(200) == 2_000
    assert usual_blocks(3_000) >= 1_000
    assert 200 <= usual_blocks(47_000) <= 20_000_000 // 47_000
    assert usual_blocks(10**9) == 200


def test_a_model_does_not_differ_from_itself() -> None:
    tallies = [Tally(TREE) for _ in range(2)]
    for tally in tallies:
        tally.add(*simulated(300, seed=8))
    found = differences(*tallies, resamples=50)
    assert set(found) == set(tallies[0].scores(resamples=0).by_name())
    assert all((one.estimate, one.low, one.high, one.clear) == (0, 0, 0, False) for one in found.values())


def test_differences_are_between_scores_on_the_same_resamples() -> None:
    given, truth, _ = simulated(400, seed=9)
    worse = given & (np.random.default_rng(0).random(given.shape) < 0.9)
    tallies = [Tally(TREE) for _ in range(2)]
    for tally, decided in zip(tallies, (given, worse), strict=True):
        tally.add(decided, truth)
    found = differences(*tallies, resamples=200)["recall"]
    estimate = recall_score(truth, given, average="micro") - recall_score(truth, worse, average="micro")
    assert found.estimate == pytest.approx(estimate, abs=1e-12)
    assert 0 < found.low < found.estimate < found.high
    assert found.clear
    one, other = (tally.scores(resamples=200).intervals["recall"] for tally in tallies)
    assert found.high - found.low < (one[1] - one[0] + other[1] - other[0]) / 2  # pairs tell more than two alone
    turned = differences(*reversed(tallies), resamples=200)["recall"]
    assert (turned.estimate, turned.clear) == (-found.estimate, True)
    assert turned.to_json() == {"estimate": turned.estimate, "low": turned.low, "high": turned.high, "clear": True}


def test_tallies_of_other_documents_are_not_compared() -> None:
    given, truth, _ = simulated(20, seed=10)
    one = Tally(TREE)
    one.add(given, truth)
    for other, rows in (
        (Tally(TREE), slice(19)),
        (Tally(TREE, seed=1), slice(20)),
        (Tally(TREE), slice(None, None, -1)),
    ):
        other.add(given[rows], truth[rows])
        with pytest.raises(InputError, match="not of the same documents"):
            differences(one, other)
    with pytest.raises(InputError, match=r"(?s)needs documents.*0, 2000 and 1000"):
        differences(Tally(TREE), Tally(TREE))


def test_scores_are_plain_values_in_json() -> None:
    tally = Tally(TREE, at=(5, 1, 20))
    tally.add(*simulated(30, seed=11))
    scores = tally.scores(resamples=10)
    plain = scores.to_json()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    keys = {"micro_f1", "macro_f1", "precision", "recall", "documents", "labels", "levels"}
    assert keys < set(plain)
    assert plain["precision_at"] == {
        "1": scores.precision_at[1],
        "5": scores.precision_at[5],
        "20": scores.precision_at[20],
    }
    assert plain["intervals"]["micro_f1"] == list(scores.intervals["micro_f1"])  # type: ignore[index]


def test_counts_tell_the_same_as_the_tally() -> None:
    given, truth, _ = simulated(500, seed=12)
    tally = Tally(TREE)
    tally.add(given, truth)
    scores, counts = tally.scores(resamples=0), Counts.of(given, truth)
    assert (scores.micro_f1, scores.intervals, scores.precision_at) == (micro_f1(counts), {}, {})
    assert (scores.precision, scores.recall) == pytest.approx(
        (micro_precision(counts), micro_recall(counts)), abs=1e-14
    )
    for level, labels in zip(scores.levels, level_slices(TREE), strict=True):
        part = counts[labels]
        assert (level.micro_f1, level.macro_f1) == pytest.approx((micro_f1(part), macro_f1(part)), abs=1e-14)
        assert level.precision == pytest.approx(micro_precision(part), abs=1e-14)
        assert level.recall == pytest.approx(micro_recall(part), abs=1e-14)
    assert scores.macro_f1 == pytest.approx(macro_f1(tally.counts), abs=1e-14)
    assert scores.macro_f1 == pytest.approx(label_f1(tally.counts).mean(), abs=1e-14)


def test_no_documents_score_nothing_and_have_no_interval() -> None:
    tally = Tally(TREE)
    tally.add(*(np.zeros((0, 12), dtype=bool) for _ in range(2)))
    tally.add(*simulated(0, seed=0))
    scores = tally.scores()
    assert set(scores.by_name().values()) == {0}
    assert (scores.documents, scores.intervals) == (0, {})


def test_what_is_no_chunk_is_refused_and_not_counted() -> None:
    given, truth, probabilities = simulated(5, seed=13)
    tally = Tally(TREE)
    broken = probabilities.copy()
    for value in (np.nan, np.inf, -np.inf):
        broken[3, 2] = value
        with pytest.raises(InputError, match="not finite"):
            tally.add(given, truth, broken)
    with pytest.raises(InputError, match="decisions are true or false"):
        tally.add(probabilities, truth)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="documents by labels"):
        tally.add(given, truth[:2])
    with pytest.raises(InputError, match="on 3 labels, but the taxonomy has 12"):
        tally.add(given[:, :3], truth[:, :3])
    for wrong in (probabilities[:2], probabilities[:, :2], given):
        with pytest.raises(InputError, match="table of fractions"):
            tally.add(given, truth, wrong)  # type: ignore[arg-type]
    assert tally.documents == 0
    assert not tally.counts.predicted.any()
    tally.add(given, truth, probabilities)
    with pytest.raises(InputError, match="with every chunk, or with none"):
        tally.add(given, truth)
    assert tally.documents == 5


@pytest.mark.parametrize("options", [{"blocks": -1}, {"at": (0,)}])
def test_options_without_sense_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(InputError, match="cannot be had"):
        Tally(TREE, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(("resamples", "confidence"), [(-1, 0.95), (10, 0.0), (10, 1.0)])
def test_intervals_without_sense_are_refused(resamples: int, confidence: float) -> None:
    with pytest.raises(InputError, match="make no interval"):
        Tally(TREE).scores(resamples=resamples, confidence=confidence)


def test_counts_of_many_millions_stay_exact() -> None:
    sums = Sums(TREE, 0, ())
    sums.right[:], sums.given[:], sums.true[:] = 2**24, 2**24 + 1, 2**24 + 3  # which 32 bits of float cannot tell apart
    found = sums.scores(np.ones((1, 1)), ranked=False)
    assert found["precision"][0] == 2**24 / (2**24 + 1)
    assert found["macro_f1"][0] == pytest.approx(2**25 / (2**25 + 4), abs=1e-15)


@pytest.mark.slow
def test_a_million_documents_are_scored_in_seconds_and_little_memory() -> None:
    taxonomy = Taxonomy.from_edges([(str(child // 10), str(child)) for child in range(1, 200)], labels=["0"])
    tally, chunk = Tally(taxonomy), simulated(20_000, seed=14, labels=200, skill=0.99)
    start = time.process_time()
    tracemalloc.start()
    for _ in range(50):
        tally.add(*chunk)
    scores = tally.scores()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert time.process_time() - start < 60
    assert peak < 2**30
    assert scores.documents == 1_000_000
    assert scores.intervals["micro_f1"][0] < scores.micro_f1 < scores.intervals["micro_f1"][1]
