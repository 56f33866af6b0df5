"""Calibration: checked against scipy and scikit-learn, plain loops, and real scores of a linear model."""

import json
import lzma
import math
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.isotonic import IsotonicRegression
from sklearn.svm import LinearSVC

from hitin import InputError, Taxonomy
from hitin.calibration import (
    Bin,
    Calibration,
    Kind,
    Reliability,
    choose_calibration,
    coherent,
    fit_calibration,
    probabilities_of,
)
from hitin.calibration.fitting import edges, histogram, isotonic, temperature
from hitin.taxonomy.levels import with_ancestors
from tests.strategies import taxonomies

KINDS: tuple[Kind, ...] = ("none", "temperature", "isotonic")
Logits = NDArray[np.float32]
Truth = NDArray[np.bool_]

TREE = Taxonomy.from_edges([("a", "c"), ("a", "d"), ("b", "e"), ("b", "f"), ("c", "g")])
CURVED = Calibration("isotonic", (2.0, 0.5, 1.0), (((-1.0, -4.0), (0.0, -3.999), (0.5, 2.0)), ((0.0, 1.0),), ()))


def drawn(documents: int, taxonomy: Taxonomy, seed: int = 0) -> tuple[Logits, Truth]:
    """Truth, and logits that know some of it but are far too sure."""
    random = np.random.default_rng(seed)
    log_odds = random.normal(-1, 2, (documents, len(taxonomy)))
    truth = with_ancestors(random.random(log_odds.shape) < 1 / (1 + np.exp(-log_odds)), taxonomy)
    return (4 * log_odds + 1).astype(np.float32), truth


def log_loss(logits: NDArray[np.float64], truth: Truth) -> float:
    return float(np.logaddexp(0, np.where(truth, -logits, logits)).sum())


def platt_loss(logits: NDArray[np.float64], truth: Truth) -> float:
    """Where the truth is not quite believed, the less the fewer there are of its kind."""
    true, false = truth.sum(), (~truth).sum()
    shares = np.where(truth, (true + 1) / (true + 2), 1 / (false + 2))
    return float((np.logaddexp(0, logits) - shares * logits).sum())


@st.composite
def tables(draw: st.DrawFn, low: float, high: float) -> tuple[Taxonomy, Logits]:
    taxonomy = draw(taxonomies())
    cells = st.lists(st.floats(low, high, width=32), min_size=len(taxonomy), max_size=len(taxonomy))
    rows = draw(st.lists(cells, max_size=4))
    return taxonomy, np.array(rows, dtype=np.float32).reshape(-1, len(taxonomy))


@given(tables(0, 1))
def test_no_label_is_more_probable_than_a_parent(table: tuple[Taxonomy, Logits]) -> None:
    taxonomy, probabilities = table
    found = coherent(probabilities, taxonomy)
    assert found.dtype == np.float32
    parents, children = taxonomy.edges.T
    assert (found[:, children] <= found[:, parents]).all()
    assert np.array_equal(coherent(found, taxonomy), found)


@given(tables(0, 1))
def test_a_coherent_probability_is_the_mean_of_the_lowest_above_and_the_highest_below(
    table: tuple[Taxonomy, Logits],
) -> None:
    taxonomy, probabilities = table
    found = coherent(probabilities, taxonomy)
    up = [[*taxonomy.ancestors(label), label] for label in range(len(taxonomy))]
    down = [[other for other in range(len(taxonomy)) if label in up[other]] for label in range(len(taxonomy))]
    for row, given_row in zip(found, probabilities, strict=True):
        expected = [(given_row[up[label]].min() + given_row[down[label]].max()) / 2 for label in range(len(taxonomy))]
        assert row.tolist() == expected


@given(st.lists(st.floats(-(2.0**127), 2.0**127, width=32), max_size=30), st.integers(0, 6))
def test_log_odds_rise_with_the_logit_and_are_finite(values: list[float], label: int) -> None:
    column = np.unique(np.array(values, dtype=np.float32))
    logits = np.zeros((len(column), len(TREE)), dtype=np.float32)
    logits[:, label] = column
    for calibration in (Calibration(), Calibration("temperature", (0.01, 100.0, 3.0)), CURVED):
        found = calibration.log_odds(logits, TREE)
        assert found.dtype == np.float32
        assert np.isfinite(found).all()
        assert (found[1:, label] >= found[:-1, label]).all()  # a difference might be no number


