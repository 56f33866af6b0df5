"""How training, scoring and deciding grow with the documents, the labels and the length of documents.

    python benchmarks/growth.py --out FOLDER

Training is HiTIN by the steps of `hitin train`, in batches of a few documents; scoring is what its network makes of
documents; deciding is from logits to labels, by the policy `consistent`. Each row is a process of its own: the shortest
of three times, after one that does not count, and the peak memory beyond the process with the model in it. The slope is
that of the straight line through the points on logarithmic axes: 1 is twice as much for twice the size.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from decoding import gains
from hitin.decisions import Decisions
from hitin.devices import accelerated
from hitin.network import logits_of
from measuring import measured, peak_kilobytes
from plots import lines, slope
from reporting import Report, begun
from speed_data import WOS_BELOW, WOS_TOP, encoder_folder, encoder_told, options, random_examples, taxonomy_of_size
from training_step import built, run_of, wait

WORKS = ("training", "scoring", "deciding")
AXES = ("documents", "labels", "length")
UNITS = {"documents": "documents", "labels": "labels", "length": "tokens of a document"}
REPEATS = 3
VOCABULARY = 1_000  # tokens, of those that any encoder knows


Once = Callable[[], object]


def training(documents: int, labels: int, arguments: argparse.Namespace, accelerator: Accelerator) -> Once:
    """An epoch in batches."""
    arguments.batch = min(arguments.batch, documents)
    way = built("folded", taxonomy_of_size(labels), arguments, accelerator)
    return lambda: way.take(documents // arguments.batch)


def scoring(documents: int, labels: int, arguments: argparse.Namespace, accelerator: Accelerator) -> Once:
    taxonomy = taxonomy_of_size(labels)
    network = built("folded", taxonomy, arguments, accelerator).steps.network
    examples = random_examples(taxonomy, documents, arguments.length, VOCABULARY)
    return lambda: logits_of(network, examples)


def deciding(documents: int, labels: int, arguments: argparse.Namespace, _: Accelerator) -> Once:
    taxonomy = taxonomy_of_size(labels)
    logits = gains("real", documents, taxonomy, np.random.default_rng(arguments.seed))
    return lambda: Decisions().decide(logits, taxonomy)


MAKERS = dict(zip(WORKS, (training, scoring, deciding), strict=True))


def measure(arguments: argparse.Namespace) -> None:
    """In a process of its own: one work at one size."""
    work, *sizes = arguments.measure.split(":")
    documents, labels, arguments.length = map(int, sizes)
    with accelerated(arguments.device, run_of("folded", arguments).training) as accelerator:
        once, device = MAKERS[work](documents, labels, arguments, accelerator), accelerator.device
        forget_peak(device)
        before = _held(device)
        seconds = [_seconds(once, device) for _ in range(1 + REPEATS)][1:]
        print(json.dumps({"seconds": min(seconds), "megabytes": _held(device) - before}))


def forget_peak(device: torch.device) -> None:
    """What was needed to make the model and its input must not hide what the work needs."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    else:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _held(device: torch.device) -> float:
    """The most megabytes so far: of the GPU, or of the process."""
    return torch.cuda.max_memory_allocated(device) / 2**20 if device.type == "cuda" else peak_kilobytes() / 1024


def _seconds(once: Once, device: torch.device) -> float:
    started = time.perf_counter()
    once()
    wait(device)
    return time.perf_counter() - started


def series(arguments: argparse.Namespace) -> list[tuple[str, str, list[int]]]:
    """What is done with what growing, at which sizes."""
    found = [(work, axis, arguments.sizes[work, axis]) for axis in AXES for work in WORKS]
    return [(work, axis, sizes) for work, axis, sizes in found if sizes]


