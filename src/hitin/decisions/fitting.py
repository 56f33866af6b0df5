"""Ways to decide, tuned on some documents: what is best for each policy, all thresholds looked at together."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.calibration import Calibration, LogOdds
from hitin.decisions.critical import grid_size, points_given
from hitin.decisions.decisions import Decisions, Threshold
from hitin.decisions.goals import Goal, Numbers, Sheet, best_point, label_points, level_points, values
from hitin.decisions.policies import AS_SHOWN, POLICIES, Given, Odds, Policy, best_labels, single_path
from hitin.decisions.settings import DecisionSettings, Thresholds
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import highest_below, level_slices, lowest_above

_SHIFTS = np.linspace(-3, 3, 63)  # of all thresholds together, in log-odds; 0 is one of them
_STOPS = np.arange(63) / 64
_SHRINKAGE = 30.0  # true documents of a label at which its own threshold and that of its level count the same
_SURE = 1e-9  # how near to 0 and 1 a threshold may be
_APART = 0.1  # of the gap between two scores, how near to either a point of the grid may be
_MOST_LABELS = 32  # of a document, by `top-k`
MANY_LABELS = 10_000
"""With more of them, a threshold a label is tried only where it is asked for."""


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


def candidates(settings: DecisionSettings, taxonomy: Taxonomy) -> Iterator[Candidate]:
    """The ways to try. Of very many labels most have hardly a document to choose a threshold by."""
    kinds: Sequence[Thresholds] = ("fixed", "one", "level", "label")
    if len(taxonomy) > MANY_LABELS:
        kinds = kinds[:-1]
    for policy in POLICIES if settings.policy == "auto" else (settings.policy,):
        if policy == "single-path":
            yield Candidate(policy)
            yield Candidate(policy, stops=True)
        elif policy == "top-k":
            yield Candidate(policy)
        else:
            for kind in kinds if settings.thresholds == "auto" else (settings.thresholds,):
                yield Candidate(policy, kind)


class Fit:
    """Candidates tuned on some documents."""

    def __init__(self, odds: LogOdds, truth: Given, taxonomy: Taxonomy, goal: Goal, calibration: Calibration) -> None:
        self.odds, self.truth, self.taxonomy = odds, truth, taxonomy
        self.goal, self.calibration = goal, calibration

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
        """Thresholds of one half: the model's own, that of calibrated probabilities, and without calibration."""
        usual = Decisions(policy, calibration=self.calibration)
        return [
            replace(usual, threshold=self._own_half()),
            usual,
            Decisions(policy, calibration=self._no_change(policy)),
        ]

    def _no_change(self, policy: Policy) -> Calibration:
        """A calibration that leaves log-odds as they are. Where only these matter, what is shown may be coherent."""
        if policy in AS_SHOWN or self.calibration.kind == "none":
            return Calibration()
        return Calibration("temperature", (1.0,) * self.taxonomy.depth)

    def _own_half(self) -> Threshold:
        """Where the model itself says one half: calibration may have moved it."""
        if self.calibration.kind == "none":
            return 0.5
        logits = np.zeros((1, len(self.taxonomy)), dtype=np.float32)
        return self._by_level(self.calibration.log_odds(logits, self.taxonomy)[0])

    def _one(self, policy: Policy) -> Threshold:
        scores = self._scores(policy)
        grid = grid_of(scores, self.truth, grid_size(self.taxonomy, policy))
        return _probability(grid[self._best(policy, scores, grid)])

    def _levels(self, policy: Policy) -> Threshold:
        return self._by_level(self._shifted(policy, self._alone(policy).levels))

    def _labels(self, policy: Policy) -> Threshold:
        by_label = self._shifted(policy, self._alone(policy).labels)
        return {name: _probability(each) for name, each in zip(self.taxonomy.labels, by_label, strict=True)}

    def _by_level(self, log_odds: NDArray[np.floating[Any]]) -> Threshold:
        return tuple(_probability(log_odds[labels.start]) for labels in level_slices(self.taxonomy))

    def _scores(self, policy: Policy) -> Odds:
        return self.odds.shown if policy in AS_SHOWN else self.odds.own

    def _alone(self, policy: Policy) -> "Alone":
        return self._alone_as_shown if policy in AS_SHOWN else self._alone_by_own

    @cached_property
    def _alone_as_shown(self) -> "Alone":
        return Alone(self.odds.shown, self.truth, self.taxonomy, self.goal)

    @cached_property
    def _alone_by_own(self) -> "Alone":
        return Alone(self.odds.own, self.truth, self.taxonomy, self.goal)

    def _shifted(self, policy: Policy, at: Numbers) -> Numbers:
        """The thresholds, found for labels as if each were decided by itself, moved together to where they serve the
        policy best."""
        if policy == "raw":
            return at
        gains = self._scores(policy) - at.astype(np.float32)
        return np.asarray(at + _SHIFTS[self._best(policy, gains, _SHIFTS)])

    def _best(self, policy: Policy, gains: Odds, grid: Numbers) -> int:
        closed = self.goal.metric == "hierarchical"
        points = points_given(policy, gains, self.taxonomy, grid, closed=closed)
        return best_point(values(self.goal, sheet_of_points(points, self.truth, len(grid))))

    def _best_k(self) -> int:
        scores, most = self.odds.own, min(_MOST_LABELS, len(self.taxonomy))
        best = best_labels(scores, most)
        points = np.zeros(scores.shape, dtype=np.int16)  # of the grid k = most, ..., 1
        np.put_along_axis(points, best, np.arange(most, 0, -1, dtype=np.int16)[None], axis=1)
        sheet = sheet_of_points(highest_below(points, self.taxonomy), self.truth, most)
        return most - int(np.argmax(values(self.goal, sheet)))

    def _best_stop(self) -> float:
        path = single_path(self.odds.own, np.zeros(1), self.taxonomy, 1)
        sure = lowest_above(self.odds.probabilities, self.taxonomy)
        points = np.zeros(path.shape, dtype=np.int16)
        points[path] = np.searchsorted(_STOPS, sure[path], side="right")
        return float(_STOPS[int(np.argmax(values(self.goal, sheet_of_points(points, self.truth, len(_STOPS)))))])