@pytest.mark.parametrize("kind", ["temperature", "isotonic"])
def test_ranks_within_a_level_are_kept(kind: Kind) -> None:
    logits, truth = drawn(300, TREE)
    calibration = fit_calibration(kind, logits, truth, TREE)
    grid = np.repeat(np.linspace(-40, 40, 4_001, dtype=np.float32)[:, None], len(TREE), axis=1)
    assert (np.diff(calibration.log_odds(grid, TREE), axis=0) > 0).all()


def test_a_curve_goes_through_its_knots_and_on_with_the_temperature() -> None:
    logits = np.zeros((6, len(TREE)), dtype=np.float32)
    logits[:, 0] = [-3, -1, 0, 0.25, 0.5, 4.5]
    logits[:, 2] = logits[:, -1] = [-1, 0, 1, 2, 3, 4]
    found = CURVED.log_odds(logits, TREE)
    assert found[:, 0] == pytest.approx([-5, -4, -3.999, -0.9995, 2, 4])
    assert found[:, 2] == pytest.approx([-1, 1, 3, 5, 7, 9])  # one knot
    assert found[:, -1] == pytest.approx(logits[:, -1])  # none


@given(st.integers(0, 2**32 - 1))
def test_rounding_does_not_carry_a_value_over_the_next_knot(seed: int) -> None:
    x, y = np.cumsum(np.random.default_rng(seed).random((2, 40)), axis=1)
    x, y = x - x[20] + 1e-9, y - y[20] + 1e-9  # near 0 a result can be off by far more than its last digit
    knots = tuple(zip(x.tolist(), y.tolist(), strict=True))
    calibration = Calibration("isotonic", (1.0,), (knots,))
    assert (calibration._of_level(0, np.nextafter(x, -np.inf)) <= calibration._of_level(0, x)).all()


def test_nothing_changes_without_calibration() -> None:
    logits, _ = drawn(20, TREE)
    assert np.array_equal(Calibration().log_odds(logits, TREE), logits)
    assert np.array_equal(Calibration().probabilities(logits, TREE), probabilities_of(logits))


def test_calibrated_probabilities_are_coherent() -> None:
    logits, truth = drawn(200, TREE)
    for kind in ("temperature", "isotonic"):
        calibration = fit_calibration(kind, logits, truth, TREE)
        found = calibration.probabilities(logits, TREE)
        scores = calibration.log_odds(logits, TREE)
        assert (found[:, TREE.edges[:, 1]] <= found[:, TREE.edges[:, 0]]).all()
        assert np.array_equal(found, probabilities_of(coherent(scores, TREE)))


@pytest.mark.parametrize("documents", [40, 30_000])  # with a bin for each logit, and with many to a bin
def test_the_temperature_is_the_one_that_scipy_finds(documents: int) -> None:
    logits, truth = drawn(documents, TREE)
    found = fit_calibration("temperature", logits, truth, TREE).temperatures
    for level, each in enumerate(found, start=1):
        some, right = logits[:, TREE.levels == level].astype(np.float64), truth[:, TREE.levels == level]
        best = minimize_scalar(
            lambda slope, some=some, right=right: platt_loss(slope * some, right), bounds=(0.05, 5), method="bounded"
        )
        assert 1 / each == pytest.approx(best.x, rel=1e-3)
        assert platt_loss(some / each, right) <= best.fun * (1 + 1e-6)


def test_a_temperature_undoes_what_a_network_exaggerates() -> None:
    taxonomy = Taxonomy.from_edges([], labels=list("abcdefgh"))
    random = np.random.default_rng(3)
    log_odds = random.normal(-1, 2, (20_000, 8))
    truth = random.random(log_odds.shape) < 1 / (1 + np.exp(-log_odds))
    (found,) = fit_calibration("temperature", 3 * log_odds, truth, taxonomy).temperatures
    assert found == pytest.approx(3, rel=0.02)


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_level_where_all_is_the_same_keeps_its_logits(share: float) -> None:
    logits, _ = drawn(30, TREE)
    truth = np.full(logits.shape, bool(share))
    found = fit_calibration("isotonic", logits, truth, TREE)
    assert found.temperatures == (1.0, 1.0, 1.0)
    assert np.isfinite(found.log_odds(logits, TREE)).all()


@pytest.mark.parametrize("size", [0.5, 3.0, 8.0])
def test_documents_that_are_told_apart_without_a_fault_make_no_label_certain(size: float) -> None:
    _, truth = drawn(200, TREE)
    logits = np.where(truth, size, -size).astype(np.float32)
    for kind in ("temperature", "isotonic"):
        found = fit_calibration(kind, logits, truth, TREE).probabilities(logits, TREE)
        assert 0 < found.min() < 0.5 < found.max() < 1
        assert (found > 0.5).any(axis=1).sum() == truth.any(axis=1).sum()


