"""`hitin serve` under load: how fast it answers, whether rightly, what joining requests gives, and its memory.

    python benchmarks/serving.py --encoder FOLDER --data FOLDER
    python benchmarks/serving.py --model FOLDER --parts load memory

Real servers on loopback, on the same cores as the clients. Each client sends a request of one text, waits for the
answer, and sends the next.

* load: a model exported to ONNX. Every answer is compared with what the same model says of all texts in one go: its
  labels exactly, its probabilities to 1e-5.
* batching: HiTIN on a transformer, texts of 128 words. The server joins requests; does not (`--no-batching`: each
  request is computed by itself, in one of 40 threads); or has one client only, so that one is computed after the other.
  The ways take turns of some seconds, each in a server of its own; with --device cuda on a GPU.
* memory: what the server holds, second by second, under load.
"""

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hitin.compare.data import Splits
from hitin.documents import read_documents
from hitin.estimator import HierarchicalTextClassifier
from hitin.export.exporting import export_model
from hitin.loading import load_classifier
from load import Check, Load, Server, server, under_load
from reporting import Report, begun
from speed_data import data_told, encoder_folder, encoder_told, options, read_data

PARTS = ("load", "batching", "memory")
WORDS = 128
TOLERANCE, GPU_TOLERANCE = 1e-5, 1e-3  # a GPU adds up in another order for another number of documents
EVERY = 50  # of so many requests one asks for the probabilities of all labels
JOINED, APART, ALONE = "joined", "each by itself", "one after the other"


def bodies(texts: Sequence[str]) -> list[bytes]:
    """One text a request."""
    asked = [{"text": text} | ({"all_scores": True} if row % EVERY == 0 else {}) for row, text in enumerate(texts)]
    return [json.dumps(each).encode() for each in asked]


def compared(classifier: HierarchicalTextClassifier, texts: Sequence[str], tolerance: float = TOLERANCE) -> Check:
    """What answers must be: labels and probabilities as they are without a service."""
    scored = classifier.scored(list(texts))
    names = list(classifier.taxonomy_.labels)
    numbers = {name: number for number, name in enumerate(names)}
    labels = [[names[number] for number in np.flatnonzero(row)] for row in scored.given]
    probabilities = scored.probabilities

    def check(row: int, answer: bytes) -> str | None:
        (document,) = json.loads(answer)["documents"]
        if document["labels"] != labels[row]:
            return "other labels"
        told = document["scores"]
        off = max((abs(score - probabilities[row, numbers[name]]) for name, score in told.items()), default=0.0)
        if "probabilities" in document:
            off = max(off, float(np.abs(np.array(document["probabilities"]) - probabilities[row]).max()))
        return f"probabilities differ by more than {tolerance:g}" if off > tolerance else None

    return check


def load_table(report: Report, arguments: argparse.Namespace, model: Path, texts: Sequence[str]) -> None:
    """The answers of one server to many clients."""
    classifier = load_classifier(str(model), device="cpu", runtime=arguments.runtime)
    check = compared(classifier, texts)
    report.say(f"## {arguments.clients} clients for {arguments.seconds:g} s\n")
    run = classifier.model_.run
    size = f"{len(classifier.taxonomy_):,} labels"
    report.say(f"{run.method_name} on {run.encoder_name}, {arguments.runtime}, {size}, {len(texts):,} texts.\n")
    report.header(
        "requests", "answered with 200", "other labels", "other probabilities", "requests/s", "p50 ms", "p99 ms"
    )
    with server(model, "--runtime", arguments.runtime) as running:
        under_load(running.address, bodies(texts), clients=arguments.clients, seconds=arguments.warm_up, check=check)
        found = under_load(
            running.address, bodies(texts), clients=arguments.clients, seconds=arguments.seconds, check=check
        )
    sent = len(found.milliseconds) + found.lost.total()
    labels = found.wrong.pop("other labels", 0)
    times = [f"{found.percentile(percent):.1f}" for percent in (50, 99)]
    report.row(f"{sent:,}", f"{found.statuses[200]:,}", labels, found.wrong.total(), f"{found.a_second:,.0f}", *times)
    report.say()


