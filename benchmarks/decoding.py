"""How long the best set of labels takes that leaves out no ancestor, on trees and DAGs.

    python benchmarks/decoding.py

Each row is a process of its own, with one thread; time is the processor's, the shortest of three calls of
`best_closed`. Random: a label below one to three of any before it. Layered: of five levels, below one to three of the
level above. Near: below one to three of the thirty before it, hence deep. Likely gains are drawn from N(0, 1), unlikely
ones from N(-0.5, 1): no real scores are as undecided. Real: log-odds of N(-6, 2), and of N(2, 2) for the labels of two
paths a document.
"""

import json
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hitin import Taxonomy
from hitin.decisions.closure import best_closed
from hitin.taxonomy.levels import with_ancestors
from measuring import measured

Generator = np.random.Generator


def tree(labels: int, _: Generator) -> Taxonomy:
    """Ten labels at the top and ten below each."""
    names = [(str(label // 10 - 1) if label >= 10 else None, str(label)) for label in range(labels)]
    return Taxonomy.from_edges(names)


def dag(labels: int, random: Generator, before: Callable[[int], tuple[int, int]]) -> Taxonomy:
    """Each label below one to three of those that `before` allows."""
    edges: list[tuple[str | None, str]] = []
    for label in range(labels):
        low, high = before(label)
        parents = sorted(set(random.integers(low, high, random.integers(1, 4)).tolist())) if low < high else []
        edges += [(str(parent), str(label)) for parent in parents] or [(None, str(label))]
    return Taxonomy.from_edges(edges)


def random_dag(labels: int, random: Generator) -> Taxonomy:
    return dag(labels, random, lambda label: (0, label))


def layered_dag(labels: int, random: Generator) -> Taxonomy:
    size = -(-labels // 5)
    return dag(labels, random, lambda label: (max(label // size - 1, 0) * size, label // size * size))


def near_dag(labels: int, random: Generator) -> Taxonomy:
    return dag(labels, random, lambda label: (max(label - 30, 0), label))


TAXONOMIES = {"tree": tree, "random": random_dag, "layered": layered_dag, "near": near_dag}


def gains(kind: str, documents: int, taxonomy: Taxonomy, random: Generator) -> NDArray[np.float32]:
    shape = (documents, len(taxonomy))
    if kind != "real":
        return random.normal(0 if kind == "likely" else -0.5, 1, shape).astype(np.float32)
    true = np.zeros(shape, dtype=np.bool_)
    true[np.arange(documents)[:, None], random.integers(0, len(taxonomy), (documents, 2))] = True
    return np.where(with_ancestors(true, taxonomy), random.normal(2, 2, shape), random.normal(-6, 2, shape)).astype(
        np.float32
    )


def seconds(kind: str, shape: str, documents: int, labels: int, calls: int = 3) -> tuple[float, float]:
    """The processor's time of the fastest call, and how many labels a document gets."""
    random = np.random.default_rng(0)
    taxonomy = TAXONOMIES[shape](labels, random)
    table = gains(kind, documents, taxonomy, random)
    times = []
    for _ in range(calls):
        start = time.process_time()
        chosen = best_closed(table, taxonomy)
        times.append(time.process_time() - start)
    return min(times), chosen.sum() / documents


def main() -> None:
    print("| taxonomy | documents | labels | gains | seconds | labels chosen a document |\n" + "|---" * 6 + "|")
    for documents, labels in ((1_000, 1_000), (100, 10_000), (10_000, 2_000)):
        for shape in TAXONOMIES:
            for kind in ("real", "likely", "unlikely") if labels == 1_000 else ("real",):
                found = measured(__file__, kind, shape, documents, labels)
                row = (
                    shape,
                    f"{documents:,}",
                    f"{labels:,}",
                    kind,
                    f"{found['seconds']:.3f}",
                    f"{found['chosen']:.1f}",
                )
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        kind, shape, documents, labels = sys.argv[2:]
        taken, chosen = seconds(kind, shape, int(documents), int(labels))
        print(json.dumps({"seconds": taken, "chosen": chosen}))
    else:
        main()
