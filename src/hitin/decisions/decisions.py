"""`Decisions`: how the labels of a document are chosen, as a model keeps it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.calibration import Calibration, LogOdds
from hitin.decisions.policies import AS_SHOWN, POLICIES, WAYS, WITH_THRESHOLDS, Given, Policy
from hitin.errors import InputError, counted, shown
from hitin.names import composed
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import without_orphans

Table = NDArray[np.floating[Any]]
Threshold = float | tuple[float, ...] | Mapping[str, float]
"""One for all labels, one for each level from the top, or one for each label by name."""

_CHECKSUM = "checksum"


@dataclass(frozen=True)
class Decisions:
    """How labels are chosen from a model's logits.

    The policies: `raw` gives each label above its threshold; `consistent` the likeliest set of labels that holds the
    ancestors of each; `top-down` each label above its threshold whose parents are given; `single-path` the lowest
    label whose path has the highest scores, with its ancestors; `top-k` the `k` most probable labels, with theirs.
    """

    policy: Policy = "consistent"
    threshold: Threshold = 0.5
    """The probability above which a label is worth giving: for `raw`, `consistent` and `top-down`."""
    k: int = 3
    """How many labels `top-k` gives."""
    stop: float = 0.0
    """Labels less probable than this are not given, nor what is below them: the answer ends at their parents."""
    calibration: Calibration = field(default_factory=Calibration)
    """From logits to probabilities that mean what they say."""
    others: Mapping[Policy, Mapping[str, Any]] = field(default_factory=dict, compare=False)
    """What was tuned for the policies that were not chosen: their `threshold`, `k` and `stop`, and the `calibration`
    where it is another."""
    tuned: Mapping[str, Any] | None = field(default=None, compare=False)
    """How they were chosen, for people: the goal, the documents, and what each choice gave."""

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise _bad(f"there is no policy {shown(self.policy)}", f"The policies are {', '.join(POLICIES)}.")
        if isinstance(self.threshold, Mapping):
            for name, value in self.threshold.items():
                if not _is_probability(value):
                    raise _bad(f"the threshold of {shown(name)} is {shown(value)}", "It is from 0 to 1.")
        elif not _are_probabilities(self.threshold):
            raise _bad(f"the threshold is {shown(self.threshold)}", "It is from 0 to 1.")
        if type(self.k) is not int or self.k < 1:
            raise _bad(f"k is {shown(self.k)}", "It is a whole number from 1 on.")
        if not _are_others(self.others):
            raise _bad(f"what was tuned for other policies is {shown(self.others)}", "Tune again with hitin tune.")
        if not _is_probability(self.stop):
            raise _bad(f"stop is {shown(self.stop)}", "It is from 0 to 1.")

    def decide(self, logits: Table, taxonomy: Taxonomy) -> Given:
        """(documents, |Y|): which labels each document gets."""
        return self.decide_and_stop(logits, taxonomy)[0]

    def decide_and_stop(self, logits: Table, taxonomy: Taxonomy) -> tuple[Given, Given]:
        """Which labels each document gets, and which it would get but that the answer stops above them."""
        return self.decide_odds(self.calibration.odds(logits, taxonomy), taxonomy)

    def decide_odds(self, odds: LogOdds, taxonomy: Taxonomy) -> tuple[Given, Given]:
        """`decide_and_stop`, from what this calibration made of the logits.

        `raw`, `top-down` and `stop` go by the probabilities that are shown. The other policies weigh labels against
        each other by the calibrated log-odds of each, before no label is shown above its parents.
        """
        wanted = self._wanted(odds, self._at(taxonomy), taxonomy)
        if not self.stop:
            return wanted, np.zeros_like(wanted)
        given = _sure(wanted, odds, self.stop, taxonomy)
        return given, wanted & ~given

    def limits(self, odds: LogOdds, taxonomy: Taxonomy, steps: int = 100) -> NDArray[np.float64]:
        """(|Y|,): of one document, the highest threshold at which each label is given, in steps of one hundredth.

        -1 for labels that no threshold gives. Of policies without a threshold it is the highest `stop`. The one is in
        place of all thresholds that were tuned: what a person sees who moves a slider.
        """
        at = np.arange(steps + 1) / steps
        if self.policy in WITH_THRESHOLDS:
            given = self._wanted(odds, log_odds_of(at)[:, None], taxonomy)
            given = _sure(given, odds, self.stop, taxonomy) if self.stop else given
        else:
            wanted = self._wanted(odds, self._at(taxonomy), taxonomy)
            given = _sure(np.repeat(wanted, len(at), axis=0), odds, at[:, None], taxonomy)
        return np.asarray((given.sum(axis=0) - 1) / np.where(given.any(axis=0), steps, 1))

    def _wanted(self, odds: LogOdds, at: NDArray[np.float64], taxonomy: Taxonomy) -> Given:
        scores = odds.shown if self.policy in AS_SHOWN else odds.own
        return WAYS[self.policy](scores, at, taxonomy, self.k)

    def probabilities(self, logits: Table, taxonomy: Taxonomy) -> NDArray[np.float32]:
        """(documents, |Y|): how probable each label is."""
        return self.calibration.probabilities(logits, taxonomy)

    def check(self, taxonomy: Taxonomy) -> None:
        """Refuse what does not fit a taxonomy: thresholds of other labels or levels, also those of other policies."""
        for policy in (None, *self.others):
            found = self.with_options(policy=policy)
            found.thresholds(taxonomy)
            found.calibration.check(taxonomy)

    def thresholds(self, taxonomy: Taxonomy) -> NDArray[np.float64]:
        """(|Y|,): the threshold of each label."""
        if isinstance(self.threshold, Mapping):
            return _by_label(tuple(self.threshold.items()), taxonomy)
        if isinstance(self.threshold, tuple):
            if len(self.threshold) != taxonomy.depth:
                raise _bad(
                    f"{counted(len(self.threshold), 'threshold')} for {counted(taxonomy.depth, 'level')}",
                    "Give one for each level, or one for all.",
                )
            return np.repeat(np.array(self.threshold, dtype=np.float64), taxonomy.level_sizes)
        return np.full(len(taxonomy), self.threshold, dtype=np.float64)

    def _at(self, taxonomy: Taxonomy) -> NDArray[np.float64]:
        """(|Y|,): the log-odds above which a label is worth giving, looked up once, not for every document."""
        found = self._found.get(taxonomy)
        if found is None:
            found = log_odds_of(self.thresholds(taxonomy))
            found.setflags(write=False)
            self._found.clear()
            self._found[taxonomy] = found
        return found

    @cached_property
    def _found(self) -> dict[Taxonomy, NDArray[np.float64]]:
        """Of one taxonomy at a time."""
        return {}

    def with_options(
        self,
        *,
        policy: Policy | None = None,
        threshold: Threshold | None = None,
        k: int | None = None,
        stop: float | None = None,
    ) -> "Decisions":
        """The same but for what is given. Another policy comes with what was tuned for it.

        A threshold alone makes `consistent` of a policy that has none.
        """
        if threshold is not None and policy is None and self.policy not in WITH_THRESHOLDS:
            policy = "consistent"
        changes: dict[str, Any] = {"threshold": threshold, "k": k, "stop": stop}
        changes = {name: value for name, value in changes.items() if value is not None}
        if policy is not None and policy != self.policy:
            usual = {"policy": policy, "threshold": 0.5, "k": 3, "stop": 0.0, "others": self._others_of(policy)}
            changes = usual | _from_plain(self.others.get(policy, {})) | changes
        found = replace(self, **changes)
        if threshold is not None and found.policy not in WITH_THRESHOLDS:
            raise _bad(
                f"the policy {found.policy} has no threshold",
                f"Leave it out, or choose another policy: {', '.join(WITH_THRESHOLDS)}.",
            )
        if k is not None and found.policy != "top-k":
            raise _bad(f"the policy {found.policy} has no k", "Leave it out, or choose the policy top-k.")
        return found

    def _others_of(self, policy: Policy) -> dict[Policy, Mapping[str, Any]]:
        """`others` of another policy, this one among them; a calibration that went without saying is said."""
        calibration = self.calibration.to_json()
        own = {"threshold": self.threshold, "k": self.k, "stop": self.stop}
        others = {**self.others, self.policy: own}
        return {name: {"calibration": calibration, **values} for name, values in others.items() if name != policy}

    def uncalibrated(self) -> "Decisions":
        """The same on the model's own probabilities. What was tuned is left aside, for other policies too, which may
        go with a calibration: the threshold is one half, and nothing stops."""
        return replace(self, calibration=Calibration(), threshold=0.5, stop=0.0, others={}, tuned=None)

    def describe(self) -> str:
        """A few words for people."""
        words: list[str] = [self.policy]
        if self.policy == "top-k":
            words.append(f"k = {self.k}")
        elif self.policy in WITH_THRESHOLDS:
            words.append(_threshold_words(self.threshold))
        if self.stop:
            words.append(f"stopping below {self.stop:.3g}")
        if self.calibration.kind != "none":
            words.append(f"{self.calibration.kind} calibration")
        return ", ".join(words)

    def summary(self) -> dict[str, Any]:
        """`to_dict`, less what is long: for programs that read scores."""
        found: dict[str, Any] = {"policy": self.policy, "calibration": self.calibration.kind, "stop": self.stop}
        if self.policy in WITH_THRESHOLDS and not isinstance(self.threshold, Mapping):
            found["threshold"] = self.threshold
        if self.policy == "top-k":
            found["k"] = self.k
        return found | {"words": self.describe()}

    def to_dict(self) -> dict[str, Any]:
        """Plain values for `json.dumps`."""
        found: dict[str, Any] = {each.name: getattr(self, each.name) for each in fields(self)}
        found["calibration"] = self.calibration.to_json()
        return found

    def to_json(self) -> str:
        values = self.to_dict()
        return json.dumps({**values, _CHECKSUM: _checksum(values)}, indent=2, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str, file: str) -> "Decisions":
        """What `to_json` wrote, or someone by hand, without the checksum; nothing in it may be left unread."""
        from hitin.trust import unique_json  # with torch, which the help of commands must not wait for

        try:
            found = unique_json(text)
            _check_sum(found)
            _check_keys(found, {each.name for each in fields(cls)})
            return cls(**_from_plain(found))
        except InputError as error:
            raise InputError(error.message, kind="damaged-model", file=file, remedy=error.remedy) from error
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(
                f"the decisions cannot be read ({error})",
                kind="damaged-model",
                file=file,
                remedy="Correct it; or delete the file: policy and threshold are the usual ones until hitin tune.",
            ) from error


def log_odds_of(probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Infinite for 0 and 1."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(probabilities) - np.log1p(-probabilities))


def _sure(wanted: Given, odds: LogOdds, stop: float | NDArray[np.float64], taxonomy: Taxonomy) -> Given:
    """What is wanted and, with all that is above it, probable enough: as exactly as probabilities are known."""
    least = np.asarray(stop, dtype=odds.probabilities.dtype)
    return wanted & without_orphans(odds.probabilities >= least, taxonomy)


def _from_plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as JSON has them, as they are here."""
    found = {**values}  # which a list, empty or not, is refused by
    if isinstance(found.get("threshold"), list):
        found["threshold"] = tuple(found["threshold"])
    if "calibration" in found:
        found["calibration"] = Calibration.from_json(found["calibration"])
    return found


