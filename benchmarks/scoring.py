"""What scores with their intervals cost: time on one core, and memory beyond the tables themselves.

    python benchmarks/scoring.py

Random decisions, true labels and probabilities in chunks of 10,000 documents or fewer, as a model would give them. A
document has a handful of labels; its true labels include their ancestors, those it was given do ("consistent") or need
not ("raw"). Each row is a process of its own. Making the tables is not counted.
"""

import json
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin import Taxonomy
from hitin.metrics import Tally
from hitin.taxonomy.levels import with_ancestors
from measuring import measured, peak_kilobytes

Table = NDArray[np.bool_]
CELLS = 1 << 23  # of a chunk, at most
RESAMPLES = 1_000
ROWS = [
    (100_000, 200, "consistent"),
    (1_000_000, 200, "consistent"),
    (1_000_000, 200, "raw"),
    (100_000, 3_000, "consistent"),
    (100_000, 3_000, "raw"),
    (10_000, 47_000, "consistent"),
]


def taxonomy_of(labels: int) -> Taxonomy:
    """Ten children below each label."""
    return Taxonomy.from_edges([(str(child // 10), str(child)) for child in range(1, labels)], labels=["0"])


def scattered(rng: np.random.Generator, documents: int, labels: int) -> Table:
    """A table with three labels a document."""
    table = np.zeros((documents, labels), dtype=np.bool_)
    table[np.arange(documents)[:, None], rng.integers(0, labels, (documents, 3))] = True
    return table


def chunks(documents: int, taxonomy: Taxonomy, kind: str) -> Iterator[tuple[Table, Table, NDArray[Any]]]:
    """Given, true and probable labels."""
    rng, labels = np.random.default_rng(0), len(taxonomy)
    rows = min(10_000, CELLS // labels)
    for start in range(0, documents, rows):
        count = min(rows, documents - start)
        leaves = scattered(rng, count, labels)
        given = np.where(rng.random((count, 1)) < 0.6, leaves, scattered(rng, count, labels))
        closed = given if kind == "raw" else with_ancestors(given, taxonomy)
        yield closed, with_ancestors(leaves, taxonomy), rng.random((count, labels), dtype=np.float32)


def measure(documents: str, labels: str, kind: str) -> None:
    """In a process of its own."""
    taxonomy, seconds = taxonomy_of(int(labels)), 0.0
    for _ in chunks(min(int(documents), 20_000), taxonomy, kind):  # so that memory for the tables is not counted
        pass
    before = peak_kilobytes()
    tally = Tally(taxonomy)
    for given, truth, probabilities in chunks(int(documents), taxonomy, kind):
        start = time.process_time()
        tally.add(given, truth, probabilities)
        seconds += time.process_time() - start
    start = time.process_time()
    tally.scores(resamples=RESAMPLES)
    found = {
        "blocks": tally.blocks,
        "adding": seconds,
        "scoring": time.process_time() - start,
        "megabytes": (peak_kilobytes() - before) / 1024,
    }
    print(json.dumps(found))


def main() -> None:
    columns = ("documents", "labels", "decisions", "blocks", "s adding", "s scoring", "MB beyond the tables")
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for documents, labels, kind in ROWS:
        found = measured(__file__, documents, labels, kind)
        print(
            f"| {documents:,} | {labels:,} | {kind} | {found['blocks']:,} | {found['adding']:.1f} | "
            f"{found['scoring']:.1f} | {found['megabytes']:.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
    else:
        main()
