"""Scores: the same numbers as scikit-learn's, from counts that add up."""

import json
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from numpy.typing import NDArray
from sklearn.metrics import f1_score, precision_score, recall_score

from hitin import InputError, Taxonomy
from hitin.metrics import (
    Counts,
    LevelScores,
    Scores,
    Tally,
    label_f1,
    macro_f1,
    micro_f1,
    micro_precision,
    micro_recall,
)
from tests.strategies import taxonomies

Decisions = NDArray[np.bool_]


def scores_of(taxonomy: Taxonomy, predicted: Decisions, actual: Decisions) -> Scores:
    tally = Tally(taxonomy, blocks=0)
    tally.add(predicted, actual)
    return tally.scores()


@st.composite
def tables(draw: st.DrawFn, labels: int | None = None) -> tuple[Decisions, Decisions]:
    """Decisions and true labels of some documents, labels that nothing has among them."""
    shape = (draw(st.integers(1, 12)), labels or draw(st.integers(1, 8)))
    predicted = draw(st_numpy.arrays(np.bool_, shape))
    actual = draw(st_numpy.arrays(np.bool_, shape))
    return predicted, actual


def of_sklearn(score: object, tables: tuple[Decisions, Decisions], average: str | None) -> float | NDArray[np.float64]:
    """A score of scikit-learn, which takes one column for one binary problem: a second, empty one is no matter."""
    predicted, actual = (np.pad(table, ((0, 0), (0, 1))) for table in tables)
    found = score(actual, predicted, labels=range(tables[0].shape[1]), average=average, zero_division=0)  # type: ignore[operator]
    return found if average is None else float(found)


@given(tables())
def test_scores_are_those_of_scikit_learn(tables: tuple[Decisions, Decisions]) -> None:
    counts = Counts.of(*tables)
    assert micro_f1(counts) == pytest.approx(of_sklearn(f1_score, tables, "micro"), abs=1e-12)
    assert macro_f1(counts) == pytest.approx(of_sklearn(f1_score, tables, "macro"), abs=1e-12)
    assert micro_precision(counts) == pytest.approx(of_sklearn(precision_score, tables, "micro"), abs=1e-12)
    assert micro_recall(counts) == pytest.approx(of_sklearn(recall_score, tables, "micro"), abs=1e-12)
    np.testing.assert_allclose(label_f1(counts), of_sklearn(f1_score, tables, None), atol=1e-12)


@given(st.data())
def test_levels_score_as_their_columns_do_by_themselves(data: st.DataObject) -> None:
    taxonomy = data.draw(taxonomies())
    predicted, actual = data.draw(tables(labels=len(taxonomy)))
    found = scores_of(taxonomy, predicted, actual).levels
    assert [scores.level for scores in found] == list(range(1, taxonomy.depth + 1))
    for scores in found:
        columns = taxonomy.levels == scores.level
        part = (predicted[:, columns], actual[:, columns])
        assert scores.labels == columns.sum()
        assert scores.micro_f1 == pytest.approx(of_sklearn(f1_score, part, "micro"), abs=1e-12)
        assert scores.macro_f1 == pytest.approx(of_sklearn(f1_score, part, "macro"), abs=1e-12)
        assert scores.precision == pytest.approx(of_sklearn(precision_score, part, "micro"), abs=1e-12)
        assert scores.recall == pytest.approx(of_sklearn(recall_score, part, "micro"), abs=1e-12)


@given(tables(), st.integers(0, 12))
def test_counts_of_chunks_add_up(tables: tuple[Decisions, Decisions], cut: int) -> None:
    predicted, actual = tables
    whole = Counts.of(predicted, actual)
    parts = Counts.of(predicted[:cut], actual[:cut]) + Counts.of(predicted[cut:], actual[cut:])
    for counts in (whole, parts + Counts.zero(len(parts))):
        assert counts.true_positives.tolist() == (predicted & actual).sum(axis=0).tolist()
        assert counts.predicted.tolist() == predicted.sum(axis=0).tolist()
        assert counts.actual.tolist() == actual.sum(axis=0).tolist()
        assert counts.actual.dtype == np.int64


def test_scores_are_what_one_computes_by_hand() -> None:
    taxonomy = Taxonomy.from_edges([("A", "B"), ("A", "C")])
    predicted = np.array([[1, 1, 0], [1, 0, 0]], dtype=bool)
    actual = np.array([[1, 0, 0], [1, 1, 0]], dtype=bool)  # A right twice, B wrong twice, C never there
    scores = scores_of(taxonomy, predicted, actual)
    assert (scores.micro_f1, scores.macro_f1, scores.precision, scores.recall) == (2 / 3, 1 / 3, 2 / 3, 2 / 3)
    assert (scores.documents, scores.labels) == (2, 3)
    assert scores.levels == (LevelScores(1, 1, 1.0, 1.0, 1.0, 1.0), LevelScores(2, 2, 0.0, 0.0, 0.0, 0.0))


def test_scores_that_were_not_measured_are_left_out_of_json() -> None:
    levels = tuple(LevelScores(level, 1, 1.0, 1.0, 1.0, 1.0) for level in (1, 2))
    scores = Scores(1.0, 1.0, 1.0, 1.0, documents=1, labels=2, levels=levels)
    assert math.isnan(scores.samples_f1)
    plain = scores.to_json()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    level = {"labels": 1, "micro_f1": 1.0, "macro_f1": 1.0, "precision": 1.0, "recall": 1.0}
    assert plain["levels"] == [{"level": 1, **level}, {"level": 2, **level}]
    assert "samples_f1" not in plain
    assert "samples_f1" not in scores.by_name()


def test_no_documents_score_nothing_without_a_warning() -> None:
    taxonomy = Taxonomy.from_edges([("A", "B")])
    scores = scores_of(taxonomy, *(np.zeros((0, 2), dtype=bool) for _ in range(2)))
    assert (scores.micro_f1, scores.macro_f1, scores.precision, scores.recall) == (0, 0, 0, 0)


def test_what_is_no_table_of_decisions_is_refused() -> None:
    table = np.zeros((2, 3), dtype=bool)
    with pytest.raises(InputError, match=r"(?s)not float64 and bool.*threshold"):
        Counts.of(np.zeros((2, 3)), table)  # type: ignore[arg-type]
    for other in (table[:1], table[:, :1], table[0]):
        with pytest.raises(InputError, match="documents by labels"):
            Counts.of(table, other)
    with pytest.raises(ValueError, match="of 3 labels and of 1"):
        Counts.zero(3) + Counts.zero(1)
    with pytest.raises(InputError, match="on 3 labels, but the taxonomy has 2"):
        scores_of(Taxonomy.from_edges([("A", "B")]), table, table)


def test_large_tables_are_counted_in_little_memory() -> None:
    rng = np.random.default_rng(0)
    predicted, actual = (rng.integers(0, 2, (200_000, 200), dtype=np.uint8).view(np.bool_) for _ in range(2))
    tracemalloc.start()
    counts = Counts.of(predicted, actual)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < predicted.nbytes / 4
    assert counts.predicted.sum() == np.count_nonzero(predicted)
