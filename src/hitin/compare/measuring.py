"""A trained model, measured: on the test documents, and what it takes.

Test documents are decided on as the model decides, at one half, and with the weights of its other best epochs.
"""

import os
import platform
import re
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hitin import __version__
from hitin.compare.data import packed
from hitin.compare.statistics import Packed, unpacked
from hitin.estimator import HierarchicalTextClassifier
from hitin.evaluation import finite_logits
from hitin.inputs import Documents, chunks
from hitin.memory import most_held
from hitin.methods.interface import trainable
from hitin.methods.linear import LinearModel
from hitin.metrics import Counts, macro_f1, micro_f1
from hitin.model import Model, documents_at_once
from hitin.model_folder import TRAINING
from hitin.neural import NeuralModel
from hitin.tensor_files import load_tensors
from hitin.training.kept_weights import best_path
from hitin.training.progress import SELECT
from hitin.watcher import Watcher

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
    for some in chunks(texts, documents_at_once(model.taxonomy)):
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
    for some in chunks(texts, documents_at_once(model.taxonomy)):
        found.append(np.packbits(finite_logits(model, some) > 0, axis=1))
        advance(len(some))
    return np.concatenate(found)


def _f1(decided: Packed, truth: Packed, labels: int) -> dict[str, float]:
    counts = Counts.zero(labels)
    for _, given, actual in unpacked(decided, truth, labels):
        counts += Counts.of(given, actual)
    return {"micro_f1": micro_f1(counts), "macro_f1": macro_f1(counts)}


# What it takes.


def parameters(model: Model) -> dict[str, int]:
    """Numbers that are learnt, those of them in the text encoder, and all. Of a linear model those that were kept."""
    if isinstance(model, NeuralModel):
        network = model.network
        every = sum(each.numel() for each in network.parameters())
        return {"trainable": trainable(network), "encoder": trainable(network.encoder), "all": every}
    assert isinstance(model, LinearModel)
    kept = len(model.margins.values) + len(model.margins.intercepts)
    return {"trainable": kept, "encoder": 0, "all": kept}


def device_of(model: Model) -> torch.device:
    """Where it was trained: a linear model on the processor, whatever else there is."""
    return model.device if isinstance(model, NeuralModel) else torch.device("cpu")


def peak_memory(model: Model) -> dict[str, Any]:
    """The most memory so far: of the GPU where the model is on one, else of the process."""
    device = device_of(model)
    if device.type == "cuda":
        return {"peak_bytes": torch.cuda.max_memory_allocated(device), "of": "cuda"}
    return {"peak_bytes": _peak_of_process(), "of": "process"}


def _peak_of_process() -> int:
    held = most_held()
    if held is not None:
        return held
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def machine(device: torch.device) -> dict[str, Any]:
    """What numbers of seconds and bytes depend on."""
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "hitin": __version__,
        "python": platform.python_version(),
        "platform": platform.system(),
    }


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or os.uname().machine