def test_auto_is_never_incoherent() -> None:
    random = np.random.default_rng(4)
    log_odds = random.normal(-1, 2, (400, len(TREE))).astype(np.float32)
    truth = random.random(log_odds.shape) < probabilities_of(log_odds)
    for count in (1, 2, 400):
        calibration, _ = choose_calibration(log_odds[:count], truth[:count], TREE)
        found = calibration.probabilities(log_odds, TREE)
        assert (found[:, TREE.edges[:, 1]] <= found[:, TREE.edges[:, 0]]).all()


def test_a_level_with_few_positives_has_no_curve() -> None:
    logits, truth = drawn(400, TREE)
    truth[:, -1] = False
    truth[:9, -1] = True
    found = fit_calibration("isotonic", logits, truth, TREE)
    assert [bool(knots) for knots in found.curves] == [True, True, False]
    assert found.temperatures == fit_calibration("temperature", logits, truth, TREE).temperatures


@given(
    st.lists(st.tuples(st.integers(-8, 8), st.booleans()), min_size=1, max_size=60),
)
def test_shares_are_those_of_scikit_learns_isotonic_regression(cells: list[tuple[int, bool]]) -> None:
    logits = np.array([[cell] for cell, _ in cells], dtype=np.float32)
    truth = np.array([[right] for _, right in cells])
    level = histogram(logits, truth, edges(logits, truth), np.arange(len(logits)))
    blocks = isotonic(level)
    shares = [block.share for block in blocks]
    assert shares == sorted(set(shares))
    values = np.unique(logits)
    expected = IsotonicRegression().fit(logits.ravel(), truth.ravel().astype(float)).predict(values)
    counts = [int(np.isclose(expected, share).sum()) for share in shares]
    assert np.allclose(np.repeat(shares, counts), expected)
    assert sum(block.count for block in blocks) == len(cells)
    assert sum(block.total for block in blocks) == logits.sum()
    assert 0.199 < temperature(level) < 20.1


def test_knots_are_the_mean_logits_of_blocks_and_log_odds_that_are_never_infinite() -> None:
    taxonomy = Taxonomy.from_edges([], labels=["one"])
    cells = [(-2, 0, 20), (-1, 1, 10), (0, 8, 8), (1, 6, 10), (2, 30, 30)]  # logit, positives, count
    logits = np.concatenate([np.full(count, logit) for logit, _, count in cells])[:, None].astype(np.float32)
    truth = np.concatenate([np.arange(count) < positives for _, positives, count in cells])[:, None]
    (knots,) = fit_calibration("isotonic", logits, truth, taxonomy).curves
    expected = [(-2, 0.5 / 20.5), (-1, 1.5 / 9.5), (10 / 18, 14.5 / 4.5), (2, 30.5 / 0.5)]  # 8 of 8 before 6 of 10
    assert np.array(knots) == pytest.approx(np.array([(x, math.log(odds)) for x, odds in expected]))


@pytest.mark.parametrize(("distance", "knots"), [(100, 2), (1000, 1)])
def test_a_curve_that_rises_by_less_than_a_thousandth_a_logit_is_flat(distance: float, knots: int) -> None:
    logits = np.repeat([0, distance], 100)[:, None].astype(np.float32)
    truth = (np.arange(200) % 100 < np.repeat([50, 60], 100))[:, None]  # log-odds of 0 and about 0.4
    calibration = fit_calibration("isotonic", logits, truth, Taxonomy.from_edges([], labels=["one"]))
    assert len(calibration.curves[0]) == knots


def test_a_network_that_is_sure_and_wrong_has_a_finite_loss() -> None:
    _, truth = drawn(50, TREE)
    _, losses = choose_calibration(np.where(truth, -1e4, 1e4).astype(np.float32), truth, TREE)
    assert losses["temperature"] < losses["none"] < 20
    assert all(map(math.isfinite, losses.values()))


def test_a_curve_finds_log_odds_of_any_rising_shape() -> None:
    taxonomy = Taxonomy.from_edges([], labels=list("abcd"))
    random = np.random.default_rng(1)
    log_odds = random.uniform(-4, 4, (50_000, 4))
    truth = random.random(log_odds.shape) < 1 / (1 + np.exp(-log_odds))
    found = fit_calibration("isotonic", np.sinh(log_odds).astype(np.float32), truth, taxonomy)
    where = np.linspace(-3, 3, 25)[:, None].repeat(4, axis=1)
    assert np.abs(found.log_odds(np.sinh(where), taxonomy) - where).max() < 0.35


