"""What is answered to `/v1/predict`: the same records as `hitin predict` writes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.answers import Answers
from hitin.decisions import Decisions
from hitin.documents import Document
from hitin.errors import counted
from hitin.serve.models import ServedModel
from hitin.serve.refusals import Refusal, encoded, too_many_texts
from hitin.serve.schemas import Asked, PredictRequest
from hitin.serve.settings import Limits

DIGITS = 6
"""Of probabilities, those that count."""


def decisions_for(asked: Asked, served: ServedModel) -> Decisions:
    """How labels are chosen: as the model has it, with what the request says otherwise."""
    if (asked.policy, asked.threshold, asked.k, asked.stop) == (None, None, None, None):
        return served.decisions  # which has looked up its thresholds already
    return served.decisions.with_options(policy=asked.policy, threshold=asked.threshold, k=asked.k, stop=asked.stop)


def check_size(asked: PredictRequest, texts: list[str], labels: int, limits: Limits) -> None:
    """Refuse what is too much, before anything is computed."""
    check_texts(texts, limits)
    if asked.all_scores and len(texts) * labels > limits.cells:
        most = max(1, limits.cells // labels)
        problem = f"{counted(len(texts), 'text has', 'texts have')} too many scores"
        raise Refusal(422, "too-many-scores", problem, f"Send at most {most:,}.")
    if asked.limits and len(texts) > limits.limited_texts:
        raise Refusal(
            422, "too-many-texts", "these are too many texts for limits", f"Send at most {limits.limited_texts}."
        )


def check_texts(texts: list[str], limits: Limits) -> None:
    if len(texts) > limits.texts:
        raise too_many_texts(len(texts), limits.texts)
    longest = max(range(len(texts)), key=lambda row: len(texts[row]))
    if len(texts[longest]) > limits.characters:
        which = "the text" if len(texts) == 1 else f"text {longest + 1:,}"
        problem = f"{which} has {len(texts[longest]):,} characters"
        raise Refusal(413, "too-long", problem, f"A text has at most {limits.characters:,}.")


def predict_answer(
    asked: PredictRequest, served: ServedModel, decisions: Decisions, logits: NDArray[np.float32], limits: Limits
) -> bytes:
    """The whole answer as it is sent."""
    texts = asked.all_texts
    answers = Answers(
        served.classifier,
        top=min(asked.top, len(served.taxonomy)),
        deepest=asked.deepest,
        decisions=decisions,
        digits=DIGITS,
    )
    scored = served.classifier.decided(logits, decisions)
    if int(scored.given.sum()) + int(scored.stopped.sum()) + len(texts) * answers.top > limits.labels:
        raise Refusal(
            422,
            "too-many-labels",
            f"the answer would tell more than {limits.labels:,} labels",
            "Send fewer texts, ask for fewer labels, or raise the threshold.",
        )
    records = answers.records([Document(text) for text in texts], scored)
    if asked.all_scores:
        _add(records, "probabilities", (rounded(row).tolist() for row in scored.probabilities))
    if asked.limits:
        _add(records, "limits", (_limits(decisions, row, served) for row in logits))
    _, taxonomy = served.taxonomy_answer
    head = encoded({"model": served.name, "taxonomy": taxonomy, "decisions": decisions.summary()})
    return head[:-1] + b',"documents":[' + b",".join(map(encoded, records)) + b"]}"


def rounded(values: NDArray[np.float32]) -> NDArray[np.float64]:
    """To the digits that count, all at once."""
    exact = values.astype(np.float64)
    with np.errstate(divide="ignore"):
        places = DIGITS - 1 - np.floor(np.log10(exact))
    scale = 10.0 ** np.clip(places, 0, 22)  # powers that floats hold exactly
    return np.where(places > 22, exact, np.round(exact * scale) / scale)


def _limits(decisions: Decisions, logits: NDArray[np.float32], served: ServedModel) -> list[float]:
    odds = decisions.calibration.odds(logits[None], served.taxonomy)
    found: list[float] = np.round(decisions.limits(odds, served.taxonomy), 2).tolist()
    return found


def _add(records: list[dict[str, Any]], name: str, values: Any) -> None:
    for record, value in zip(records, values, strict=True):
        record[name] = value