def table(report: Report, arguments: argparse.Namespace, given: Sequence[str]) -> None:
    seconds: dict[str, dict[str, list[tuple[float, float]]]] = {axis: {} for axis in AXES}
    megabytes: dict[str, dict[str, list[tuple[float, float]]]] = {axis: {} for axis in AXES}
    report.header("growing", "work", "documents", "labels", "tokens", "seconds", "MB")
    for work, axis, sizes in series(arguments):
        for size in sizes:
            at = arguments.base[work] | {axis: size}
            said = f"{work}:{at['documents']}:{at['labels']}:{at['length']}"
            found = measured(__file__, said, *given, "--encoder", arguments.encoder)
            seconds[axis].setdefault(work, []).append((size, found["seconds"]))
            megabytes[axis].setdefault(work, []).append((size, max(found["megabytes"], 1.0)))
            tokens = "" if work == "deciding" else at["length"]
            cells = (f"{at['documents']:,}", f"{at['labels']:,}", tokens, f"{found['seconds']:.4f}")
            report.row(UNITS[axis], work, *cells, f"{found['megabytes']:.0f}")
    slopes(report, seconds, megabytes)
    for axis in filter(seconds.get, AXES):
        report.plot(f"{axis}_seconds", lines("Seconds", UNITS[axis], "seconds", seconds[axis]))
        report.plot(f"{axis}_memory", lines("Memory beyond the model", UNITS[axis], "MB", megabytes[axis]))


def slopes(report: Report, seconds: dict[str, Any], megabytes: dict[str, Any]) -> None:
    report.say()
    report.header("growing", "work", "slope of seconds", "slope of memory")
    for axis in AXES:
        for work, points in seconds[axis].items():
            report.row(UNITS[axis], work, f"{slope(points):.2f}", f"{slope(megabytes[axis][work]):.2f}")


def parsed(given: Sequence[str]) -> argparse.Namespace:
    parser = options(__doc__)
    parser.add_argument("--batch", type=int, default=8, help="documents of a training step")
    arguments = parser.parse_args(given)
    arguments.taxonomy = None
    if arguments.tiny:
        arguments.sizes, arguments.base = _TINY_SIZES, _TINY_BASE
    else:
        arguments.sizes, arguments.base = _SIZES, _BASE
    arguments.length = arguments.base["training"]["length"]
    return arguments


_FEW = WOS_TOP + WOS_BELOW
_NETWORK = {"documents": 8, "labels": _FEW, "length": 32}
_BASE = {
    "training": _NETWORK,
    "scoring": _NETWORK | {"documents": 32},
    "deciding": _NETWORK | {"documents": 1_000, "labels": 1_000},
}
_SIZES = {
    ("training", "documents"): [8, 24, 72],
    ("scoring", "documents"): [32, 96, 288],
    ("deciding", "documents"): [100, 1_000, 10_000],
    ("training", "labels"): [100, 1_000, 10_000],
    ("scoring", "labels"): [100, 1_000, 10_000],
    ("deciding", "labels"): [100, 1_000, 10_000],
    ("training", "length"): [16, 64, 256],
    ("scoring", "length"): [16, 64, 256],
    ("deciding", "length"): [],
}
_TINY_BASE = {work: {"documents": 4, "labels": 20, "length": 8} for work in WORKS}
_TINY_SIZES: dict[tuple[str, str], list[int]] = {pair: [] for pair in _SIZES}
_TINY_SIZES |= {("scoring", "documents"): [2, 4], ("deciding", "labels"): [20, 40]}


def main(given: Sequence[str]) -> None:
    arguments = parsed(given)
    if arguments.measure:
        measure(arguments)
        return
    report = begun("growth", "How it grows", arguments, given)
    seen = f"Batches of {arguments.batch} in training; random tokens; seed {arguments.seed}."
    report.say(f"Encoder: {encoder_told(arguments)}. {seen}\n")
    with encoder_folder(arguments) as arguments.encoder:
        table(report, arguments, given)
    report.close()


if __name__ == "__main__":
    main(sys.argv[1:])
