"""From a text to its labels: torch, torch compiled, ONNX, ONNX in int8, and the linear model.

    python benchmarks/inference.py
    python benchmarks/inference.py --encoder FOLDER --data FOLDER

HiTIN on a transformer and `linear` are trained briefly on the same documents, saved and exported as a user would; that
is not measured. Milliseconds are of a call with so many texts: from texts to labels (tokens, network, decisions), and
the network alone (of `linear`, words and weights). The ways take turns of some calls, with the same texts, each in a
process of its own that begins its turn with calls that do not count. Loading is from the folder to a classifier that
is ready, in a process of its own, libraries not counted; the size is that of its folder, without folders in it.
F1 is on test documents with the model's own decisions: it tells what a way loses, not how good the model is.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hitin.compare.data import Splits
from hitin.estimator import HierarchicalTextClassifier
from hitin.evaluation import truth_table
from hitin.metrics import Counts, micro_f1
from hitin.model_folder import TRAINING
from hitin.neural import NeuralModel
from hitin.processor import cores
from measuring import measured
from reporting import Report, begun
from speed_data import data_told, encoder_folder, encoder_told, options, read_data
from turns import Turns, answer_turns

TORCH, COMPILED, ONNX, INT8, LINEAR = "torch", "compiled", "onnx", "int8", "linear"
WAYS = {TORCH: "torch", COMPILED: "torch.compile", ONNX: "ONNX", INT8: "ONNX int8", LINEAR: "linear"}
FOLDERS = {TORCH: "hitin", COMPILED: "hitin", ONNX: "hitin/onnx", INT8: "hitin/onnx-int8", LINEAR: "linear"}
WARM_UP = {1: 3}  # calls, by the number of texts; else one


class Call(NamedTuple):
    """Seconds from texts to labels, and of the network alone."""

    whole: float
    network: float


def make_models(folder: Path, data: Splits, arguments: argparse.Namespace) -> None:
    """Trained on few documents and saved; a frozen encoder is trained fast, and is as fast when used."""
    hitin: dict[str, Any] = {"encoder": str(arguments.encoder), "text_pooling": "mean", "freeze": True, "epochs": 2}
    hitin |= {"max_length": arguments.length, "method": "hitin", "seed": arguments.seed, "device": "cpu"}
    for name, given in (("hitin", hitin), ("linear", {"method": "linear", "seed": arguments.seed})):
        HierarchicalTextClassifier(data.taxonomy, **given).fit_documents(data.train, data.val, out=folder / name)
    for way in (ONNX, INT8):
        if way in arguments.ways:
            from hitin.export.exporting import export_model  # which not every machine can do

            export_model(folder / "hitin", int8=way == INT8)


def loaded(way: str, folder: Path) -> HierarchicalTextClassifier:
    classifier = HierarchicalTextClassifier.load(folder / FOLDERS[way], device="cpu")
    if way == COMPILED:
        assert isinstance(classifier.model_, NeuralModel)
        classifier.model_.network.compile(dynamic=True)
    return classifier


def call(classifier: HierarchicalTextClassifier, texts: Sequence[str]) -> Call:
    """What `scored` does, step by step."""
    started = time.perf_counter()
    prepared = classifier.model_.prepared(texts)
    ready = time.perf_counter()
    logits = classifier.model_.prepared_logits(prepared)
    computed = time.perf_counter()
    classifier.decided(logits)
    return Call(time.perf_counter() - started, computed - ready)


def turns(way: str, arguments: argparse.Namespace) -> None:
    """In a process of its own: the calls of one way, some at a time, when it is its turn."""
    data = read_data(arguments, arguments.documents, arguments.test_documents)
    classifier = loaded(way, arguments.models)

    def answer(size: int, first: int, count: int) -> list[Call] | None:
        if not _works(way, classifier, _texts(data.test.texts, size, first)):
            return None
        return [call(classifier, _texts(data.test.texts, size, first + number)) for number in range(count)]

    answer_turns(answer)


def _texts(texts: Sequence[str], size: int, number: int) -> list[str]:
    return [texts[(number * size + place) % len(texts)] for place in range(size)]


def _works(way: str, classifier: HierarchicalTextClassifier, texts: Sequence[str]) -> bool:
    """Warm it up, at each turn anew. Only the compiler may not be there, or not be able to."""
    try:
        for _ in range(WARM_UP.get(len(texts), 1)):
            call(classifier, texts)
    except Exception as error:
        if way != COMPILED:
            raise
        print(f"torch.compile: {error}", file=sys.stderr)
        return False
    return True


def latencies(arguments: argparse.Namespace, given: Sequence[str]) -> dict[int, dict[str, list[Call] | None]]:
    """The calls of every way by the number of texts, in turns."""
    found: dict[int, dict[str, list[Call] | None]] = {}
    with ExitStack() as stack:
        ways = {way: stack.enter_context(Turns(__file__, f"turns:{way}", *given)) for way in arguments.ways}
        for size, calls in zip(arguments.batches, arguments.calls, strict=True):
            found[size] = {way: [] for way in ways}
            for first in range(0, calls, arguments.calls_a_turn):
                for way, process in ways.items():
                    some = process.take(size, first, min(arguments.calls_a_turn, calls - first))
                    found[size][way] = _more(found[size][way], some)
    return found


def _more(calls: list[Call] | None, some: list[list[float]] | None) -> list[Call] | None:
    """`None` where one of them failed."""
    return None if calls is None or some is None else [*calls, *(Call(*each) for each in some)]


def loading(way: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """In a process of its own: how long it takes to load, how large it is, and what it scores."""
    data = read_data(arguments, arguments.documents, arguments.test_documents)
    import_libraries(way)
    started = time.perf_counter()
    classifier = loaded(way, arguments.models)
    seconds = time.perf_counter() - started
    given = classifier.scored(data.test.texts).given if way != COMPILED else None
    truth = truth_table(data.test.labels, data.taxonomy)
    score = None if given is None else 100 * micro_f1(Counts.of(given, truth))
    return {"seconds": seconds, "megabytes": size_of(arguments.models / FOLDERS[way]) / 2**20, "micro": score}


def import_libraries(way: str) -> None:
    """Those that the way needs, before the clock is started."""
    from importlib import import_module

    needed = {LINEAR: ["sklearn.feature_extraction.text"], ONNX: ["onnxruntime"], INT8: ["onnxruntime"]}
    for name in needed.get(way, ["transformers.models.bert.modeling_bert"]):
        import_module(name)


def size_of(folder: Path) -> int:
    """Bytes of the files right in a folder: exports and what training left lie in folders of their own."""
    assert folder.name != TRAINING
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())


def calls_table(report: Report, arguments: argparse.Namespace, given: Sequence[str]) -> None:
    times = ("p50 ms", "p99 ms", "p50 ms network", "p99 ms network")
    report.header("threads", "texts a call", "way", *times, "documents/s", "times torch")
    for threads in arguments.threads:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # of torch and of onnxruntime
        for size, found in latencies(arguments, given).items():
            usual = float(np.median([each.whole for each in found[TORCH] or ()]))
            for way, calls in found.items():
                if calls is None:
                    report.row(threads, size, WAYS[way], "it does not compile here", "", "", "", "", "")
                else:
                    _row(report, threads, size, way, np.array(calls), usual)


def _row(report: Report, threads: int, size: int, way: str, calls: Any, usual: float) -> None:
    """`calls` (n, 2) are in seconds."""
    (whole, network), (last, network_last) = np.percentile(calls, [50, 99], axis=0)
    cells = [f"{1000 * each:.2f}" for each in (whole, last, network, network_last)]
    report.row(threads, size, WAYS[way], *cells, f"{size / whole:,.1f}", f"{usual / whole:.2f}")


def loading_table(report: Report, arguments: argparse.Namespace, given: Sequence[str]) -> None:
    report.say()
    report.header("way", "s to load", "MB on disk", "micro-F1")
    for way in arguments.ways:
        found = measured(__file__, f"loading:{way}", *given)
        score = "as torch" if found["micro"] is None else f"{found['micro']:.2f}"
        report.row(WAYS[way], f"{found['seconds']:.2f}", f"{found['megabytes']:.1f}", score)


def parsed(given: Sequence[str]) -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--models", type=Path, help=argparse.SUPPRESS)  # where a process of its own finds them
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS), help="torch at least")
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, cores()}, reverse=True))
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64], help="texts of a call")
    parser.add_argument("--calls", type=int, nargs="+", help="how many, for each number of texts")
    for name in ("length", "documents", "test-documents", "calls-a-turn"):
        parser.add_argument(f"--{name}", type=int)
    arguments = parser.parse_args(given)
    for name, value in (_TINY if arguments.tiny else _USUAL).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    if len(arguments.calls) != len(arguments.batches):
        parser.error("--calls needs as many numbers as --batches")
    return arguments


_USUAL = {"calls": [40, 3], "calls_a_turn": 20, "length": 64, "documents": 200, "test_documents": 100}
_TINY = {"calls": [3, 2], "calls_a_turn": 2, "length": 16, "documents": 60, "test_documents": 20}


def main(given: Sequence[str]) -> None:
    arguments = parsed(given)
    if arguments.measure:
        kind, _, way = arguments.measure.partition(":")
        with redirect_stdout(sys.stderr):
            if kind == "turns":
                turns(way, arguments)
                return
            found = loading(way, arguments)
        print(json.dumps(found))
        return
    report = begun("inference", "From a text to its labels", arguments, given)
    report.say(
        f"Encoder: {encoder_told(arguments)}. Data: {data_told(arguments)}. At most {arguments.length} tokens, "
        f"seed {arguments.seed}. Calls: {' and '.join(map(str, arguments.calls))}, with "
        f"{' and '.join(map(str, arguments.batches))} texts. On the CPU.\n"
    )
    with encoder_folder(arguments) as arguments.encoder, tempfile.TemporaryDirectory() as models:
        make_models(Path(models), read_data(arguments, arguments.documents, arguments.test_documents), arguments)
        calls_table(report, arguments, [*given, "--models", models])
        loading_table(report, arguments, [*given, "--models", models])
    report.close()


if __name__ == "__main__":
    main(sys.argv[1:])
