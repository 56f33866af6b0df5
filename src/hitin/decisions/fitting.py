"""Ways to decide, tuned on some documents: what is best for each policy, all thresholds looked at together."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.calibration import Calibration
from hitin.decisions.critical import grid_size, points_given
from hitin.decisions.decisions import Decisions, Threshold
from hitin.decisions.goals import Goal, Numbers, Sheet, best_point, label_points, level_points, values
from hitin.decisions.policies import POLICIES, Given, Policy, Scores, single_path
from hitin.decisions.settings import DecisionSettings, Thresholds
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import highest_below, lowest_above

_SHIFTS = np.linspace(-3, 3, 63)  # of all thresholds together, in log-odds; 0 is one of them
_STOPS = np.arange(63) / 64
_SHRINKAGE = 30.0  # true documents of a label at which its own threshold and that of its level count the same
_MOST_LABELS = 32  # of a document, by `top-k`


@dataclass(frozen=True)
class Candidate:
    """A way to decide, before anything is tuned."""

    policy: Policy
    thresholds: Thresholds | None = None
    """`None` for the policies that have none."""
    stops: bool = False
    """Whether a probability is tuned below which `single-path` stops."""

    @property
    def name(self) -> str:
        return f"{self.policy}, stopping" if self.stops else self.policy


def candidates(settings: DecisionSettings) -> Iterator[Candidate]:
    """The ways to try."""
    for policy in POLICIES if settings.policy == "auto" else (settings.policy,):
        if policy == "single-path":
            yield Candidate(policy)
            yield Candidate(policy, stops=True)
        elif policy == "top-k":
            yield Candidate(policy)
        else:
            kinds: Sequence[Thresholds] = ("fixed", "one", "level", "label")
            for kind in kinds if settings.thresholds == "auto" else (settings.thresholds,):
                yield Candidate(policy, kind)


class Fit:
    """Candidates tuned on some documents."""

    def __init__(self, scores: Scores, truth: Given, taxonomy: Taxonomy, goal: Goal, calibration: Calibration) -> None:
        self.scores, self.truth, self.taxonomy = scores, truth, taxonomy
        self.goal, self.calibration = goal, calibration
        self.level_starts = np.cumsum([0, *taxonomy.level_sizes[:-1]])

    def decisions(self, candidate: Candidate) -> Decisions:
        usual = Decisions(candidate.policy, calibration=self.calibration)
        if candidate.policy == "top-k":
            return replace(usual, k=self._best_k())
        if candidate.policy == "single-path":
            return replace(usual, stop=self._best_stop() if candidate.stops else 0.0)
        match candidate.thresholds:
            case "one":
                return replace(usual, threshold=self._one(candidate.policy))
            case "level":
                return replace(usual, threshold=self._levels(candidate.policy))
            case "label":
                return replace(usual, threshold=self._labels(candidate.policy))
        return replace(usual, threshold=self._own_half())

    def halves(self, policy: Policy) -> list[Decisions]:
        """Thresholds of one half: the model's own, and that of calibrated probabilities."""
        usual = Decisions(policy, calibration=self.calibration)
        return [replace(usual, threshold=self._own_half()), usual]

    def _own_half(self) -> Threshold:
        """Where the model itself says one half: calibration may have moved it."""
        if self.calibration.kind == "none":
            return 0.5
        logits = np.zeros((1, len(self.taxonomy)), dtype=np.float32)
        scores = self.calibration.log_odds(logits, self.taxonomy)[0]
        return tuple(_probability(each) for each in scores[self.level_starts])

    def _one(self, policy: Policy) -> Threshold:
        grid = self._grid(grid_size(self.taxonomy, policy))
        return _probability(grid[self._best(policy, self.scores, grid)])

    def _levels(self, policy: Policy) -> Threshold:
        by_level = self._shifted(policy, self._level_thresholds)
        return tuple(_probability(each) for each in by_level[self.level_starts])

    def _labels(self, policy: Policy) -> Threshold:
        by_label = self._shifted(policy, self._label_thresholds)
        return {name: _probability(each) for name, each in zip(self.taxonomy.labels, by_label, strict=True)}

    def _shifted(self, policy: Policy, at: Numbers) -> Numbers:
        """The thresholds, found for labels as if each were decided by itself, moved together to where they serve the
        policy best."""
        if policy == "raw":
            return at
        return np.asarray(at + _SHIFTS[self._best(policy, self.scores - at.astype(np.float32), _SHIFTS)])

    def _best(self, policy: Policy, gains: Scores, grid: Numbers) -> int:
        closed = self.goal.metric == "hierarchical"
        points = points_given(policy, gains, self.taxonomy, grid, closed=closed)
        return best_point(values(self.goal, sheet_of_points(points, self.truth, len(grid))))

    @cached_property
    def _level_thresholds(self) -> Numbers:
        """(|Y|,) of log-odds."""
        points = level_points(self.goal, self._raw_sheet, self.level_starts)
        return np.asarray(np.repeat(self._raw_grid[points], self.taxonomy.level_sizes))

    @cached_property
    def _label_thresholds(self) -> Numbers:
        """(|Y|,) of log-odds; those of rare labels are near that of their level."""
        start = np.searchsorted(self._raw_grid, self._level_thresholds)
        own = self._raw_grid[label_points(self.goal, self._raw_sheet, start)]
        weight = self._raw_sheet.true / (self._raw_sheet.true + _SHRINKAGE)
        return weight * own + (1 - weight) * self._level_thresholds

    @cached_property
    def _raw_grid(self) -> Numbers:
        return self._grid(grid_size(self.taxonomy, "raw"))

    @cached_property
    def _raw_sheet(self) -> Sheet:
        points = points_given("raw", self.scores, self.taxonomy, self._raw_grid)
        return sheet_of_points(points, self.truth, len(self._raw_grid))

    def _grid(self, size: int) -> Numbers:
        """Rising log-odds that share out the scores that may matter, from below them all; 0 is one of them."""
        count = min(self.scores.size, max(1000, 8 * int(self.truth.sum())))
        highest = np.partition(self.scores.ravel(), self.scores.size - count)[-count:].astype(np.float64)
        shared_out = np.quantile(highest, np.linspace(0, 1, size - 2))
        return np.sort(np.append(shared_out, [0.0, highest.min() - 1]))

    def _best_k(self) -> int:
        most = min(_MOST_LABELS, len(self.taxonomy))
        best = np.argsort(-self.scores, axis=1, kind="stable")[:, :most]
        points = np.zeros(self.scores.shape, dtype=np.int16)  # of the grid k = most, ..., 1
        np.put_along_axis(points, best, np.arange(most, 0, -1, dtype=np.int16)[None], axis=1)
        sheet = sheet_of_points(highest_below(points, self.taxonomy), self.truth, most)
        return most - int(np.argmax(values(self.goal, sheet)))

    def _best_stop(self) -> float:
        path = single_path(self.scores, np.zeros(1), self.taxonomy, 1)
        sure = lowest_above(self.calibration.probabilities_of_log_odds(self.scores, self.taxonomy), self.taxonomy)
        points = np.where(path, np.searchsorted(_STOPS, sure.ravel(), side="right").reshape(sure.shape), 0)
        return float(_STOPS[int(np.argmax(values(self.goal, sheet_of_points(points, self.truth, len(_STOPS)))))])


def sheet_of_points(points: NDArray[np.integer[Any]], truth: Given, size: int) -> Sheet:
    """Counts at each point of a grid, from the number of points at which each label is given."""
    labels = truth.shape[1]
    cells = points.astype(np.int64) + np.arange(labels) * (size + 1)

    def at_each(chosen: NDArray[np.int64]) -> Numbers:
        table = np.bincount(chosen.ravel(), minlength=labels * (size + 1)).reshape(labels, size + 1)
        return table[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:].astype(np.float64)

    return Sheet(at_each(cells[truth]), at_each(cells), truth.sum(axis=0).astype(np.float64))


def _probability(log_odds: float) -> float:
    return float(f"{1 / (1 + np.exp(-log_odds)):.9g}")
