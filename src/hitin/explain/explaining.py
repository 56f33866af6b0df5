"""`explain`: which words of a text speak for a label, and which against it."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hitin.decisions import Decisions
from hitin.errors import InputError
from hitin.explain.network_way import NetworkWay
from hitin.explain.quadrature import Integrals, integrated
from hitin.explain.reading import read_as_terms, read_by_network
from hitin.explain.reference import reference_of
from hitin.explain.words import Reading, Word
from hitin.labels import LabelReader, unknown_label
from hitin.methods.linear import LinearModel
from hitin.model import Model
from hitin.neural import NeuralModel
from hitin.taxonomy import Taxonomy

if TYPE_CHECKING:
    from hitin.estimator import HierarchicalTextClassifier

_ALIKE = 0.01  # how much a logit may differ, and that part of it, whether words are read by number or by vector


@dataclass(frozen=True)
class Explanation:
    """Why a text has a label, or has it not."""

    label: str
    probability: float
    """As the model's decisions see it, calibrated."""
    score: float
    """The model's own logit of the label, before calibration."""
    baseline: float
    """That of a text that says nothing."""
    error: float
    """By how much the weights of all words miss `score` - `baseline`, as a part of it: at most 1 % but where a very
    crooked network would need more points than there may be."""
    words: list[Word]
    """In the order of the text. Their weights add up to `score` - `baseline`."""
    points: int = 0
    """At how many points between the reference and the text gradients were taken; 0: none were needed."""

    @property
    def told(self) -> dict[str, Any]:
        """Plain values for `json.dumps`."""
        words = [word._asdict() for word in self.words]
        numbers = {name: getattr(self, name) for name in ("probability", "score", "baseline", "error")}
        return {"label": self.label, **numbers, "words": words}


def explain(
    classifier: "HierarchicalTextClassifier",
    text: str,
    labels: Sequence[str] | None = None,
    *,
    most: int | None = None,
    decisions: Decisions | None = None,
) -> list[Explanation]:
    """Which words speak for each label, and which against it, by integrated gradients.

    Without `labels`, those that the text is given are explained, from the top down; where it is given none, the most
    probable path. With `most`, only so many words of each are told, those with the greatest weights. `decisions` are
    others than the model's own, for what is given and how probable it is.
    """
    model = classifier.model_
    check_explains(model)
    logits, decisions = model.logits([text]), decisions or classifier.decisions_
    probabilities = classifier.decided(logits, decisions).probabilities[0]
    if labels is None:
        numbers = labels_to_explain(classifier, logits, decisions)
    else:
        numbers = [_number(model.taxonomy, label) for label in labels]
    if not numbers:
        return []
    reading, found = integrals(model, text, numbers)
    _check_scores(model, found.scores, logits[0, numbers])
    columns = (found.scores, found.baselines, found.errors, found.weights, found.points)
    return [
        Explanation(
            label=model.taxonomy.labels[number],
            probability=float(probabilities[number]),
            score=float(score),
            baseline=float(baseline),
            error=float(error),
            words=_weightiest(reading.words(weights), most),
            points=int(points),
        )
        for number, score, baseline, error, weights, points in zip(numbers, *columns, strict=True)
    ]


def labels_to_explain(
    classifier: "HierarchicalTextClassifier", logits: NDArray[np.float32], decisions: Decisions | None = None
) -> list[int]:
    """The labels that a text with these logits (1, |Y|) is given; where there is none, those of the likeliest path."""
    decisions = decisions or classifier.decisions_
    given = classifier.decided(logits, decisions).given[0]
    if not given.any():
        given = classifier.decided(logits, decisions.with_options(policy="single-path", stop=0.0)).given[0]
    labels: list[int] = np.flatnonzero(given).tolist()
    return labels


def integrals(model: Model, text: str, labels: Sequence[int]) -> tuple[Reading, Integrals]:
    """What a model reads of a text, and what each token of that says for some labels."""
    if isinstance(model, LinearModel):
        return _of_terms(model, text, labels)
    assert isinstance(model, NeuralModel)
    ids, reading = read_by_network(model, text)
    network = model.network
    if network.training:  # and to be left so: dropout explains nothing
        network = deepcopy(network).eval()
    way = NetworkWay(network, ids, reading.is_of_text, reference_of(model), labels)
    return reading, integrated(way)


def check_explains(model: Model) -> None:
    """Refuse a model that has no gradients: an exported one."""
    if not isinstance(model, NeuralModel | LinearModel):
        raise InputError(
            "an exported model cannot be explained",
            kind="no-explanation",
            remedy="Name the folder of the model that it was made from.",
        )


def _of_terms(model: LinearModel, text: str, labels: Sequence[int]) -> tuple[Reading, Integrals]:
    """Of a linear model in closed form: a word adds its weight times its value. The reference is the empty text."""
    columns, reading = read_as_terms(model.tfidf, text)
    row = model.tfidf.rows([text])
    weights = model.margins.shares(row, columns, labels).astype(np.float64)
    baselines = model.margins.intercepts[list(labels)].astype(np.float64)
    scores = model.margins.of(row)[0, list(labels)].astype(np.float64)
    return reading, Integrals(weights, baselines, scores, np.zeros(len(labels), dtype=np.int64))


def _number(taxonomy: Taxonomy, label: str) -> int:
    """`label_number`, or an error that says what is nearest."""
    found = label_number(taxonomy, label)
    if found is None:
        remedy = "Name a label of the model's taxonomy, or the path to it."
        raise unknown_label(LabelReader(taxonomy), label, remedy=remedy)
    return found


def label_number(taxonomy: Taxonomy, label: str) -> int | None:
    """A label by its name, or by the path to it; none if there is none, or several."""
    if label in taxonomy:
        return taxonomy.index(label)
    found = LabelReader(taxonomy).read([label])
    return found.deepest[0] if len(found.deepest) == 1 and not found.unknown else None


def _check_scores(model: Model, scores: NDArray[np.float64], logits: NDArray[np.float32]) -> None:
    """Some transformers read vectors in another way than words: what is found of those is not true of these."""
    if (np.abs(scores - logits) > _ALIKE * (1 + np.abs(logits))).any():
        raise InputError(
            f"a model on {model.run.encoder_name} cannot be explained: that does not read the vectors of words as it "
            "reads words",
            kind="no-explanation",
            remedy="Choose another text encoder, such as BERT, RoBERTa, DistilBERT or ELECTRA.",
        )


def _weightiest(words: list[Word], most: int | None) -> list[Word]:
    """So many words with the greatest weights, for or against, in the order of the text."""
    if most is None or len(words) <= most:
        return words
    best = sorted(range(len(words)), key=lambda number: -abs(words[number].weight))[:most]
    return [words[number] for number in sorted(best)]
