"""What is answered to `/v1/explain`."""

from itertools import accumulate
from typing import Any

from hitin.decisions import Decisions
from hitin.errors import InputError
from hitin.explain import Explanation, explain
from hitin.explain.explaining import label_number, labels_to_explain
from hitin.serve.models import ServedModel
from hitin.serve.schemas import MOST_LABELS, ExplainRequest

Answer = dict[str, Any]
_LONGEST = 100_000  # characters of a path that is read


def explain_answer(asked: ExplainRequest, served: ServedModel, decisions: Decisions) -> Answer:
    """The labels that were asked for, or those that are given, each with its words."""
    labels = _given(asked.text, served, decisions) if asked.labels is None else asked.labels
    names = [_name(served, number, label) for number, label in enumerate(labels, start=1)]
    found = explain(served.explained(), asked.text, names, most=asked.most, decisions=decisions)
    places = _places(asked.text) if asked.units == "utf-16" else range(len(asked.text) + 1)
    return {"model": served.name, "explanations": [_told(each, places) for each in found]}


def _name(served: ServedModel, number: int, label: str) -> str:
    """That of a label, which may be asked for by the path to it, as answers tell it."""
    found = label_number(served.taxonomy, label) if len(label) <= _LONGEST else None
    if found is None:
        raise InputError(
            f"label {number} is not in the taxonomy", kind="unknown-label", remedy="GET /v1/taxonomy tells the labels."
        )
    return served.taxonomy.labels[found]


def _given(text: str, served: ServedModel, decisions: Decisions) -> list[str]:
    """The labels that the text gets, the most probable of very many; where there is none, its likeliest path."""
    logits = served.classifier.model_.logits([text])
    numbers = labels_to_explain(served.classifier, logits, decisions)
    probabilities = decisions.probabilities(logits, served.taxonomy)[0]
    best = sorted(numbers, key=lambda label: -probabilities[label])[:MOST_LABELS]
    return [served.taxonomy.labels[label] for label in sorted(best)]


def _told(explanation: Explanation, places: "list[int] | range") -> Answer:
    told = explanation.told
    for word in told["words"]:
        word["start"], word["end"] = places[word["start"]], places[word["end"]]
    return told


def _places(text: str) -> list[int]:
    """Where each character stands in UTF-16, and where the text ends."""
    return [0, *accumulate(2 if character > "\uffff" else 1 for character in text)]
