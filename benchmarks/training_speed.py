"""Documents a second in training: `hitin` against `transformers.Trainer`, and TextRCNN against a plain loop.

    python benchmarks/training_speed.py                                  a few documents, on the CPU
    python benchmarks/training_speed.py --device cuda --encoder FOLDER --data FOLDER --seeds 3

Both sides train the same flat model with the same encoder, documents, batch size, precision (bf16 on a GPU, fp32 on a
CPU), learning rates, schedule, epochs and dropout. Each training is a process of its own; the sides take turns, seed
by seed. Documents a second are those of all epochs but the first, by the wall clock, from end to end of an epoch; the
first epoch, with all that is prepared in it, and tokenising stand apart. Validation and checkpoints are off on both
sides. F1 is on test documents at a threshold of 0.5, after the last epoch. As `hitin train` does, our side tells the C
library to keep freed memory, which on a CPU is a part of its speed.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import redirect_stdout
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from hitin.compare.data import Splits
from hitin.evaluation import truth_table
from hitin.memory import keep_freed_memory
from hitin.metrics import Counts, macro_f1, micro_f1
from hitin.neural import NeuralModel
from hitin.settings import Run
from hitin.training.loop import train
from hitin.watcher import Watcher
from measuring import measured
from reporting import Report, begun
from speed_data import data_told, encoder_folder, encoder_told, options, read_data

BERT, RCNN = "bert", "textrcnn"
SIDES = {
    BERT: {"trainer": "transformers.Trainer", "hitin": "hitin"},
    RCNN: {"plain": "plain loop", "bucketed": "plain loop, batches of equal length", "hitin": "hitin"},
}


class Clock(Watcher):
    """When training began and when each epoch ended; its loss has been brought from the device by then."""

    def __init__(self) -> None:
        self.stamps: list[float] = []

    def begin(self, epochs: int, documents: int, epochs_done: int, documents_done: int) -> None:  # noqa: ARG002
        self.stamps.append(time.perf_counter())

    def epoch(self, record: dict[str, float], is_best: bool) -> None:  # noqa: ARG002
        self.stamps.append(time.perf_counter())


def run_of(part: str, seed: int, arguments: argparse.Namespace) -> Run:
    on_gpu = arguments.device.startswith("cuda")
    common: dict[str, Any] = {
        "epochs": arguments.epochs,
        "patience": 0,
        "validation": 0.0,
        "seed": seed,
        "regularisation": 0.0,
        "consistency": 0.0,
    }
    common |= {"precision": "bf16" if on_gpu else "fp32", "max_length": arguments.length, "batch_size": arguments.batch}
    if part == RCNN:
        return Run.of(method="flat", encoder=RCNN, **common)
    rates: dict[str, Any] = {
        "learning_rate": 1e-3,
        "encoder_learning_rate": 5e-5,
        "warmup": 0.1,
        "text_pooling": "mean",
    }
    return Run.of(method="flat", encoder=str(arguments.encoder), **rates, **common)


def by_hitin(part: str, seed: int, data: Splits, arguments: argparse.Namespace) -> dict[str, Any]:
    keep_freed_memory()
    model = NeuralModel.build(data.taxonomy, run_of(part, seed, arguments), data.train.texts)
    started = time.perf_counter()
    examples = model.examples(*data.train)
    tokenising, clock = time.perf_counter() - started, Clock()
    with tempfile.TemporaryDirectory() as folder:
        train(
            model,
            examples,
            None,
            folder=Path(folder),
            device=arguments.device,
            resume=False,
            resumable=False,
            watcher=clock,
        )
    seconds = np.diff(clock.stamps).tolist()
    return {"tokenising": tokenising, "epochs": seconds, "logits": model.logits(data.test.texts)}


def by_trainer(seed: int, data: Splits, arguments: argparse.Namespace) -> dict[str, Any]:
    import hugging_face

    training = run_of(BERT, seed, arguments).training
    plan = hugging_face.Plan(
        arguments.encoder,
        arguments.device,
        training.epochs,
        training.batch_size,
        arguments.length,
        training.learning_rate,
        training.encoder_learning_rate,
        training.weight_decay,
        training.warmup,
        training.gradient_clip,
        seed,
        arguments.workers,
    )
    return hugging_face.trained(plan, data.train, data.test, len(data.taxonomy))


def by_plain_loop(side: str, seed: int, data: Splits, arguments: argparse.Namespace) -> dict[str, Any]:
    from plain_loop import PlainLoop

    run = run_of(RCNN, seed, arguments)
    model = NeuralModel.build(data.taxonomy, run, data.train.texts)
    started = time.perf_counter()
    rows = _rows(model, data.train.texts)
    tokenising = time.perf_counter() - started
    torch.manual_seed(seed)
    targets = torch.from_numpy(truth_table(data.train.labels, data.taxonomy)).float()
    loop = PlainLoop(rows, targets, model.tokenizer.get_vocab_size(), run.encoder, arguments.device)  # type: ignore[arg-type]
    seconds = loop.train(run.training, by_length=side == "bucketed")
    return {"tokenising": tokenising, "epochs": seconds, "logits": loop.logits(_rows(model, data.test.texts))}


def _rows(model: NeuralModel, texts: Sequence[str]) -> list[torch.Tensor]:
    tokens = model.tokens(texts)
    return [torch.from_numpy(tokens[row].astype(np.int64)) for row in range(len(tokens))]


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    """In a process of its own: train once."""
    part, side, seed = arguments.measure.split(":")
    data = read_data(arguments, arguments.documents, arguments.test_documents)
    if side == "hitin":
        found = by_hitin(part, int(seed), data, arguments)
    elif side == "trainer":
        found = by_trainer(int(seed), data, arguments)
    else:
        found = by_plain_loop(side, int(seed), data, arguments)
    micro, macro = _f1(found.pop("logits"), truth_table(data.test.labels, data.taxonomy))
    return found | {"micro": micro, "macro": macro, "documents": len(data.train.texts), "labels": len(data.taxonomy)}


def _f1(logits: NDArray[np.float32], truth: NDArray[np.bool_]) -> tuple[float, float]:
    counts = Counts.of(logits > 0, truth)
    return 100 * micro_f1(counts), 100 * macro_f1(counts)


def table(report: Report, part: str, arguments: argparse.Namespace, given: Sequence[str]) -> None:
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES[part]}
    for seed in range(arguments.seed, arguments.seed + arguments.seeds):
        for side in list(SIDES[part])[:: 1 if seed % 2 == 0 else -1]:
            said = f"{part}:{side}:{seed}"
            encoder = ("--encoder", arguments.encoder) if arguments.encoder else ()
            found[side].append(measured(__file__, said, *given, *encoder))
    one = found["hitin"][0]
    report.say(f"\n{one['documents']:,} documents an epoch, {one['labels']:,} labels.\n")
    columns = ("documents/s", "times the first row", "s first epoch", "s tokenising", "documents/s with all")
    report.header(TITLES[part], *columns, "micro-F1", "macro-F1")
    first = next(iter(SIDES[part]))
    for side, title in SIDES[part].items():
        runs = found[side]
        speeds = [steady(run) for run in runs]
        ratio = median(mine / steady(other) for mine, other in zip(speeds, found[first], strict=True))
        report.row(
            title,
            f"{median(speeds):,.1f}",
            f"{ratio:.2f}",
            f"{median(run['epochs'][0] for run in runs):.1f}",
            f"{median(run['tokenising'] for run in runs):.1f}",
            f"{median(overall(run) for run in runs):,.1f}",
            f"{mean(run['micro'] for run in runs):.2f}",
            f"{mean(run['macro'] for run in runs):.2f}",
        )


TITLES = {BERT: "flat on a transformer", RCNN: "flat on TextRCNN"}


def steady(run: dict[str, Any]) -> float:
    """Documents a second after the first epoch, where there is more than one."""
    epochs = run["epochs"][1:] or run["epochs"]
    return float(len(epochs) * run["documents"] / sum(epochs))


def overall(run: dict[str, Any]) -> float:
    """Documents a second with tokenising and the first epoch."""
    return float(len(run["epochs"]) * run["documents"] / (run["tokenising"] + sum(run["epochs"])))


def parsed(given: Sequence[str]) -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--parts", nargs="+", choices=list(SIDES), default=list(SIDES))
    parser.add_argument("--documents", type=int, help="training documents, at most; 0: all")
    parser.add_argument("--test-documents", type=int, help="test documents, at most; 0: all")
    for name in ("epochs", "batch", "length", "seeds", "workers"):
        parser.add_argument(f"--{name}", type=int)
    arguments = parser.parse_args(given)
    usual = _TINY if arguments.tiny else _GPU if arguments.device.startswith("cuda") else _CPU
    for name, value in usual.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    arguments.documents = arguments.documents or None
    arguments.test_documents = arguments.test_documents or None
    return arguments


_GPU = {"documents": 0, "test_documents": 0, "epochs": 3, "batch": 64, "length": 256, "seeds": 1, "workers": 4}
_CPU = _GPU | {"documents": 128, "test_documents": 64, "epochs": 2, "batch": 16, "length": 64, "workers": 0}
_TINY = _CPU | {"documents": 32, "test_documents": 16, "batch": 8, "length": 16}


def main(given: Sequence[str]) -> None:
    os.environ["HITIN_CACHE"] = "off"  # tokenising is measured
    os.environ["TOKENIZERS_PARALLELISM"] = "true"  # on both sides, workers or not
    arguments = parsed(given)
    if arguments.measure:
        with redirect_stdout(sys.stderr):  # the Trainer prints
            found = measure(arguments)
        print(json.dumps(found))
        return
    report = begun("training_speed", "Training, in documents a second", arguments, given)
    report.say(
        f"Encoder: {encoder_told(arguments)}. Data: {data_told(arguments)}. Batch {arguments.batch}, "
        f"at most {arguments.length} tokens, {arguments.epochs} epochs, "
        f"seeds {arguments.seed} to {arguments.seed + arguments.seeds - 1}, "
        f"{'bf16' if arguments.device.startswith('cuda') else 'fp32'}."
    )
    with encoder_folder(arguments) as arguments.encoder:
        for part in arguments.parts:
            table(report, part, arguments, given)
    report.close()


if __name__ == "__main__":
    main(sys.argv[1:])
