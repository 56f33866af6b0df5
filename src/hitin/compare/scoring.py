"""A trained model on the test documents: as it decides, at one half, and with the weights of its other best epochs."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.compare.data import packed
from hitin.estimator import HierarchicalTextClassifier
from hitin.evaluation import finite_logits
from hitin.inputs import Documents
from hitin.metrics import Counts, macro_f1, micro_f1
from hitin.model import documents_at_once
from hitin.model_folder import TRAINING
from hitin.neural import NeuralModel
from hitin.training.checkpoint import load_tensors
from hitin.training.kept_weights import best_path
from hitin.training.log import Watcher
from hitin.training.progress import SELECT

Packed = NDArray[np.uint8]
"""(documents, |Y| / 8): decisions, packed along labels."""

_AT_ONCE = 4096  # documents
_WARM_UP = 256  # documents, before the clock is started
_TIMED = 10_000  # documents


@dataclass(frozen=True)
class Scored:
    """Decisions by way, their scores, and how fast they were made."""

    decisions: dict[str, Packed]
    scores: dict[str, dict[str, float]]
    speed: dict[str, float]


def score(classifier: HierarchicalTextClassifier, test: Documents, folder: Path, watcher: Watcher) -> Scored:
    """Everything that is reported of the test documents. The model ends with other weights, perhaps."""
    taxonomy = classifier.taxonomy_
    with watcher.counting("testing", len(test.texts)) as advance:
        decisions, speed = _own(classifier, test.texts, advance)
    decisions |= _of_other_epochs(classifier, test.texts, folder, watcher)
    truth = packed(test, taxonomy)
    found = {way: _f1(table, truth, len(taxonomy)) for way, table in decisions.items()}
    half = found["half"]
    per_metric = {
        "micro_f1": found.get("micro_best", half)["micro_f1"],
        "macro_f1": found.get("macro_best", half)["macro_f1"],
    }
    return Scored(decisions, {"tuned": found["tuned"], "half": half, "per_metric": per_metric}, speed)


def _own(
    classifier: HierarchicalTextClassifier, texts: Sequence[str], advance: Any
) -> tuple[dict[str, Packed], dict[str, float]]:
    """As the model decides and at one half; and the documents a second from texts to decisions."""
    model, decisions = classifier.model_, classifier.decisions_
    tuned, half, seconds, timed = [], [], 0.0, 0
    decisions.decide(finite_logits(model, texts[:_WARM_UP]), model.taxonomy)
    for some in _parts(texts, documents_at_once(model.taxonomy, _AT_ONCE)):
        started = time.perf_counter()
        logits = finite_logits(model, some)
        given = decisions.decide(logits, model.taxonomy)
        if timed < _TIMED:
            seconds, timed = seconds + time.perf_counter() - started, timed + len(some)
        tuned.append(np.packbits(given, axis=1))
        half.append(np.packbits(logits > 0, axis=1))
        advance(len(some))
    speed = {"documents_per_second": round(timed / max(seconds, 1e-9), 3), "documents": timed}
    return {"tuned": np.concatenate(tuned), "half": np.concatenate(half)}, speed


def _of_other_epochs(
    classifier: HierarchicalTextClassifier, texts: Sequence[str], folder: Path, watcher: Watcher
) -> dict[str, Packed]:
    """At one half, with the weights that were best by micro-F1 and by macro-F1, where these are not the model's own."""
    model, best = classifier.model_, classifier.history_.best
    if not isinstance(model, NeuralModel):
        return {}
    known: dict[int, Packed] = {}
    for name in ("micro", "macro"):
        epoch = best.get(name)
        if epoch is None or epoch == best[SELECT] or epoch in known:
            continue
        model.network.fill(load_tensors(best_path(folder / TRAINING, name))[0])
        with watcher.counting(f"testing the epoch of the best {name}-F1", len(texts)) as advance:
            known[epoch] = _at_half(model, texts, advance)
    return {f"{name}_best": known[best[name]] for name in ("micro", "macro") if best.get(name) in known}


def _at_half(model: NeuralModel, texts: Sequence[str], advance: Any) -> Packed:
    found = []
    for some in _parts(texts, documents_at_once(model.taxonomy, _AT_ONCE)):
        found.append(np.packbits(finite_logits(model, some) > 0, axis=1))
        advance(len(some))
    return np.concatenate(found)


def _parts(texts: Sequence[str], size: int) -> list[Sequence[str]]:
    return [texts[start : start + size] for start in range(0, len(texts), size)]


def _f1(decided: Packed, truth: Packed, labels: int) -> dict[str, float]:
    counts, rows = Counts.zero(labels), max(1, (1 << 22) // labels)
    for start in range(0, len(truth), rows):
        given, actual = (
            np.unpackbits(table[start : start + rows], axis=1, count=labels).astype(np.bool_)
            for table in (decided, truth)
        )
        counts += Counts.of(given, actual)
    return {"micro_f1": micro_f1(counts), "macro_f1": macro_f1(counts)}