def test_auto_takes_the_kind_with_the_lowest_loss_on_other_documents() -> None:
    logits, truth = drawn(2_000, TREE)
    calibration, losses = choose_calibration(logits, truth, TREE)
    assert set(losses) == {"none", "temperature", "isotonic"}
    assert calibration.kind == min(KINDS[1:], key=lambda kind: losses[kind])
    assert calibration == fit_calibration(calibration.kind, logits, truth, TREE)
    assert choose_calibration(logits, truth, TREE)[1] == losses
    assert choose_calibration(logits, truth, TREE, seed=1)[1] != losses


def test_the_loss_of_no_calibration_is_that_of_a_plain_loop() -> None:
    logits, truth = drawn(50, TREE)
    logits /= 4  # within what a loss tells apart
    _, losses = choose_calibration(logits, truth, TREE)
    assert losses["none"] == pytest.approx(log_loss(logits.astype(np.float64), truth) / logits.size, rel=1e-5)


def test_auto_leaves_alone_what_is_right_already() -> None:
    taxonomy = Taxonomy.from_edges([], labels=list("abcd"))
    random = np.random.default_rng(4)
    log_odds = random.normal(-1, 2, (400, 4)).astype(np.float32)
    truth = random.random(log_odds.shape) < probabilities_of(log_odds)
    losses = choose_calibration(log_odds, truth, taxonomy)[1]
    assert losses["none"] < losses["isotonic"]


@pytest.mark.parametrize("documents", [0, 1, 2, 3])
def test_a_handful_of_documents_is_enough_or_too_few(documents: int) -> None:
    logits, truth = drawn(documents, TREE)
    calibration, losses = choose_calibration(logits, truth, TREE)
    assert bool(losses) == (documents >= 2)
    assert np.isfinite(calibration.probabilities(logits, TREE)).all()
    assert fit_calibration("isotonic", logits, truth, TREE).curves == ((), (), ())


@pytest.mark.parametrize("documents", [0, 1])
def test_fewer_than_two_documents_leave_every_logit_as_it_is(documents: int) -> None:
    assert choose_calibration(*drawn(documents, TREE), TREE) == (Calibration("temperature", (1.0,) * 3), {})


@pytest.mark.parametrize("calibration", [Calibration(), Calibration("temperature", (1.5, 2, 0.1)), CURVED])
def test_a_calibration_comes_back_from_json(calibration: Calibration) -> None:
    assert Calibration.from_json(json.loads(json.dumps(calibration.to_json()))) == calibration


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        {"kind": "loud"},
        {"kind": []},
        {"kind": "none", "more": 1},
        {"kind": "none", "temperatures": [1.0]},
        {"kind": "temperature"},
        {"kind": "temperature", "temperatures": 1.0},
        {"kind": "temperature", "temperatures": [0.0]},
        {"kind": "temperature", "temperatures": [True]},
        {"kind": "temperature", "temperatures": ["1"]},
        {"kind": "temperature", "temperatures": [math.nan]},
        {"kind": "temperature", "temperatures": [1.0], "curves": [[]]},
        {"kind": "isotonic", "temperatures": [1.0]},
        {"kind": "isotonic", "temperatures": [1.0], "curves": "ab"},
        {"kind": "isotonic", "temperatures": [1.0], "curves": [1]},
        {"kind": "isotonic", "temperatures": [1.0], "curves": [[[1.0]]]},
        {"kind": "isotonic", "temperatures": [1.0], "curves": [[[1.0, "2"]]]},
        {"kind": "isotonic", "temperatures": [1.0], "curves": [[[1.0, math.inf]]]},
        {"kind": "isotonic", "temperatures": [1.0], "curves": [[[1.0, 2.0], [1.0, 3.0]]]},
        {"kind": "isotonic", "temperatures": [1.0], "curves": [[[1.0, 2.0], [2.0, 2.0]]]},
    ],
)
def test_what_is_no_calibration_is_refused(value: Any) -> None:
    with pytest.raises(InputError):
        Calibration.from_json(value)


def test_a_calibration_of_another_taxonomy_is_refused() -> None:
    logits, truth = drawn(3, TREE)
    with pytest.raises(InputError, match="1 temperature for 3 levels"):
        Calibration("temperature", (1.0,)).log_odds(logits, TREE)
    with pytest.raises(ValueError, match="7 labels"):
        CURVED.log_odds(logits[:, 1:], TREE)
    with pytest.raises(ValueError, match="shape"):
        fit_calibration("temperature", logits, truth[1:], TREE)


