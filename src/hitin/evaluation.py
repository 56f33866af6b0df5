"""Scoring a classifier on labelled documents, some at a time, perhaps beside others."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hitin.calibration import Reliability
from hitin.documents import Document
from hitin.errors import InputError
from hitin.inputs import LabelIds, check_labelled, chunks
from hitin.metrics import Difference, Scores, Tally, differences
from hitin.model import Advance, Model, documents_at_once
from hitin.taxonomy import Taxonomy

if TYPE_CHECKING:
    from hitin.estimator import HierarchicalTextClassifier


Probabilities = NDArray[np.float32]
Table = NDArray[np.bool_]
Seen = Callable[[Sequence[Document], Probabilities, Table, Table], None]
"""Shown each chunk: its documents, the probabilities, the labels given, the true labels."""


@dataclass(frozen=True)
class Against:
    """What another classifier scored on the same documents, and by how much the evaluated one scores more."""

    scores: Scores
    differences: dict[str, Difference]


@dataclass(frozen=True)
class Evaluation:
    """What came of it."""

    scores: Scores
    reliability: Reliability
    baselines: dict[str, Against]


def evaluate(
    classifier: "HierarchicalTextClassifier",
    documents: Iterable[tuple[Document, LabelIds]],
    *,
    baselines: Mapping[str, "HierarchicalTextClassifier"] | None = None,
    seen: Seen | None = None,
    files: Sequence[str] = (),
) -> Evaluation:
    """Scores over all documents, whose labels are the taxonomy's numbers, ancestors included.

    `files` are those that the documents come from, if any.
    """
    taxonomy, others = classifier.taxonomy_, dict(baselines or {})
    _check_same_labels(taxonomy, others)
    tally, reliability = Tally(taxonomy), Reliability(taxonomy)
    tallies = {name: Tally(taxonomy) for name in others}
    for some in chunks(documents, documents_at_once(taxonomy)):
        texts = [document.text for document, _ in some]
        truth = truth_table([ids for _, ids in some], taxonomy)
        probabilities, given, _ = classifier.scored(texts)
        tally.add(given, truth, probabilities)
        reliability.add(probabilities, truth)
        for name, other in others.items():
            scored = other.scored(texts)
            tallies[name].add(scored.given, truth, scored.probabilities)
        if seen:
            seen([document for document, _ in some], probabilities, given, truth)
    check_labelled(tally.documents, bool(tally.counts.actual.any()), "test", files)
    against = {name: Against(each.scores(), differences(tally, each)) for name, each in tallies.items()}
    return Evaluation(tally.scores(), reliability, against)


def truth_table(labels: Sequence[LabelIds], taxonomy: Taxonomy) -> Table:
    """(documents, |Y|)"""
    truth = np.zeros((len(labels), len(taxonomy)), dtype=np.bool_)
    rows = np.repeat(np.arange(len(labels)), [len(ids) for ids in labels])
    truth[rows, [label for ids in labels for label in ids]] = True
    return truth


def finite_logits(model: Model, texts: Sequence[str]) -> Probabilities:
    """(documents, |Y|), which are numbers that decisions can be made of."""
    return checked(model.logits(texts))


def checked(logits: Probabilities) -> Probabilities:
    """The same, where they are finite."""
    if not np.isfinite(logits).all():
        raise InputError(
            "the model gives scores that are not finite numbers: it is damaged, or its training went astray",
            kind="damaged-model",
            remedy="Train it again, with a lower learning rate or in fp32; the log of its training says when it began.",
        )
    return logits


def logits_in_parts(model: Model, texts: Sequence[str], advance: Advance) -> Probabilities:
    """`finite_logits`, some documents at a time."""
    logits = np.empty((len(texts), len(model.taxonomy)), dtype=np.float32)
    size = documents_at_once(model.taxonomy)
    for start in range(0, len(texts), size):
        some = texts[start : start + size]
        logits[start : start + len(some)] = finite_logits(model, some)
        advance(len(some))
    return logits


def _check_same_labels(taxonomy: Taxonomy, others: Mapping[str, "HierarchicalTextClassifier"]) -> None:
    for name, other in others.items():
        if other.taxonomy_ != taxonomy:
            raise InputError(
                f"the baseline {name} has another taxonomy",
                kind="other-taxonomy",
                remedy="Compare models that were trained with the same labels.",
            )
