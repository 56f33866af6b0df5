"""What is answered to `/v1/explain`."""

from itertools import accumulate
from typing import Any

from hitin.decisions import Decisions
from hitin.errors import InputError
from hitin.serve.models import ServedModel
from hitin.serve.schemas import MOST_LABELS, ExplainRequest

Answer = dict[str, Any]


def explain_answer(asked: ExplainRequest, served: ServedModel, decisions: Decisions) -> Answer:
    """The labels that were asked for, or those that are given, each with its words."""
    from hitin.explain import explain

    classifier = served.explained()
    labels = asked.labels or _given(asked.text, served, decisions)
    unknown = next((number for number, label in enumerate(labels) if label not in served.taxonomy), None)
    if unknown is not None:
        raise InputError(
            f"label {unknown + 1} is not in the taxonomy",
            kind="unknown-label",
            remedy="GET /v1/taxonomy tells the labels.",
        )
    options = {} if asked.most is None else {"most": asked.most}
    found = explain(classifier, asked.text, labels=labels, **options)
    places = _places(asked.text) if asked.units == "utf-16" else None
    return {"model": served.name, "explanations": [_told(each, places) for each in found]}


def _given(text: str, served: ServedModel, decisions: Decisions) -> list[str]:
    """The labels that the text gets; where there is none, the most probable path."""
    taxonomy = served.taxonomy
    logits = served.classifier.model_.logits([text])
    scored = served.classifier.decided(logits, decisions)
    chosen = scored.given[0]
    if not chosen.any():
        path = decisions.with_options(policy="single-path", stop=0.0)
        chosen = served.classifier.decided(logits, path).given[0]
    labels = chosen.nonzero()[0]
    best = sorted(labels.tolist(), key=lambda label: -scored.probabilities[0, label])[:MOST_LABELS]
    return [taxonomy.labels[label] for label in sorted(best)]


def _told(explanation: Any, places: list[int] | None) -> Answer:
    words = [
        {
            "start": word.start if places is None else places[word.start],
            "end": word.end if places is None else places[word.end],
            "text": word.text,
            "weight": float(word.weight),
        }
        for word in sorted(explanation.words, key=lambda word: word.start)
    ]
    numbers = {name: float(getattr(explanation, name)) for name in ("probability", "score", "baseline", "error")}
    return {"label": explanation.label, **numbers, "words": words}


def _places(text: str) -> list[int]:
    """Where each character stands in UTF-16, and where the text ends."""
    return [0, *accumulate(2 if character > "\uffff" else 1 for character in text)]
