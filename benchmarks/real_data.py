"""HiTIN against its own flat baseline on real documents: train, choose the epoch on validation data, score on test.

    python benchmarks/real_data.py DATA OUT.jsonl -- method=hitin encoder=FOLDER text_pooling=mean epochs=6 seed=0

DATA holds taxonomy.tsv and train, val and test.jsonl.xz. Each run adds a line to OUT.jsonl: the settings, the scores of
every epoch on validation data and, with --test, those of the chosen epoch on test data at a threshold of 0.5.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from hitin import read_documents
from hitin.decisions import Decisions
from hitin.estimator import HierarchicalTextClassifier
from hitin.neural import NeuralModel
from hitin.option_values import parse_option
from hitin.watcher import Watcher


class Lines(Watcher):
    """A line an epoch."""

    def note(self, message: str) -> None:
        print(message, file=sys.stderr, flush=True)

    def epoch(self, record: dict[str, float], is_best: bool) -> None:
        scores = f"{100 * record['micro_f1']:.2f} / {100 * record['macro_f1']:.2f}"
        mark = " *" if is_best else ""
        print(
            f"  {record['epoch']:>2} loss {record['loss']:.5f} val {scores} {record['seconds']:.0f} s{mark}",
            file=sys.stderr,
            flush=True,
        )


def split(data: Path, name: str) -> tuple[list[str], list[tuple[str, ...]]]:
    documents = list(read_documents(data / f"{name}.jsonl.xz"))
    return [document.text for document in documents], [document.labels for document in documents]


def measure(data: Path, options: dict[str, Any], *, test: bool) -> dict[str, Any]:
    """Train once; the scores of all epochs, and of the chosen one on test data."""
    classifier = HierarchicalTextClassifier(data / "taxonomy.tsv", **options)
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        classifier.fit(*split(data, "train"), split(data, "val"), out=folder, watcher=Lines())
        seconds = time.monotonic() - started
    history = classifier.history_
    model = classifier.model_
    assert isinstance(model, NeuralModel)
    parameters = sum(each.numel() for each in model.network.parameters() if each.requires_grad)
    found: dict[str, Any] = {
        "data": data.name,
        "options": options,
        "epochs": history.epochs,
        "chosen": history.chosen,
        "parameters": parameters,
        "training_seconds": round(history.seconds, 1),
        "fit_seconds": round(seconds, 1),
    }
    if test:
        classifier.decisions_ = Decisions("raw")
        found["test"] = classifier.evaluate(*split(data, "test")).to_json()
    return found


def main() -> None:
    arguments = sys.argv[1:]
    test = "--test" in arguments
    positional, options = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    data, out = [Path(each) for each in positional if each != "--test"]
    found = measure(data, dict(parse_option(option) for option in options), test=test)
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(found) + "\n")
    shown = found["test"] if test else found["chosen"]
    print(f"{' '.join(options)}: {100 * shown['micro_f1']:.2f} / {100 * shown['macro_f1']:.2f}")


if __name__ == "__main__":
    main()