def batching_table(report: Report, arguments: argparse.Namespace, model: Path, texts: Sequence[str]) -> None:
    """The same model served in several ways, by turns."""
    report.say(f"## Texts of {WORDS} words\n")
    columns = ("documents/s", "p50 ms", "p99 ms", "ms of a core a document", "times joined is faster")
    report.header("runtime", "requests are computed", "clients", *columns)
    for runtime in arguments.runtimes:
        classifier = load_classifier(str(model), device=arguments.device, runtime=runtime)
        check = compared(classifier, texts, GPU_TOLERANCE if arguments.device == "cuda" else TOLERANCE)
        found = _ways(arguments, model, runtime, texts, check)
        for way, loads in found.items():
            clients = 1 if way == ALONE else arguments.clients
            report.row(runtime, way, clients, *_cells(way, loads), f"{_speed(found[JOINED]) / _speed(loads):.2f}")
    report.say()


def _cells(way: str, loads: Sequence[Load]) -> list[str]:
    assert all(load.is_clean for load in loads), (way, [(load.statuses, load.wrong, load.lost) for load in loads])
    whole = np.concatenate([load.milliseconds for load in loads])
    computed = 1e3 * sum(load.cpu_seconds for load in loads) / len(whole)
    times = [f"{np.percentile(whole, percent):,.0f}" for percent in (50, 99)]
    return [f"{_speed(loads):.1f}", *times, f"{computed:.1f}"]


def _ways(
    arguments: argparse.Namespace, model: Path, runtime: str, texts: Sequence[str], check: Check
) -> dict[str, list[Load]]:
    """What came of each way, turn by turn. Servers that are not asked wait without work."""
    found: dict[str, list[Load]] = {JOINED: [], APART: [], ALONE: []}
    with ExitStack() as stack:
        told = ("--runtime", runtime, "--device", arguments.device)
        joining = stack.enter_context(server(model, *told))
        plain = stack.enter_context(server(model, *told, "--no-batching"))
        for turn in range(arguments.turns + 1):
            for way, running in ((JOINED, joining), (APART, plain), (ALONE, plain)):
                clients = 1 if way == ALONE else arguments.clients
                seconds = arguments.turn_seconds if turn else arguments.warm_up
                before = running.cpu_seconds
                load = under_load(running.address, bodies(texts), clients=clients, seconds=seconds, check=check)
                load.cpu_seconds = running.cpu_seconds - before
                found[way] += [load] if turn else []
    return found


def _speed(loads: Sequence[Load]) -> float:
    """Requests a second over all turns."""
    return sum(len(load.milliseconds) for load in loads) / sum(load.seconds for load in loads)


def memory_table(report: Report, arguments: argparse.Namespace, model: Path, texts: Sequence[str]) -> None:
    """What the server holds while it is asked."""
    classifier = load_classifier(str(model), device="cpu", runtime=arguments.runtime)
    with server(model, "--runtime", arguments.runtime) as running:
        check = compared(classifier, texts)
        asked = bodies(texts)
        under_load(running.address, asked, clients=arguments.clients, seconds=arguments.memory_warm_up, check=check)
        held = Held(running)
        found = under_load(
            running.address, asked, clients=arguments.clients, seconds=arguments.memory_seconds, check=check
        )
        samples = held.stop()
    parts = np.array_split(np.array(samples) / 2**20, 10)
    growth = 100 * (parts[-1].mean() / parts[0].mean() - 1)
    report.say(f"## Memory over {arguments.memory_seconds:g} s, after {arguments.memory_warm_up:g} s of warm-up\n")
    report.header("part", *(f"{number + 1}/10" for number in range(10)), "growth")
    report.row("MB held", *(f"{part.mean():.1f}" for part in parts), f"{growth:+.2f} %")
    report.say(
        f"\n{len(found.milliseconds):,} requests; answered otherwise than with 200 or wrongly: {_unclean(found)}.\n"
    )


def _unclean(load: Load) -> int:
    return load.lost.total() + load.wrong.total() + load.statuses.total() - load.statuses[200]


