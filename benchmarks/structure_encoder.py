"""What HiTIN's structure encoder costs a document, with the leaves folded away and with every leaf made.

    python benchmarks/structure_encoder.py

From the document's vector to that of the tree (Eq. 8-11), forwards and backwards, K = 2, nodes of width 300, sum
pooling, on one core. Each row is a process of its own. Time is the shortest of several passes over a batch of 64. Kept
is what the forward pass leaves for the backward pass, parameters and input not counted; peak is the memory beyond the
process with the network in it. What each further document adds is the difference to a batch of another size.
"""

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from hitin import Taxonomy
from hitin.coding_tree import CodingTree, Graph, coding_tree
from hitin.encoders.interface import Widths
from hitin.methods.hitin import HiTIN, HiTINSettings, MixedLeafLayer
from measuring import measured, peak_kilobytes

WIDTH = 300
BATCH = 64
GIGABYTES = 5.0  # beyond which a way is not tried
FIRST_LAYER = 32  # nodes, in the series where only |Y| grows
FORMS = {"folded": "folded", "made": "every leaf made", "mixed": "published code's form"}


def label_like(labels: int) -> CodingTree:
    """The coding tree of a taxonomy with ten children below each label."""
    edges = np.stack([np.arange(labels - 1) // 10, np.arange(1, labels)], axis=1)
    return coding_tree(Graph(labels, edges), 2)


def by_hand(labels: int) -> CodingTree:
    """The labels dealt out to a fixed number of first-layer nodes."""
    layers = [np.arange(labels) % FIRST_LAYER, np.zeros(FIRST_LAYER, dtype=np.int64)]
    return CodingTree(layers, entropy=math.nan, flat_entropy=math.nan)


TREES = {"label-like": label_like, "by-hand": by_hand}


class MadeLeaves(nn.Module):
    """Eq. 8 as it stands: (B, |Y|, d)."""

    def __init__(self, leaves: nn.Module) -> None:
        super().__init__()
        self.leaves = leaves

    def forward(self, text: Tensor, parents: Tensor) -> MixedLeafLayer:
        leaves = self.leaves(text, parents)
        made = leaves.scale[:, None] * leaves.text[:, None] + leaves.offset
        return MixedLeafLayer(made, parents, len(leaves.families))


def network(form: str, tree: CodingTree) -> HiTIN:
    settings = HiTINSettings(width=WIDTH, norm="batch", leaves="mixed" if form == "mixed" else "paper")
    one_label = Taxonomy.from_edges([], labels=["one"])  # for the classifier, which is not measured
    module = HiTIN(one_label, Widths.of(WIDTH), settings, tree)
    if form == "made":
        module.leaves = MadeLeaves(module.leaves)
    return module


@contextmanager
def counting_kept(module: nn.Module, text: Tensor) -> Iterator[dict[int, int]]:
    """The bytes of each storage that is kept for the backward pass."""
    known = {tensor.untyped_storage().data_ptr() for tensor in (*module.parameters(), *module.buffers(), text)}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield kept


def cost(module: HiTIN, documents: int) -> tuple[float, float]:
    """Seconds, and megabytes kept, of a pass over a batch."""
    text = torch.randn(documents, WIDTH, requires_grad=True)
    with counting_kept(module, text) as kept:
        vector = module.read_out(text)
    torch.autograd.backward(vector.sum())
    seconds: list[float] = []
    while not seconds or (sum(seconds) < 1 and len(seconds) < 25):
        module.zero_grad()
        start = time.perf_counter()
        torch.autograd.backward(module.read_out(text).sum())
        seconds.append(time.perf_counter() - start)
    return min(seconds), sum(kept.values()) / 2**20


def measure(shape: str, labels: str, form: str) -> None:
    """In a process of its own: what a batch costs, and what each further document adds."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    tree = TREES[shape](int(labels))
    module = network(form, tree)
    before = peak_kilobytes()
    seconds, kept = cost(module, BATCH)
    peak = (peak_kilobytes() - before) / 1024
    other = 4 * BATCH if form == "folded" else BATCH // 2
    other_seconds, other_kept = cost(module, other)
    found = {
        "inner": sum(tree.layer_sizes[1:]),
        "milliseconds": 1000 * seconds,
        "kept": kept,
        "peak": peak,
        "microseconds_more": 1e6 * (other_seconds - seconds) / (other - BATCH),
        "kilobytes_more": 1024 * (other_kept - kept) / (other - BATCH),
    }
    print(json.dumps(found))


def gigabytes(form: str, labels: int) -> float:
    """About what a way needs."""
    leaves = BATCH * labels * WIDTH * 4 / 2**30
    return {"folded": 0.0, "made": 3 * leaves, "mixed": 6 * leaves + 2 * labels**2 * 4 / 2**30}[form]


def table(shape: str, sizes: list[int], forms: list[str]) -> None:
    columns = ("labels", "inner nodes", "leaves", "ms", "MB kept", "MB peak", "us a further document", "kB kept for it")
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for labels in sizes:
        for form in forms:
            if gigabytes(form, labels) > GIGABYTES:
                print(f"| {labels:,} | | {FORMS[form]} | needs {gigabytes(form, labels):.0f} GB: not tried | | | | |")
                continue
            found = measured(__file__, shape, labels, form)
            print(
                f"| {labels:,} | {found['inner']:,} | {FORMS[form]} | {found['milliseconds']:.1f} | "
                f"{found['kept']:.1f} | {found['peak']:.0f} | {found['microseconds_more']:.0f} | "
                f"{found['kilobytes_more']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
    else:
        table("label-like", [100, 1_000, 10_000], list(FORMS))
        print()
        table("by-hand", [100, 1_000, 10_000, 100_000], ["folded", "made"])
