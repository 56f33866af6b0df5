"""What thresholds are tuned for, and the points of a grid that serve it best."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from hitin.errors import InputError, shown
from hitin.metrics.counts import ratio

Metric = Literal["mean", "micro", "macro", "hierarchical"]
Numbers = NDArray[np.float64]
Points = NDArray[np.int64]

_WEIGHTS: dict[Metric, tuple[float, float]] = {
    "mean": (0.5, 0.5),
    "micro": (1.0, 0.0),
    "macro": (0.0, 1.0),
    "hierarchical": (1.0, 0.0),
}
_ROUNDS = 10
_SHORTFALL = 10.0  # what each point of missing precision costs on other documents


@dataclass(frozen=True)
class Goal:
    """The F1 to reach: micro, macro, the mean of both, or hierarchical; or the most recall with a wished precision."""

    metric: Metric = "mean"
    precision: float | None = None

    def __post_init__(self) -> None:
        if self.metric not in get_args(Metric):
            raise InputError(
                f"there is no score {shown(self.metric)} to tune for",
                kind="bad-option",
                remedy=f"It is one of {', '.join(get_args(Metric))}.",
            )
        if self.precision is not None and not 0 < self.precision <= 1:
            raise InputError(
                f"the wished precision is {shown(self.precision)}",
                kind="bad-option",
                remedy="It is above 0 and at most 1.",
            )

    @property
    def weights(self) -> tuple[float, float]:
        """Of micro-F1 and of macro-F1."""
        return _WEIGHTS[self.metric]

    def is_reached(self, precision: float) -> bool:
        """Whether a precision is the wished one; always so of F1, which has no least value."""
        return self.precision is None or precision >= self.precision

    def describe(self) -> str:
        if self.precision is not None:
            return f"the most recall with a precision of {self.precision:g}"
        return {"mean": "the mean of micro-F1 and macro-F1", "hierarchical": "hierarchical F1"}.get(
            self.metric, f"{self.metric}-F1"
        )


@dataclass(frozen=True, eq=False)
class Sheet:
    """Counts of each label at each point of a grid: (|Y|, points), of true documents (|Y|,)."""

    right: Numbers
    given: Numbers
    true: Numbers

    def grouped(self, starts: Points) -> "Sheet":
        """Sums over runs of labels."""
        return Sheet(
            np.add.reduceat(self.right, starts, axis=0),
            np.add.reduceat(self.given, starts, axis=0),
            np.add.reduceat(self.true, starts),
        )

    def f1(self) -> Numbers:
        """(|Y|, points)"""
        return ratio(2 * self.right, self.given + self.true[:, None])

    def micro(self) -> Numbers:
        return ratio(2 * self.right.sum(axis=0), self.given.sum(axis=0) + self.true.sum())

    def macro(self) -> Numbers:
        return np.asarray(self.f1().mean(axis=0))

    def precision(self) -> Numbers:
        return ratio(self.right.sum(axis=0), self.given.sum(axis=0))

    def recall(self) -> Numbers:
        return ratio(self.right.sum(axis=0), self.true.sum())


def values(goal: Goal, sheet: Sheet, *, strict: bool = True) -> Numbers:
    """(points,): how well each serves the goal. On documents that were not tuned on, a wished precision is not
    `strict`: it may be missed by a little."""
    if goal.precision is not None:
        precision, recall = sheet.precision(), sheet.recall()
        missing = np.maximum(goal.precision - precision, 0)
        return np.where(missing > 0, precision - 1, recall) if strict else recall - _SHORTFALL * missing
    micro, macro = goal.weights
    return micro * sheet.micro() + macro * (sheet.macro() if macro else 0)


def best_point(found: Numbers) -> int:
    """Where the highest value is; in the middle of them where it stands several times in a row."""
    first = int(np.argmax(found))
    run = int(np.argmin(np.append(found[first:] == found[first], False)))
    return first + (run - 1) // 2


def best_points(found: Numbers) -> Points:
    """(n,): `best_point` of each row of (n, points)."""
    first = np.argmax(found, axis=1)
    ahead = np.arange(found.shape[1]) < first[:, None]
    goes_on = ahead | (found == np.take_along_axis(found, first[:, None], axis=1))
    after = np.where(goes_on.all(axis=1), found.shape[1], np.argmin(goes_on, axis=1))
    return np.asarray(first + (after - first - 1) // 2)


def level_points(goal: Goal, sheet: Sheet, starts: Points) -> Points:
    """(levels,): the best point for each level, which begins at the label of `starts`, one by one until none moves."""
    levels = sheet.grouped(starts)
    if goal.precision is not None:
        each = [Sheet(levels.right[[i]], levels.given[[i]], levels.true[[i]]) for i in range(len(starts))]
        return np.array([best_point(values(goal, one)) for one in each])
    f1 = np.add.reduceat(sheet.f1(), starts, axis=0) / len(sheet.true)
    points = np.full(len(starts), best_point(values(goal, sheet)))
    rows = np.arange(len(starts))
    micro, macro = goal.weights
    for _ in range(_ROUNDS):
        before = points.copy()
        for level in rows:
            others = rows != level
            right = levels.right[rows, points][others].sum() + levels.right[level]
            given = levels.given[rows, points][others].sum() + levels.given[level]
            whole = micro * ratio(2 * right, given + levels.true.sum())
            points[level] = best_point(whole + macro * (f1[rows, points][others].sum() + f1[level]))
        if (points == before).all():
            break
    return points


def label_points(goal: Goal, sheet: Sheet, start: Points) -> Points:
    """(|Y|,): the best point for each label by itself, from `start` on.

    Micro-F1 f is the highest where each label has the highest 2 right - f given (a ratio is the highest where its
    numerator less so many times its denominator is); so labels are apart, given f, which is then known better.
    """
    rows, count = np.arange(len(start)), len(start)
    if goal.precision is not None:
        return _precise_points(sheet, goal.precision)
    micro, macro = goal.weights
    f1 = sheet.f1() / count
    best, points = (-1.0, start), start
    for _ in range(_ROUNDS):
        right, whole = sheet.right[rows, points].sum(), sheet.given[rows, points].sum() + sheet.true.sum()
        ratio = 2 * right / max(whole, 1)
        value = micro * ratio + macro * f1[rows, points].sum()
        if value <= best[0]:
            break
        best = (value, points)
        gain = micro * (2 * sheet.right - ratio * sheet.given) / max(whole, 1) + macro * f1
        points = best_points(gain)
    return best[1]


def _precise_points(sheet: Sheet, wished: float) -> Points:
    """The lowest point at which each label has the wished precision; the highest of all where there is none."""
    precise = (sheet.given > 0) & (sheet.right >= wished * sheet.given)
    last = sheet.given.shape[1] - 1
    return np.asarray(np.where(precise.any(axis=1), precise.argmax(axis=1), last))
