"""Choosing decisions on validation documents: the policy, its thresholds, and what else it takes."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.calibration import Calibration, choose_calibration, fit_calibration
from hitin.decisions.decisions import Decisions
from hitin.decisions.fitting import Candidate, Fit, candidates
from hitin.decisions.goals import Goal, Sheet, values
from hitin.decisions.policies import Given, Policy, Scores
from hitin.decisions.settings import DecisionSettings
from hitin.metrics import Counts, macro_f1, micro_f1, micro_precision, micro_recall
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import with_ancestors

Advance = Callable[[int], None]

_FOLDS = 5
_CELLS = 40_000_000  # of documents by labels that are tuned on


@dataclass(frozen=True)
class Row:
    """What a way to decide gave on the validation documents."""

    policy: str
    thresholds: str
    decisions: str
    """In words."""
    micro_f1: float
    macro_f1: float
    hierarchical_f1: float
    precision: float
    recall: float
    value: float
    """Of the goal, on the documents it was tuned on."""
    held_out: float
    """Of the goal, each part of the documents decided by what was tuned on the others."""
    chosen: bool = False


@dataclass(frozen=True)
class Tuned:
    """The decisions that did best, and the table of all that were tried."""

    decisions: Decisions
    goal: Goal
    documents: int
    rows: tuple[Row, ...]
    calibration_losses: dict[str, float]
    """The log loss of each calibration on documents that it was not fitted on."""

    def to_json(self) -> dict[str, Any]:
        return {
            "goal": self.goal.describe(),
            "documents": self.documents,
            "calibration_log_loss": self.calibration_losses,
            "table": [asdict(row) for row in self.rows],
        }


def rows_to_tune_on(documents: int, taxonomy: Taxonomy, seed: int = 0) -> NDArray[np.int64]:
    """All documents; where they are so many that their scores would not fit, some of them."""
    most = max(1000, _CELLS // len(taxonomy))
    return np.sort(np.random.default_rng((seed, 3)).permutation(documents)[:most])


def tune(
    logits: NDArray[np.float32],
    truth: Given,
    taxonomy: Taxonomy,
    settings: DecisionSettings | None = None,
    *,
    seed: int = 0,
    advance: Advance | None = None,
) -> Tuned:
    """The best decisions on these documents. `truth` holds the ancestors of every label.

    Ways are compared by what they give on documents that they were not tuned on, a fifth of them at a time: on its
    own documents the way with the most thresholds would always win. The best is then tuned on all of them.
    """
    settings = settings or DecisionSettings()
    calibration, losses = _calibration(settings, logits, truth, taxonomy, seed)
    scores = calibration.log_odds(logits, taxonomy)
    wanted = list(candidates(settings))
    tuner = _Tuner(scores, truth, taxonomy, settings.goal, calibration, advance or (lambda _: None))
    held_out = tuner.held_out(wanted, seed)
    rows = tuner.rows(wanted, held_out)
    best = _best_of_each(rows)
    chosen = max(
        (place for policy, place in best.items() if settings.policy != "auto" or policy != "raw"),
        key=lambda place: rows[place][0].held_out,
    )
    others = {policy: _details(rows[place][1]) for policy, place in best.items() if place != chosen}
    paper = tuner.row(Candidate("raw", "fixed"), Decisions("raw"), logits, None)
    table = [replace(row, chosen=place == chosen) for place, (row, _) in enumerate(rows)]
    found = Tuned(rows[chosen][1], settings.goal, len(truth), (_as_in_papers(paper), *table), losses)
    return replace(found, decisions=replace(found.decisions, others=others, tuned=found.to_json()))


def _best_of_each(rows: Sequence[tuple[Row, Decisions]]) -> dict[str, int]:
    """Of each policy the row that did best on documents it was not tuned on, the first of equals."""
    best: dict[str, int] = {}
    for place, (row, _) in enumerate(rows):
        if row.policy not in best or row.held_out > rows[best[row.policy]][0].held_out:
            best[row.policy] = place
    return best


def _details(decisions: Decisions) -> dict[str, Any]:
    return {"threshold": decisions.threshold, "k": decisions.k, "stop": decisions.stop}


def steps_to_tune(settings: DecisionSettings) -> int:
    """How often `tune` calls `advance(1)`."""
    return (_FOLDS + 1) * len(list(candidates(settings)))


class _Tuner:
    """All that candidates are tried on."""

    def __init__(
        self, scores: Scores, truth: Given, taxonomy: Taxonomy, goal: Goal, calibration: Calibration, advance: Advance
    ) -> None:
        self.scores, self.truth, self.taxonomy = scores, truth, taxonomy
        self.goal, self.calibration, self.advance = goal, calibration, advance

    def held_out(self, wanted: Sequence[Candidate], seed: int) -> list[float | None]:
        """The value of each candidate on documents that it was not tuned on."""
        if len(self.truth) < 2 * _FOLDS or len(wanted) < 2:
            return [None] * len(wanted)
        folds = np.random.default_rng((seed, 2)).permutation(len(self.truth)) % _FOLDS
        counts = [Counts.zero(len(self.taxonomy)) for _ in wanted]
        for fold in range(_FOLDS):
            fit = self._fit(folds != fold)
            scores, truth = self.scores[folds == fold], self.truth[folds == fold]
            for place, candidate in enumerate(wanted):
                given = fit.decisions(candidate).decide_scores(scores, self.taxonomy)
                counts[place] += Counts.of(self._counted(candidate.policy, given), truth)
                self.advance(1)
        return [float(values(self.goal, _sheet_of(each), strict=False)[0]) for each in counts]

    def rows(self, wanted: Sequence[Candidate], held_out: Sequence[float | None]) -> list[tuple[Row, Decisions]]:
        """Each candidate tuned on all documents, with what it gives on them; never less than thresholds of a half."""
        fit, found = self._fit(slice(None)), []
        for candidate, value in zip(wanted, held_out, strict=True):
            is_tuned = candidate.thresholds not in (None, "fixed")
            ways = [fit.decisions(candidate), *(fit.halves(candidate.policy) if is_tuned else ())]
            tried = [(self.row(candidate, way, self.scores, value), way) for way in ways]
            found.append(max(tried, key=lambda each: each[0].value))
            self.advance(1)
        return found

    def row(self, candidate: Candidate, decisions: Decisions, scores: Scores, held_out: float | None) -> Row:
        given = decisions.decide_scores(scores, self.taxonomy)
        counts = Counts.of(given, self.truth)
        closed = counts if candidate.policy != "raw" else Counts.of(with_ancestors(given, self.taxonomy), self.truth)
        counted = closed if self.goal.metric == "hierarchical" else counts
        value = float(values(self.goal, _sheet_of(counted))[0])
        return Row(
            policy=candidate.policy,
            thresholds=candidate.thresholds or "",
            decisions=decisions.describe(),
            micro_f1=micro_f1(counts),
            macro_f1=macro_f1(counts),
            hierarchical_f1=micro_f1(closed),
            precision=micro_precision(counts),
            recall=micro_recall(counts),
            value=value,
            held_out=value if held_out is None else held_out,
        )

    def _fit(self, rows: Any) -> "Fit":
        return Fit(self.scores[rows], self.truth[rows], self.taxonomy, self.goal, self.calibration)

    def _counted(self, policy: Policy, given: Given) -> Given:
        """What the goal counts: hierarchical F1 adds the ancestors of what is given."""
        is_open = policy == "raw" and self.goal.metric == "hierarchical"
        return with_ancestors(given, self.taxonomy) if is_open else given


def _sheet_of(counts: Counts) -> Sheet:
    right, given, true = (each.astype(np.float64) for each in (counts.true_positives, counts.predicted, counts.actual))
    return Sheet(right[:, None], given[:, None], true)


def _calibration(
    settings: DecisionSettings, logits: NDArray[np.float32], truth: Given, taxonomy: Taxonomy, seed: int
) -> tuple[Calibration, dict[str, float]]:
    if settings.calibration == "auto":
        calibration, losses = choose_calibration(logits, truth, taxonomy, seed)
        return calibration, {str(kind): loss for kind, loss in losses.items()}
    return fit_calibration(settings.calibration, logits, truth, taxonomy), {}


def _as_in_papers(row: Row) -> Row:
    return replace(row, decisions="as in papers: every label above 0.5, uncalibrated")
