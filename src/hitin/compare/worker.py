"""One cell in a process of its own: train, score the test documents, write the result.

It is told its task in a line of JSON on standard input, and ends when that is closed: with the process that started
it. What it has to say are the lines of `hitin.compare.events` on standard output.
"""

import json
import os
import signal
import sys
import threading
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hitin.compare.cells import DECISIONS, FAILURE, FORMAT, MODEL, RESULT, TRAINED, DataSet, read_json, result_in, tidy
from hitin.compare.data import Splits, read_splits, write_tables
from hitin.compare.events import EventWriter
from hitin.compare.measuring import Scored, device_of, machine, parameters, peak_memory, score
from hitin.console import INTERRUPTED
from hitin.errors import HitinError, InputError, first_line
from hitin.estimator import HierarchicalTextClassifier
from hitin.locking import locked
from hitin.memory import keep_freed_memory
from hitin.model_folder import is_model, remove_tree
from hitin.training.progress import SELECT
from hitin.training.shortage import is_shortage
from hitin.writing import write_text

FAILED = 1
_PATIENCE = 60.0  # seconds that a process which was left behind has to save its state
_SPOILT = ("damaged-checkpoint", "damaged-model", "other-run")
"""Kinds of errors of a state that cannot be gone on from."""


@dataclass(frozen=True)
class Task:
    """A cell, in plain values."""

    data: DataSet
    row: str
    seed: int
    folder: str
    key: str
    data_key: str
    options: dict[str, Any]
    """Of the run, by name; the method and the encoder are among them."""
    run: str
    """The run as the result tells it."""
    encoder: str
    device: str
    keep_model: bool = False
    at_once: int = 1

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Task":
        values = json.loads(text)
        data: dict[str, Any] = values["data"]
        tuples = {name: tuple(value) for name, value in data.items() if isinstance(value, list)}
        return cls(**values | {"data": DataSet(**data | tuples)})


def work(task: Task, watcher: EventWriter) -> None:
    """Do what is left of a cell. Its result is written last."""
    folder = Path(task.folder)
    keep_freed_memory()
    with locked(folder, "training", patience=_PATIENCE):
        if result_in(folder, task.run):
            return
        watcher.note("reading the documents")
        splits = read_splits(task.data)
        if splits.key != task.data_key:
            raise InputError(
                f"the documents of {task.data.name} were changed while the comparison ran",
                kind="other-data",
                remedy="Repeat the command: it reads them again.",
            )
        classifier, trained = _trained(task, splits, watcher)
        scored = score(classifier, splits.test, folder / MODEL, watcher)
        labels = len(splits.taxonomy)
        write_tables(folder / DECISIONS, scored.decisions, labels)
        write_text(folder / RESULT, [json.dumps(_result(task, classifier, trained, scored), indent=2) + "\n"])
        (folder / FAILURE).unlink(missing_ok=True)
        tidy(folder, keep_model=task.keep_model)


def _trained(task: Task, splits: Splits, watcher: EventWriter) -> tuple[HierarchicalTextClassifier, dict[str, Any]]:
    """`_fitted`, from the start where the state that was left cannot be gone on from."""
    model = Path(task.folder) / MODEL
    try:
        return _fitted(task, splits, watcher)
    except InputError as error:
        if error.kind not in _SPOILT or not model.is_dir():
            raise
        watcher.note(f"beginning anew: {error.message}")
    remove_tree(model)
    return _fitted(task, splits, watcher)


def _fitted(task: Task, splits: Splits, watcher: EventWriter) -> tuple[HierarchicalTextClassifier, dict[str, Any]]:
    """The trained model, and what was measured of its training: by an earlier process, perhaps."""
    model, note = Path(task.folder) / MODEL, Path(task.folder) / TRAINED
    measured = read_json(note)
    if measured is not None and is_model(model):
        return HierarchicalTextClassifier.load(model, device=task.device), measured
    if is_model(model):  # which was saved, but not measured
        remove_tree(model)
    classifier = HierarchicalTextClassifier(splits.taxonomy, device=task.device, **task.options)
    started = time.monotonic()
    classifier.fit_documents(splits.train, splits.val, out=model, watcher=watcher)
    measured = {
        "parameters": parameters(classifier.model_),
        "memory": peak_memory(classifier.model_),
        "fit_seconds": round(time.monotonic() - started, 3),
    }
    write_text(note, [json.dumps(measured) + "\n"])
    return classifier, measured


def _result(
    task: Task, classifier: HierarchicalTextClassifier, trained: dict[str, Any], scored: Scored
) -> dict[str, Any]:
    history, memory = classifier.history_, peak_memory(classifier.model_)
    chosen = history.chosen
    epochs = {"epochs": len(history.epochs), "chosen_epoch": int(chosen["epoch"])}
    bests = {name: epoch for name, epoch in history.best.items() if name != SELECT}
    memory["peak_bytes"] = max(memory["peak_bytes"], trained["memory"]["peak_bytes"])
    return {
        "format": FORMAT,
        "data": task.data.name,
        "data_key": task.data_key,
        "row": task.row,
        "method": classifier.model_.run.method_name,
        "encoder": task.encoder,
        "seed": task.seed,
        "key": task.key,
        "run": task.run,
        "parameters": trained["parameters"],
        "training": {
            "seconds": round(history.seconds, 3),
            **epochs,
            "best_epochs": bests,
            "fit_seconds": trained["fit_seconds"],
        },
        "validation": {name: chosen[name] for name in ("micro_f1", "macro_f1")},
        "memory": memory,
        "inference": scored.speed,
        "test": scored.scores,
        "decisions": classifier.decisions_.describe(),
        "machine": machine(device_of(classifier.model_)),
        "at_once": task.at_once,
    }


def main() -> int:
    """Exit code 0: the result is there; 130: interrupted, the state is saved; 1: failed, an `error` event says why."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else a library prints
    watcher = EventWriter(events)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        task = Task.from_json(sys.stdin.readline())
        threading.Thread(target=_stop_when_alone, daemon=True).start()
        work(task, watcher)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if not isinstance(error, HitinError):
            traceback.print_exc()
        watcher.tell("error", message=_reason(error))
        return FAILED
    return 0


def _stop_when_alone() -> None:
    """Save the state and end, once the process that started this one is gone."""
    while os.read(0, 1024):  # not the stream, whose lock would be held to the end
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _reason(error: Exception) -> str:
    """For people."""
    if is_shortage(error):
        return f"there is not enough memory: {first_line(error)}"
    return str(error) if isinstance(error, HitinError) else f"{type(error).__name__}: {first_line(error)}"


if __name__ == "__main__":
    sys.exit(main())
