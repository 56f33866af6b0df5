"""Do explanations tell the truth? Words are left out, one at a time, and what the model then says is compared."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitin.explain.explaining import Explanation, explain, labels_to_explain
from hitin.explain.words import Word
from hitin.model import Advance

if TYPE_CHECKING:
    from hitin.estimator import HierarchicalTextClassifier

Drops = NDArray[np.float64]

MOST_WORDS = 64
"""Of a longer text, so many words are left out: that with the greatest weight, and others by chance."""
_FEW = 3  # words whose ranks tell little


class Left(NamedTuple):
    """What leaving out a word does to the label of a text: positive where it lowers."""

    score: float
    probability: float


class Trial(NamedTuple):
    """A label of a document."""

    top: Left
    """The word with the greatest weight."""
    other: Left
    """Another word, chosen by chance."""
    agreement: float | None
    """The rank correlation of the words' weights with what leaving them out does to the score."""
    explanation: Explanation


@dataclass(frozen=True)
class Deletions:
    """What came of it, over the labels of many documents."""

    trials: list[Trial]
    documents: int
    skipped: int
    """Documents with fewer than two words, of which nothing can be compared."""

    def part_better(self, measure: str = "score") -> float:
        """How often leaving out the top word lowers more than leaving out another; equals count half."""
        difference = self._drops("top", measure) - self._drops("other", measure)
        return float(np.mean((difference > 0) + 0.5 * (difference == 0))) if self.trials else float("nan")

    def part_lowered(self, which: str) -> float:
        """How often leaving out the top word, or the other, lowers the score at all."""
        return float(np.mean(self._drops(which, "score") > 0)) if self.trials else float("nan")

    def mean_drop(self, which: str, measure: str) -> float:
        return float(self._drops(which, measure).mean()) if self.trials else float("nan")

    @property
    def agreement(self) -> float:
        """The mean rank correlation, over labels of documents with three words and more."""
        known = [trial.agreement for trial in self.trials if trial.agreement is not None]
        return float(np.mean(known)) if known else float("nan")

    @property
    def told(self) -> dict[str, Any]:
        """Plain values for `json.dumps`; `null` where there was nothing to compare."""
        found: dict[str, Any] = {"documents": self.documents, "labels": len(self.trials), "skipped": self.skipped}
        for measure in Left._fields:
            found[f"top_lowers_{measure}_more"] = self.part_better(measure)
        for which in ("top", "other"):
            drops = {f"{measure}_drop": self.mean_drop(which, measure) for measure in Left._fields}
            found[which] = {"lowers_score": self.part_lowered(which), **drops}
        found["agreement"] = self.agreement
        errors = [trial.explanation.error for trial in self.trials]
        found["error"] = {"median": float(np.median(errors)), "largest": max(errors)} if errors else None
        known: dict[str, Any] = _without_nan(found)
        return known

    def _drops(self, which: str, measure: str) -> Drops:
        return np.array([getattr(getattr(trial, which), measure) for trial in self.trials], dtype=np.float64)


def deletion_test(
    classifier: "HierarchicalTextClassifier", texts: Iterable[str], *, seed: int = 0, advance: Advance | None = None
) -> Deletions:
    """Explain the deepest labels that each text is given, and leave out its words one by one."""
    chance = np.random.default_rng(seed)
    trials: list[Trial] = []
    documents = skipped = 0
    for text in texts:
        found = _trials(classifier, text, chance)
        documents, skipped = documents + 1, skipped + (not found)
        trials += found
        if advance:
            advance(1)
    return Deletions(trials, documents, skipped)


def _trials(classifier: "HierarchicalTextClassifier", text: str, chance: np.random.Generator) -> list[Trial]:
    taxonomy = classifier.taxonomy_
    numbers = labels_to_explain(classifier, classifier.model_.logits([text]))
    ends = [taxonomy.labels[number] for number in taxonomy.deepest(taxonomy.closure(numbers))]
    found = [_trial(classifier, text, each, chance) for each in explain(classifier, text, ends)]
    return [trial for trial in found if trial is not None]


def _trial(
    classifier: "HierarchicalTextClassifier", text: str, explanation: Explanation, chance: np.random.Generator
) -> Trial | None:
    words = _top_first([word for word in explanation.words if any(map(str.isalnum, word.text))], chance)
    if len(words) < 2:
        return None
    number = classifier.taxonomy_.index(explanation.label)
    logits = classifier.model_.logits([text, *(text[: word.start] + text[word.end :] for word in words)])
    probabilities = classifier.decided(logits).probabilities[:, number].astype(np.float64)
    scores = logits[:, number].astype(np.float64)
    left = [Left(*each) for each in zip(scores[0] - scores[1:], probabilities[0] - probabilities[1:], strict=True)]
    agreement = rank_correlation(np.array([word.weight for word in words]), scores[0] - scores[1:])
    return Trial(left[0], left[1], agreement if len(words) >= _FEW else None, explanation)


def _top_first(words: list[Word], chance: np.random.Generator) -> list[Word]:
    """That with the greatest weight, then the others by chance: the second is one of them, the rest for agreement."""
    if not words:
        return []
    top = max(range(len(words)), key=lambda number: words[number].weight)
    others = [number for number in chance.permutation(len(words)).tolist() if number != top]
    return [words[number] for number in [top, *others][:MOST_WORDS]]


def rank_correlation(left: Drops, right: Drops) -> float | None:
    """Spearman's, equals having the mean of their ranks; `None` where all are equal."""
    ranks = [_ranks(values) - (len(values) - 1) / 2 for values in (left, right)]
    size = float(np.sqrt((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    return float(ranks[0] @ ranks[1]) / size if size else None


def _ranks(values: Drops) -> Drops:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    found: Drops = (np.cumsum(counts) - (counts + 1) / 2)[places]
    return found


def _without_nan(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nan(each) for name, each in value.items()}
    return None if isinstance(value, float) and np.isnan(value) else value