def expected_error(probabilities: Logits, truth: Truth) -> float:
    """As a plain loop."""
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(15)]
    for probability, right in zip(probabilities.ravel().tolist(), truth.ravel().tolist(), strict=True):
        bins[min(int(probability * 15), 14)].append((probability, right))
    off = [len(each) * abs(sum(p for p, _ in each) - sum(r for _, r in each)) / len(each) for each in bins if each]
    return sum(off) / probabilities.size


@given(tables(0, 1), st.integers(0, 3))
def test_the_calibration_error_is_that_of_a_plain_loop(table: tuple[Taxonomy, Logits], seed: int) -> None:
    taxonomy, probabilities = table
    truth = np.random.default_rng(seed).random(probabilities.shape) < 0.5
    reliability = Reliability(taxonomy)
    for row, right in zip(probabilities, truth, strict=True):
        reliability.add(row[None], right[None])
    if not len(probabilities):
        assert reliability.ece() == 0
        return
    assert reliability.ece() == pytest.approx(expected_error(probabilities, truth))
    for level in range(1, taxonomy.depth + 1):
        some = taxonomy.levels == level
        assert reliability.ece(level) == pytest.approx(expected_error(probabilities[:, some], truth[:, some]))


def test_reliability_is_told_by_level_and_over_all() -> None:
    taxonomy = Taxonomy.from_edges([("a", "b")])
    reliability = Reliability(taxonomy, bins=2)
    reliability.add(np.array([[0.75, 0.25], [1.0, 0.0]], dtype=np.float32), np.array([[True, False], [False, False]]))
    assert reliability.bins() == [Bin(2, 0.125, 0.0), Bin(2, 0.875, 0.5)]
    assert reliability.to_json() == {
        "all": {
            "ece": 0.25,
            "bins": [
                {"count": 2, "probability": 0.125, "share": 0.0},
                {"count": 2, "probability": 0.875, "share": 0.5},
            ],
        },
        "levels": [
            {"level": 1, "ece": 0.375, "bins": [{"count": 2, "probability": 0.875, "share": 0.5}]},
            {"level": 2, "ece": 0.125, "bins": [{"count": 2, "probability": 0.125, "share": 0.0}]},
        ],
    }


def margins(folder: Path, documents: int) -> tuple[Taxonomy, Logits, Truth]:
    """A linear SVM's margins of validation documents, from some of the training documents."""
    taxonomy = Taxonomy.read(folder / "taxonomy.tsv")

    def read(split: str, most: int) -> tuple[list[str], Truth]:
        with lzma.open(folder / f"{split}.jsonl.xz", "rt", encoding="utf-8") as lines:
            records = [json.loads(line) for line, _ in zip(lines, range(most), strict=False)]
        truth = np.zeros((len(records), len(taxonomy)), dtype=np.bool_)
        for row, record in zip(truth, records, strict=True):
            row[list(taxonomy.closure(map(taxonomy.index, record["label"])))] = True
        return [record["text"] for record in records], truth

    texts, right = read("train", documents)
    words = TfidfVectorizer(sublinear_tf=True)
    features = words.fit_transform(texts)
    new, truth = read("val", 10_000)
    known = words.transform(new)
    columns = [
        LinearSVC(random_state=0).fit(features, column).decision_function(known) if column.any() else [-3.0] * len(new)
        for column in right.T
    ]
    return taxonomy, np.stack(columns, axis=1).astype(np.float32), truth


def test_probabilities_of_a_linear_model_are_nearer_the_truth_once_calibrated(shared: Path) -> None:
    taxonomy, logits, truth = margins(shared / "goemotions", 4_000)
    half = len(logits) // 2
    errors: dict[str, float] = {}
    for kind in ("none", "temperature", "isotonic"):
        calibration = fit_calibration(kind, logits[:half], truth[:half], taxonomy)
        reliability = Reliability(taxonomy)
        reliability.add(calibration.probabilities(logits[half:], taxonomy), truth[half:])
        errors[kind] = reliability.ece()
    assert errors["isotonic"] < errors["temperature"] < errors["none"]
    assert errors["isotonic"] < errors["none"] / 5


@pytest.mark.slow
def test_ten_thousand_documents_of_two_thousand_labels_take_seconds() -> None:
    taxonomy = Taxonomy.from_edges(
        [(str(label // 12 - 1) if label >= 12 else None, str(label)) for label in range(2_000)]
    )
    logits, truth = drawn(10_000, taxonomy)
    start = time.process_time()
    calibration, _ = choose_calibration(logits, truth, taxonomy)
    Reliability(taxonomy).add(calibration.probabilities(logits, taxonomy), truth)
    assert time.process_time() - start < 30
