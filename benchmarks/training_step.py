"""What a training step costs: HiTIN as it is, with every leaf made, and in the published code's form, against flat.

    python benchmarks/training_step.py                                    a BERT of MiniLM's shape, made here
    python benchmarks/training_step.py --device cuda --encoder FOLDER --taxonomy wos.taxonomy

A step is what `hitin train` does with a batch: forward, loss with the recursive regularisation, backward, clipping, the
optimiser. All documents have the same number of tokens. The ways take turns in one process, a round each, after some
rounds that do not count; the time is the median over rounds, the ratio the median of the ratios to flat of the same
round. Memory is that of a process of its own with this way alone: on a GPU what torch holds at most, on a CPU the peak
beyond the process before the model is built. Both count weights and the optimiser's state. K = 2.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch
from accelerate import Accelerator

from hitin import Taxonomy
from hitin.batches import Examples
from hitin.devices import accelerated
from hitin.encoders.transformer import need_transformers
from hitin.memory import keep_freed_memory
from hitin.methods.hitin import HiTIN
from hitin.neural import NeuralModel
from hitin.settings import Run
from hitin.training.steps import Steps
from measuring import measured, peak_kilobytes
from reporting import Report, begun
from speed_data import encoder_folder, encoder_told, options, random_examples, taxonomy_of_size
from structure_encoder import MadeLeaves

WAYS = {
    "flat": "flat",
    "folded": "HiTIN, leaves folded away",
    "made": "HiTIN, every leaf made",
    "mixed": "HiTIN, published code's form",
}
WIDTH = 300  # of a node's vector
BATCHES = 4  # different ones, which come again


@dataclass
class Way:
    """A model in training, and how far it has come."""

    steps: Steps
    train: Examples
    batch_size: int
    done: int = 0

    def take(self, count: int) -> float:
        """Seconds for each of so many steps."""
        wait(self.steps.device)
        started = time.perf_counter()
        for _ in range(count):
            start = self.done % BATCHES * self.batch_size
            self.steps.take(self.done, self.done, self.train, [np.arange(start, start + self.batch_size)])
            self.done += 1
        wait(self.steps.device)
        return (time.perf_counter() - started) / count


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def run_of(way: str, arguments: argparse.Namespace) -> Run:
    method = {"method": "flat"} if way == "flat" else {"method": "hitin", "height": 2, "width": WIDTH, "norm": "batch"}
    leaves = {"leaves": "mixed"} if way == "mixed" else {}
    sizes = {"max_length": arguments.length, "batch_size": arguments.batch, "seed": arguments.seed, "consistency": 0.0}
    return Run.of(encoder=str(arguments.encoder), text_pooling="mean", **method, **leaves, **sizes)


def built(way: str, taxonomy: Taxonomy, arguments: argparse.Namespace, accelerator: Accelerator) -> Way:
    model = NeuralModel.build(taxonomy, run_of(way, arguments), [])
    if way == "made":
        assert isinstance(model.network.method, HiTIN)
        model.network.method.leaves = MadeLeaves(model.network.method.leaves)
    vocabulary = model.tokenizer.get_vocab_size()
    train = random_examples(taxonomy, BATCHES * arguments.batch, arguments.length, vocabulary, arguments.seed)
    steps = Steps(model, train, None, accelerator, 1_000_000)
    model.network.train()
    return Way(steps, train, arguments.batch)


def gigabytes(way: str, labels: int, batch: int) -> float:
    """About what a way needs beside the text encoder."""
    leaves = batch * labels * WIDTH * 4 / 2**30
    return {"flat": 0.0, "folded": 0.0, "made": 3 * leaves, "mixed": 6 * leaves + 4 * labels**2 * 4 / 2**30}[way]


def measure(arguments: argparse.Namespace) -> None:
    """In a process of its own: the memory of one way."""
    way, labels = arguments.measure.split(":")
    torch.empty(1, device=arguments.device)
    _ = need_transformers().BertModel  # loaded, so that it does not count
    taxonomy = taxonomy_of_size(int(labels), arguments.taxonomy)
    keep_freed_memory()
    before = peak_kilobytes()
    with accelerated(arguments.device, run_of(way, arguments).training) as accelerator:
        one = built(way, taxonomy, arguments, accelerator)
        one.take(max(2, arguments.warmup))
        device = accelerator.device
    on_gpu = device.type == "cuda"
    held = torch.cuda.max_memory_allocated(device) / 2**20 if on_gpu else (peak_kilobytes() - before) / 1024
    print(json.dumps({"megabytes": held}))


def times(labels: int, ways: Sequence[str], arguments: argparse.Namespace) -> tuple[dict[str, list[float]], int]:
    """The seconds of a step in each round, by way; and the inner nodes of the coding tree."""
    taxonomy = taxonomy_of_size(labels, arguments.taxonomy)
    with accelerated(arguments.device, run_of("flat", arguments).training) as accelerator:
        every = {way: built(way, taxonomy, arguments, accelerator) for way in ways}
        for way in ways:
            every[way].take(arguments.warmup)
        found: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(arguments.rounds):
            for way in ways:
                found[way].append(every[way].take(arguments.steps))
        tree = getattr(every["folded"].steps.network.method, "tree", None)
    return found, sum(tree.layer_sizes[1:]) if tree is not None else 0


def table(report: Report, arguments: argparse.Namespace, given: Sequence[str]) -> None:
    report.header("labels", "inner nodes", "method", "ms a step", "times flat", "peak MB")
    for labels in arguments.labels:
        fits = [way for way in arguments.ways if gigabytes(way, labels, arguments.batch) <= arguments.gigabytes]
        found, inner = times(labels, fits, arguments)
        for way in arguments.ways:
            if way not in fits:
                need = gigabytes(way, labels, arguments.batch)
                report.row(f"{labels:,}", f"{inner:,}", WAYS[way], f"not tried: needs about {need:.1f} GB", "", "")
                continue
            ratio = median(one / flat for one, flat in zip(found[way], found["flat"], strict=True))
            own = measured(__file__, f"{way}:{labels}", *given, "--encoder", arguments.encoder)
            milliseconds = 1000 * median(found[way])
            report.row(
                f"{labels:,}",
                f"{inner:,}",
                WAYS[way],
                f"{milliseconds:.1f}",
                f"{ratio:.3f}",
                f"{own['megabytes']:,.0f}",
            )


def parsed(given: Sequence[str]) -> argparse.Namespace:
    """Sizes that are not given suit the device: a CPU has fewer and shorter rounds of smaller batches."""
    parser = options(__doc__)
    parser.add_argument("--taxonomy", type=Path, help="the file of the 141 labels; else two levels of 7 and 134")
    parser.add_argument("--labels", type=int, nargs="+", help="the numbers of labels")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), help="flat and folded at least")
    for name in ("batch", "length", "rounds", "steps", "warmup"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--gigabytes", type=float, help="beyond which a way is not tried")
    arguments = parser.parse_args(given)
    usual = _GPU if arguments.device.startswith("cuda") else _TINY if arguments.tiny else _CPU
    for name, value in usual.items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    return arguments


_GPU = {"labels": [141, 1_000, 10_000], "batch": 64, "length": 128, "rounds": 11, "steps": 50, "warmup": 20}
_GPU |= {"gigabytes": 60.0, "ways": list(WAYS)}
_CPU = _GPU | {"batch": 4, "rounds": 5, "steps": 1, "warmup": 1, "gigabytes": 1.0}
_TINY = _CPU | {"labels": [141], "batch": 4, "length": 8, "rounds": 2, "warmup": 1, "ways": ["flat", "folded"]}


def main(given: Sequence[str]) -> None:
    arguments = parsed(given)
    if arguments.measure:
        measure(arguments)
        return
    keep_freed_memory()
    report = begun("training_step", "A training step", arguments, given)
    taxonomy = arguments.taxonomy.name if arguments.taxonomy else "made, 7 + 134"
    report.say(
        f"Encoder: {encoder_told(arguments)}. Batch {arguments.batch}, {arguments.length} tokens, "
        f"seed {arguments.seed}; {arguments.rounds} rounds of {arguments.steps} steps; the taxonomy of 141 labels: "
        f"{taxonomy}, "
        "the others: ten children below each label.\n"
    )
    with encoder_folder(arguments) as arguments.encoder:
        table(report, arguments, given)
    report.close()


if __name__ == "__main__":
    main(sys.argv[1:])
