"""How long coding trees take to build, how much memory, and the entropy they reach.

    python benchmarks/coding_tree.py                      generated trees
    python benchmarks/coding_tree.py FILE [FILE ...]      only these taxonomies, by every method

Each row is a process of its own, on one core: the time is the median of three calls of `coding_tree`, fewer where they
take seconds, after one on a small graph, which loads what numba compiled. Memory is the peak beyond an interpreter with
the library loaded and, for numba, its compiled code; it counts the graph itself, whose making is timed apart. Of a
file's rows the time is that of the second of two calls.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from hitin import Taxonomy
from hitin.coding_tree import Graph, coding_tree
from measuring import measured, peak_kilobytes

Ids = NDArray[np.int64]
_ENOUGH = 2.0  # seconds after which no further call is made


def label_like(count: int) -> Ids:
    """Ten children each."""
    return np.arange(count - 1) // 10


def random_tree(count: int) -> Ids:
    """Each vertex under any one before it."""
    return (np.random.default_rng(0).random(count - 1) * np.arange(1, count)).astype(np.int64)


def preferential(count: int) -> Ids:
    """Each vertex under one before it that is the likelier, the more it has already."""
    places = (np.random.default_rng(0).random(count - 1) * 2 * np.arange(count - 1)).astype(np.int64).tolist()
    ends, parents = [0], [0]
    for vertex in range(1, count - 1):
        ends += [parents[-1], vertex]
        parents.append(ends[1 + places[vertex]])
    return np.array(parents)


def star(count: int) -> Ids:
    return np.zeros(count - 1, dtype=np.int64)


SHAPES: dict[str, Callable[[int], Ids]] = {
    "label-like": label_like,
    "random": random_tree,
    "preferential": preferential,
    "star": star,
}


def measure(shape: str, count: str, height: str, compiled: str) -> None:
    """In a process of its own: build the tree, print seconds, megabytes and entropy."""
    fast = compiled == "numba"
    parents = SHAPES[shape](int(count))
    edges = np.stack([parents, np.arange(1, int(count))], axis=1)
    coding_tree(Graph(3, [(0, 1), (1, 2)]), int(height), compiled=fast)
    before = peak_kilobytes()
    start = time.perf_counter()
    graph = Graph(int(count), edges)
    graph_seconds = time.perf_counter() - start
    seconds: list[float] = []
    processor: list[float] = []
    while len(seconds) < 3 and sum(seconds) < _ENOUGH:
        start, started = time.perf_counter(), time.process_time()
        tree = coding_tree(graph, int(height), compiled=fast)
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - started)
    found = {
        "seconds": median(seconds),
        "processor_seconds": median(processor),  # what it needs, whatever else the machine does
        "graph_seconds": graph_seconds,
        "megabytes": (peak_kilobytes() - before) / 1024,
        "entropy": tree.entropy,
        "flat_entropy": tree.flat_entropy,
    }
    print(json.dumps(found))


def header(*columns: str) -> None:
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")


def generated() -> None:
    header("tree", "vertices", "K", "numba", "seconds", "of the graph", "MB", "entropy", "H^1")
    for shape in SHAPES:
        for count in (1_000, 10_000, 100_000, 1_000_000):
            for height, fast in ((2, False), (2, True), (4, True)):
                found = measured(__file__, shape, count, height, "numba" if fast else "plain")
                print(
                    f"| {shape} | {count:,} | {height} | {'yes' if fast else 'no'} | {found['seconds']:.4f} | "
                    f"{found['graph_seconds']:.4f} | {found['megabytes']:.0f} | {found['entropy']:.4f} | "
                    f"{found['flat_entropy']:.4f} |",
                    flush=True,
                )


def files(names: list[str]) -> None:
    header("taxonomy", "labels", "K", "method", "entropy", "H^1", "nodes a layer", "ms")
    for name in names:
        taxonomy, title = Taxonomy.read(name), Path(name).name.partition(".")[0]
        for height in (2, 3, 4):
            for method in ("optimal", "paper", "taxonomy", "random"):
                coding_tree(taxonomy, height, method)
                start = time.perf_counter()
                tree = coding_tree(taxonomy, height, method)
                seconds = time.perf_counter() - start
                sizes = " > ".join(f"{size:,}" for size in tree.layer_sizes)
                print(
                    f"| {title} | {len(taxonomy):,} | {height} | {method} | {tree.entropy:.4f} | "
                    f"{tree.flat_entropy:.4f} | {sizes} | {1000 * seconds:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
    elif sys.argv[1:]:
        files(sys.argv[1:])
    else:
        generated()