class Alone:
    """Thresholds of labels as if each were decided by itself: (|Y|,) of log-odds."""

    def __init__(self, scores: Odds, truth: Given, taxonomy: Taxonomy, goal: Goal) -> None:
        self.taxonomy, self.goal = taxonomy, goal
        self.grid = grid_of(scores, truth, grid_size(taxonomy, "raw"))
        self.sheet = sheet_of_points(points_given("raw", scores, taxonomy, self.grid), truth, len(self.grid))

    @cached_property
    def levels(self) -> Numbers:
        """One a level."""
        starts = np.array([labels.start for labels in level_slices(self.taxonomy)])
        points = level_points(self.goal, self.sheet, starts)
        return np.asarray(np.repeat(self.grid[points], self.taxonomy.level_sizes))

    @cached_property
    def labels(self) -> Numbers:
        """One a label; those of rare labels are near that of their level."""
        start = np.searchsorted(self.grid, self.levels)
        own = self.grid[label_points(self.goal, self.sheet, start)]
        weight = self.sheet.true / (self.sheet.true + _SHRINKAGE)
        return weight * own + (1 - weight) * self.levels


def grid_of(scores: Odds, truth: Given, size: int) -> Numbers:
    """Rising log-odds that share out the scores that may matter, from below them all; 0 is one of them."""
    count = min(scores.size, max(1000, 8 * int(truth.sum())))
    highest = np.partition(scores.ravel(), scores.size - count)[-count:].astype(np.float64)
    shared_out = _between(np.quantile(highest, np.linspace(0, 1, size - 2)), np.unique(highest))
    return np.sort(np.append(shared_out, [0.0, highest.min() - 1]))


def _between(points: Numbers, scores: Numbers) -> Numbers:
    """The points, off the rising scores they lie on or near: what is above one does not hang on how it is rounded."""
    place = np.searchsorted(scores, points, side="right")
    low, high = scores[place - 1], np.append(scores, scores[-1] + 1)[place]
    margin = _APART * (high - low)
    return np.clip(points, low + margin, high - margin)


def sheet_of_points(points: NDArray[np.integer[Any]], truth: Given, size: int) -> Sheet:
    """Counts at each point of a grid, from the number of points at which each label is given."""
    labels = truth.shape[1]
    given = points > 0  # few, where labels are many
    cells = points[given].astype(np.int64) + np.nonzero(given)[1] * (size + 1)

    def at_each(chosen: NDArray[np.int64]) -> Numbers:
        table = np.bincount(chosen, minlength=labels * (size + 1)).reshape(labels, size + 1)
        return table[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:].astype(np.float64)

    return Sheet(at_each(cells[truth[given]]), at_each(cells), truth.sum(axis=0).astype(np.float64))


def _probability(log_odds: float) -> float:
    """Never quite 0 or 1, which would stand for every label and for none."""
    small = math.exp(-abs(log_odds))
    found = (1 if log_odds >= 0 else small) / (1 + small)
    return float(f"{min(max(found, _SURE), 1 - _SURE):.12g}")
