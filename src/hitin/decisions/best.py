"""The policy `top-k` of very many labels: the best are found some labels at a time, and only they are decided on.

What is decided and shown is what the whole table of documents by labels would give. A label of a document's best and
those above it are shown with a probability that depends on their ancestors, which are looked up, and on the highest of
their descendants, which is one of the best itself.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitin.calibration import Calibration, probabilities_of
from hitin.decisions.decisions import Decisions
from hitin.decisions.policies import Given, Odds, best_labels
from hitin.taxonomy import Taxonomy

Numbers = NDArray[np.int64]


class BestLabels:
    """The labels with the highest scores of each of some documents; of equals that with the lower number."""

    def __init__(self, documents: int, count: int, calibration: Calibration, taxonomy: Taxonomy) -> None:
        self.calibration, self.levels = calibration, taxonomy.levels
        self.count = min(count, len(taxonomy))
        self.labels: Numbers = np.empty((documents, 0), dtype=np.int64)
        self.scores: Odds = np.empty((documents, 0), dtype=np.float32)

    def add(self, first: int, logits: Odds) -> None:
        """(documents, c): those of the labels from `first` on, after those that were added before."""
        width = logits.shape[1]
        scores = self.calibration.log_odds_at(logits, self.levels[first : first + width])
        best = best_labels(scores, min(self.count, width))
        labels = np.concatenate([self.labels, best + first], axis=1)
        scores = np.concatenate([self.scores, np.take_along_axis(scores, best, axis=1)], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")[:, : self.count]  # of equals the earlier number stands first
        self.labels = np.take_along_axis(labels, order, axis=1)
        self.scores = np.take_along_axis(scores, order, axis=1)


class Found(NamedTuple):
    """What is decided of one document: the best labels and all above them, by rising number."""

    labels: Numbers
    probabilities: NDArray[np.float32]
    given: Given
    stopped: Given
    """What would be given, but that the answer stops above it."""


def decided_best(labels: Iterable[int], logits: Odds, decisions: Decisions, taxonomy: Taxonomy) -> Found:
    """Of the closure of a document's best labels, by rising number, and the logits of these."""
    numbers = np.fromiter(labels, dtype=np.int64)
    own = decisions.calibration.log_odds_at(logits, taxonomy.levels[numbers])
    above = _parents_among(numbers, taxonomy)
    shown = own if decisions.calibration.kind == "none" else _coherent(own, above)
    probabilities = probabilities_of(shown)
    sure = probabilities >= decisions.stop
    for place, parents in enumerate(above):  # parents have lower numbers
        sure[place] &= all(sure[parent] for parent in parents)
    return Found(numbers, probabilities, sure, ~sure)


def _parents_among(numbers: Numbers, taxonomy: Taxonomy) -> list[list[int]]:
    """For each of these labels the places of its parents, which are all among them."""
    places = {label: place for place, label in enumerate(numbers.tolist())}
    return [[places[parent] for parent in taxonomy.parents(label).tolist()] for label in places]


def _coherent(own: Odds, above: list[list[int]]) -> Odds:
    """As `hitin.calibration.coherent`: the mean of the lowest above and the highest below."""
    lowest, highest = own.copy(), own.copy()
    for place, parents in enumerate(above):
        for parent in parents:
            lowest[place] = min(lowest[place], lowest[parent])
    for place in reversed(range(len(above))):
        for parent in above[place]:
            highest[parent] = max(highest[parent], highest[place])
    return np.asarray((lowest + highest) / 2)
