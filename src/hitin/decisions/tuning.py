"""Choosing decisions on validation documents: the policy, its thresholds, and what else it takes."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.calibration import Calibration, LogOdds, choose_calibration, fit_calibration
from hitin.decisions.decisions import Decisions
from hitin.decisions.fitting import Candidate, Fit, candidates
from hitin.decisions.goals import Goal, Sheet, values
from hitin.decisions.policies import Given, Policy
from hitin.decisions.settings import DecisionSettings
from hitin.metrics import Counts, macro_f1, micro_f1, micro_precision, micro_recall
from hitin.model import Advance
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import with_ancestors

_FOLDS = 5
_ROUNDING = 1e-12
_AS_IN_PAPERS = "every label above 0.5, uncalibrated"
_CELLS = 40_000_000  # of documents by labels that are tuned on
_FEWEST = 400  # documents, however many the labels


@dataclass(frozen=True)
class Row:
    """What a way to decide gave on the validation documents."""

    name: str
    """Of the way, for people: the policy, mostly."""
    policy: Policy
    thresholds: str
    decisions: str
    """In words."""
    micro_f1: float
    macro_f1: float
    hierarchical_f1: float
    precision: float
    recall: float
    value: float
    """Of the goal, on the documents it was tuned on. For a wished precision it is the recall, or where that precision
    is not reached, by how much precision is below 1, as a negative number."""
    held_out: float
    """Of the goal, each part of the documents decided by what was tuned on the others; with a wished precision the
    recall less a penalty for what is missing of it. The same as `value` where nothing was held out."""
    reached: bool = True
    """Whether the wished precision is reached on the documents it was tuned on."""
    chosen: bool = False


@dataclass(frozen=True)
class Tuned:
    """The decisions that did best, and the table of all that were tried."""

    decisions: Decisions
    goal: Goal
    documents: int
    rows: tuple[Row, ...]
    """The first is as in papers: each label above one half, uncalibrated."""
    calibration_losses: dict[str, float]
    """The log loss of each calibration on documents that it was not fitted on."""
    folds: int = _FOLDS
    """Into how many parts the documents were cut, so that each was decided by what was tuned on the others; 0 where
    there were too few documents, or nothing to choose between."""

    @property
    def chosen(self) -> Row:
        return next(row for row in self.rows if row.chosen)

    @property
    def reached(self) -> bool:
        """Whether the chosen way has the wished precision on the documents; no other had it if not."""
        return self.chosen.reached

    def to_json(self) -> dict[str, Any]:
        return {
            "goal": self.goal.describe(),
            "reached": self.reached,
            "documents": self.documents,
            "folds": self.folds,
            "calibration_log_loss": self.calibration_losses,
            "table": [asdict(row) for row in self.rows],
        }


def rows_to_tune_on(documents: int, taxonomy: Taxonomy, seed: int = 0) -> NDArray[np.int64]:
    """All documents; where they are so many that their scores would not fit, some of them."""
    most = max(_FEWEST, _CELLS // len(taxonomy))
    return np.sort(np.random.default_rng((seed, 3)).permutation(documents)[:most])


def steps_to_tune(settings: DecisionSettings, taxonomy: Taxonomy) -> int:
    """How often `tune` calls `advance(1)`."""
    return (_FOLDS + 1) * len(list(candidates(settings, taxonomy)))


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
    own documents the way with the most thresholds would always win. The best is then tuned on all of them. On them it
    is never below thresholds of one half, nor below a wished precision where any way reaches it.
    """
    settings = settings or DecisionSettings()
    calibration, losses = _calibration(settings, logits, truth, taxonomy, seed)
    wanted = list(candidates(settings, taxonomy))
    tuner = _Tuner(logits, truth, taxonomy, settings.goal, calibration, advance or (lambda _: None))
    held_out = tuner.held_out(wanted, seed)
    tried = tuner.rows(wanted, held_out)
    rows = [row for row, _ in tried]
    papers = replace(tuner.half("raw"), name="as in papers", decisions=_AS_IN_PAPERS)
    best = _best_of_each(rows)
    if settings.policy == "auto":
        chosen = _not_below(max(papers.value, tuner.half("consistent").value), rows, _consistent(rows))
    else:
        chosen = best[settings.policy]
    decisions = tried[chosen][1]
    others = {
        policy: _details(tried[place][1], decisions) for policy, place in best.items() if policy != decisions.policy
    }
    table = [replace(row, chosen=place == chosen) for place, row in enumerate(rows)]
    folds = 0 if None in held_out else _FOLDS
    found = Tuned(decisions, settings.goal, len(truth), (papers, *table), losses, folds)
    return replace(found, decisions=replace(decisions, others=others, tuned=found.to_json()))


def _consistent(rows: Sequence[Row]) -> list[int]:
    return [place for place, row in enumerate(rows) if row.policy != "raw"]


