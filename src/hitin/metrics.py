"""Flat scores: F1, precision and recall from counts, which add up over chunks of any number of documents."""

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from hitin.errors import InputError
from hitin.taxonomy import Taxonomy

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Decisions = NDArray[np.bool_]
"""Which documents (rows) have which labels (columns)."""

_CHUNK = 1 << 22  # cells of a table that are compared at once


@dataclass(frozen=True, eq=False)
class Counts:
    """For each label, how many documents were rightly given it, were given it at all, and have it in truth."""

    true_positives: Integers
    predicted: Integers
    actual: Integers

    @classmethod
    def zero(cls, labels: int) -> "Counts":
        """The counts of no documents: where a sum over chunks begins."""
        return cls(*(np.zeros(labels, dtype=np.int64) for _ in range(3)))

    @classmethod
    def of(cls, predicted: Decisions, actual: Decisions) -> "Counts":
        """Count two tables, documents by labels."""
        _check_tables(predicted, actual)
        total = cls.zero(predicted.shape[1])
        rows = max(1, _CHUNK // max(predicted.shape[1], 1))
        for start in range(0, len(predicted), rows):
            guess, truth = predicted[start : start + rows], actual[start : start + rows]
            total += cls(*(np.count_nonzero(table, axis=0) for table in (guess & truth, guess, truth)))
        return total

    def __len__(self) -> int:
        return len(self.actual)

    def __add__(self, other: "Counts") -> "Counts":
        if len(self) != len(other):
            raise ValueError(f"counts of {len(self)} labels and of {len(other)} cannot be added")
        return Counts(
            self.true_positives + other.true_positives, self.predicted + other.predicted, self.actual + other.actual
        )

    def __getitem__(self, labels: slice) -> "Counts":
        """The counts of some labels only."""
        return Counts(self.true_positives[labels], self.predicted[labels], self.actual[labels])


def micro_precision(counts: Counts) -> float:
    """The share of given labels that are right."""
    return float(_ratio(counts.true_positives.sum(), counts.predicted.sum()))


def micro_recall(counts: Counts) -> float:
    """The share of true labels that were given."""
    return float(_ratio(counts.true_positives.sum(), counts.actual.sum()))


def micro_f1(counts: Counts) -> float:
    """F1 over all decisions, so that frequent labels count most."""
    return float(_ratio(2 * counts.true_positives.sum(), counts.predicted.sum() + counts.actual.sum()))


def label_f1(counts: Counts) -> Floats:
    """F1 of each label; 0 for one that neither occurs nor is given."""
    return _ratio(2 * counts.true_positives, counts.predicted + counts.actual)


def macro_f1(counts: Counts) -> float:
    """The mean F1 of all labels, those without documents included: scikit-learn's `zero_division=0`."""
    return float(label_f1(counts).mean())


@dataclass(frozen=True)
class LevelScores:
    """The scores of the labels on one level, 1 at the top."""

    level: int
    labels: int
    micro_f1: float
    macro_f1: float


def by_level(counts: Counts, taxonomy: Taxonomy) -> list[LevelScores]:
    """Scores for each level, from the top."""
    if len(counts) != len(taxonomy):
        raise ValueError(f"these are counts of {len(counts)} labels, but the taxonomy has {len(taxonomy)}")
    found, start = [], 0
    for level, size in enumerate(taxonomy.level_sizes, start=1):
        part = counts[start : start + size]  # labels are numbered level by level
        found.append(LevelScores(level, size, micro_f1(part), macro_f1(part)))
        start += size
    return found


@dataclass(frozen=True)
class Scores:
    """Flat scores of a model on some documents. Precision and recall are over all decisions, as micro-F1 is."""

    micro_f1: float
    macro_f1: float
    precision: float
    recall: float
    documents: int
    labels: int
    levels: tuple[LevelScores, ...] = ()

    @classmethod
    def of(cls, counts: Counts, taxonomy: Taxonomy, documents: int) -> "Scores":
        return cls(
            micro_f1=micro_f1(counts),
            macro_f1=macro_f1(counts),
            precision=micro_precision(counts),
            recall=micro_recall(counts),
            documents=documents,
            labels=len(counts),
            levels=tuple(by_level(counts, taxonomy)),
        )

    def to_json(self) -> dict[str, object]:
        """Plain values for `json.dumps`."""
        return {**asdict(self), "levels": [asdict(level) for level in self.levels]}


def _check_tables(predicted: Decisions, actual: Decisions) -> None:
    if predicted.dtype != np.bool_ or actual.dtype != np.bool_:
        raise InputError(
            f"decisions are true or false, not {predicted.dtype} and {actual.dtype}",
            kind="bad-scores",
            remedy="Compare probabilities with a threshold first.",
        )
    if predicted.ndim != 2 or predicted.shape != actual.shape:
        raise InputError(
            f"decisions have the shape {predicted.shape}, true labels {actual.shape}",
            kind="bad-scores",
            remedy="Both are tables of documents by labels, for the same documents and labels.",
        )


def _ratio(part: Integers, whole: Integers) -> Floats:
    """Quotients, where nothing of nothing is nothing."""
    return np.asarray(part / np.maximum(whole, 1), dtype=np.float64)