def _check_keys(found: dict[str, Any], known: set[str]) -> None:
    """Nothing may be left unread, a misspelt key least of all."""
    unknown = next((name for name in found if name not in known), None)
    if unknown is not None:
        near = get_close_matches(unknown, known, n=1)
        told = f"Did you mean {near[0]}?" if near else "It may be of a newer hitin: install that, or delete the key."
        raise _bad(f"there is no key {shown(unknown)} in decisions", told)


def _checksum(values: Mapping[str, Any]) -> str:
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:16]


def _check_sum(found: dict[str, Any]) -> None:
    """Take the checksum out, where there is one, and refuse what it does not belong to."""
    told = found.pop(_CHECKSUM, None)
    if told is not None and told != _checksum(found):
        raise _bad(
            "the decisions are not those that were written here: the file was damaged, or changed by hand",
            f'If you changed it, delete its "{_CHECKSUM}" as well; if not, copy the file again, or run hitin tune.',
        )


def _threshold_words(threshold: Threshold) -> str:
    if isinstance(threshold, Mapping):
        return "a threshold a label"
    if isinstance(threshold, tuple):
        return f"thresholds by level {', '.join(f'{each:.3g}' for each in threshold)}"
    return f"threshold {threshold:.3g}"


@lru_cache(maxsize=4)
def _by_label(threshold: tuple[tuple[str, float], ...], taxonomy: Taxonomy) -> NDArray[np.float64]:
    given = {composed(name): value for name, value in threshold}
    for names, others, problem in ((given, taxonomy, "is not in the taxonomy"), (taxonomy, given, "has no threshold")):
        wrong = next((name for name in names if name not in others), None)
        if wrong is not None:
            raise _bad(f"the label {shown(wrong)} {problem}", "Thresholds by label name every label of the taxonomy.")
    found = np.array([given[label] for label in taxonomy.labels], dtype=np.float64)
    found.setflags(write=False)
    return found


def _are_probabilities(threshold: object) -> bool:
    if isinstance(threshold, tuple):
        return bool(threshold) and all(map(_is_probability, threshold))
    return _is_probability(threshold)


def _are_others(others: object) -> bool:
    return isinstance(others, Mapping) and all(
        policy in POLICIES
        and isinstance(values, Mapping)
        and set(values) - {"calibration"} == {"threshold", "k", "stop"}
        for policy, values in others.items()
    )


def _is_probability(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _bad(message: str, remedy: str) -> InputError:
    return InputError(message, kind="bad-option", remedy=remedy)