def _not_below(least: float, rows: Sequence[Row], places: Sequence[int]) -> int:
    """The best on documents it was not tuned on; where it is below `least` on those it was, the best on these."""
    chosen = _best(rows, places)
    return chosen if rows[chosen].value >= least - _ROUNDING else max(places, key=lambda place: rows[place].value)


def _best(rows: Sequence[Row], places: Sequence[int]) -> int:
    """The row that did best on documents it was not tuned on, the first of equals, among those with the wished
    precision; where none has it the most precise."""
    reached = [place for place in places if rows[place].reached]
    if not reached:
        return max(places, key=lambda place: rows[place].precision)
    return max(reached, key=lambda place: rows[place].held_out)


def _best_of_each(rows: Sequence[Row]) -> dict[Policy, int]:
    """The best row of each policy."""
    policies = dict.fromkeys(row.policy for row in rows)
    return {policy: _best(rows, [i for i, row in enumerate(rows) if row.policy == policy]) for policy in policies}


def _details(decisions: Decisions, chosen: Decisions) -> dict[str, Any]:
    found: dict[str, Any] = {"threshold": decisions.threshold, "k": decisions.k, "stop": decisions.stop}
    if decisions.calibration != chosen.calibration:
        found["calibration"] = decisions.calibration.to_json()
    return found


class _Tuner:
    """All that candidates are tried on."""

    def __init__(
        self,
        logits: NDArray[np.float32],
        truth: Given,
        taxonomy: Taxonomy,
        goal: Goal,
        calibration: Calibration,
        advance: Advance,
    ) -> None:
        self.logits, self.truth, self.taxonomy = logits, truth, taxonomy
        self.goal, self.calibration, self.advance = goal, calibration, advance
        self.uncalibrated = Calibration().odds(logits, taxonomy)

    def held_out(self, wanted: Sequence[Candidate], seed: int) -> list[float | None]:
        """The value of each candidate on documents on which neither it was tuned nor its calibration fitted."""
        if len(self.truth) < 2 * _FOLDS or len(wanted) < 2:
            return [None] * len(wanted)
        folds = np.random.default_rng((seed, 2)).permutation(len(self.truth)) % _FOLDS
        counts = [Counts.zero(len(self.taxonomy)) for _ in wanted]
        for fold in range(_FOLDS):
            fit, odds = self._apart(folds != fold, folds == fold)
            truth = self.truth[folds == fold]
            for place, candidate in enumerate(wanted):
                given, _ = fit.decisions(candidate).decide_odds(odds, self.taxonomy)
                counts[place] += Counts.of(self._counted(candidate.policy, given), truth)
                self.advance(1)
        return [float(values(self.goal, _sheet_of(each), strict=False)[0]) for each in counts]

    def _apart(self, given: Given, held: Given) -> tuple[Fit, LogOdds]:
        """What is tuned on some documents, and the scores of others."""
        logits, truth = self.logits[given], self.truth[given]
        calibration = fit_calibration(self.calibration.kind, logits, truth, self.taxonomy)
        fit = Fit(calibration.odds(logits, self.taxonomy), truth, self.taxonomy, self.goal, calibration)
        return fit, calibration.odds(self.logits[held], self.taxonomy)

    def rows(self, wanted: Sequence[Candidate], held_out: Sequence[float | None]) -> list[tuple[Row, Decisions]]:
        """Each candidate tuned on all documents, with what it gives on them; never less than thresholds of a half."""
        odds, found = self.calibration.odds(self.logits, self.taxonomy), []
        fit = Fit(odds, self.truth, self.taxonomy, self.goal, self.calibration)
        for candidate, value in zip(wanted, held_out, strict=True):
            is_tuned = candidate.thresholds not in (None, "fixed")
            ways = [fit.decisions(candidate), *(fit.halves(candidate.policy) if is_tuned else ())]
            tried = [(self._row(candidate, way, odds, value), way) for way in ways]
            found.append(max(tried, key=lambda each: each[0].value))
            self.advance(1)
        return found

    def half(self, policy: Policy) -> Row:
        """A threshold of one half, uncalibrated."""
        return self._row(Candidate(policy, "fixed"), Decisions(policy), self.uncalibrated, None)

    def _row(self, candidate: Candidate, decisions: Decisions, odds: LogOdds, held_out: float | None) -> Row:
        odds = odds if decisions.calibration == self.calibration else self.uncalibrated
        given, _ = decisions.decide_odds(odds, self.taxonomy)
        counts = Counts.of(given, self.truth)
        closed = counts if candidate.policy != "raw" else Counts.of(with_ancestors(given, self.taxonomy), self.truth)
        counted = closed if self.goal.metric == "hierarchical" else counts
        value = float(values(self.goal, _sheet_of(counted))[0])
        return Row(
            name=candidate.name,
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
            reached=self.goal.is_reached(micro_precision(counted)),
        )

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