class Held:
    """The memory of a server, sampled in a thread until it is stopped."""

    def __init__(self, running: Server, every: float = 1.0) -> None:
        self._samples = [running.resident]
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._sample, args=(running, every), daemon=True)
        self._thread.start()

    def _sample(self, running: Server, every: float) -> None:
        while not self._stopped.wait(every):
            self._samples.append(running.resident)

    def stop(self) -> list[int]:
        """Bytes."""
        self._stopped.set()
        self._thread.join()
        return self._samples


def make_model(folder: Path, data: Splits, arguments: argparse.Namespace) -> Path:
    """HiTIN on the encoder, trained briefly: how good it is does not matter to its speed."""
    given: dict[str, Any] = {"encoder": str(arguments.encoder), "text_pooling": "mean", "freeze": True, "epochs": 1}
    given |= {"max_length": 2 * WORDS, "method": "hitin", "seed": arguments.seed, "device": arguments.device}
    with redirect_stdout(sys.stderr):
        HierarchicalTextClassifier(data.taxonomy, **given).fit_documents(data.train, data.val, out=folder)
        for runtime in arguments.runtimes:
            if runtime != "torch":
                export_model(folder, int8=runtime == "onnx-int8")
    return folder


def long_texts(texts: Sequence[str], count: int) -> list[str]:
    """Texts of exactly `WORDS` words, short ones joined."""
    words = (word for text in [*texts] * 20 for word in text.split())
    return [" ".join(islice(words, WORDS)) for _ in range(count)]


def parsed(given: Sequence[str]) -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--model", type=Path, help="a model with its export, for load and memory; else the one below")
    parser.add_argument("--texts", type=Path, help="documents to ask it about; else those of the data")
    parser.add_argument("--runtime", default="onnx", help="of load and memory")
    parser.add_argument("--runtimes", nargs="+", default=["torch", "onnx"], help="of batching")
    parser.add_argument("--clients", type=int, default=64)
    for name, usual in _USUAL.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=float, default=None, help=f"{usual:g}")
    arguments = parser.parse_args(given)
    for name, value in (_TINY if arguments.tiny else _USUAL).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    for name in ("turns", "documents"):
        setattr(arguments, name, int(getattr(arguments, name)))
    return arguments


_USUAL: dict[str, float] = {
    "seconds": 60, "warm_up": 10, "turns": 3, "turn_seconds": 30, "memory_seconds": 600, "memory_warm_up": 60,
    "documents": 500,
}  # fmt: skip
_TINY: dict[str, float] = {
    "seconds": 2, "warm_up": 1, "turns": 1, "turn_seconds": 2, "memory_seconds": 3, "memory_warm_up": 1,
    "documents": 60,
}  # fmt: skip


def main(given: Sequence[str]) -> None:
    arguments = parsed(given)
    report = begun("serving", "The service under load", arguments, given)
    with ExitStack() as stack:
        made, data = None, None
        if arguments.model is None or "batching" in arguments.parts:
            arguments.encoder = stack.enter_context(encoder_folder(arguments))
            data = read_data(arguments, arguments.documents, 100)
            made = make_model(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "model", data, arguments)
            report.say(f"Encoder of batching: {encoder_told(arguments)}. Data: {data_told(arguments)}.\n")
        model = arguments.model or made
        assert model is not None
        texts = _texts(arguments, data)
        if "load" in arguments.parts:
            load_table(report, arguments, model, texts)
        if "batching" in arguments.parts:
            assert made is not None
            assert data is not None
            batching_table(report, arguments, made, long_texts(data.train.texts, 200))
        if "memory" in arguments.parts:
            memory_table(report, arguments, model, texts)
    report.close()


def _texts(arguments: argparse.Namespace, data: Splits | None) -> list[str]:
    if arguments.texts is not None:
        return [document.text for document in islice(read_documents(arguments.texts), 2000)]
    assert data is not None, "--texts says what the model is asked about"
    return list(data.test.texts)


if __name__ == "__main__":
    started = time.monotonic()
    main(sys.argv[1:])
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
