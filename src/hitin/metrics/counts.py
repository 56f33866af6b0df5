"""Counts of decisions, which add up over chunks of any number of documents, and the flat scores that they tell."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hitin.errors import InputError

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]
Decided = NDArray[np.bool_]
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
    def of(cls, predicted: Decided, actual: Decided) -> "Counts":
        """Count two tables, documents by labels."""
        check_tables(predicted, actual)
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
    return float(ratio(counts.true_positives.sum(), counts.predicted.sum()))


def micro_recall(counts: Counts) -> float:
    """The share of true labels that were given."""
    return float(ratio(counts.true_positives.sum(), counts.actual.sum()))


def micro_f1(counts: Counts) -> float:
    """F1 over all decisions, so that frequent labels count most."""
    return float(ratio(2 * counts.true_positives.sum(), counts.predicted.sum() + counts.actual.sum()))


def label_f1(counts: Counts) -> Floats:
    """F1 of each label; 0 for one that neither occurs nor is given."""
    return ratio(2 * counts.true_positives, counts.predicted + counts.actual)


def macro_f1(counts: Counts) -> float:
    """The mean F1 of all labels, those without documents included: scikit-learn's `zero_division=0`."""
    return float(label_f1(counts).mean())


def check_tables(predicted: Decided, actual: Decided) -> None:
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


def ratio(part: Integers | Floats, whole: Integers | Floats) -> Floats:
    """Quotients of sums by whole numbers, where nothing of nothing is nothing."""
    return np.asarray(part / np.maximum(whole, 1), dtype=np.float64)
