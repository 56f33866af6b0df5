"""How long taxonomies and documents take to read, and how much memory.

    python benchmarks/reading.py                      generated data only
    python benchmarks/reading.py FILE [FILE ...]      taxonomy files too

Each row is a process of its own; memory is its peak less that of an interpreter with `hitin` imported.
"""

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from measuring import measured, peak_kilobytes

WORDS = ["liver", "stone", "fracture", "of", "left", "acute", "chronic", "eye", "skin", "pain", "heart", "knee"]


def tree(path: Path, labels: int) -> None:
    """A label-like tree: most parents have about ten children."""
    with path.open("w") as out:
        for label in range(1, labels):
            out.write(f"label {(label - 1) // 10}\tlabel {label}\n")


def paths(path: Path, labels: int) -> None:
    """The same tree, as one path a line."""

    def ancestry(label: int) -> list[str]:
        names = []
        while label:
            names.append(f"label {label}")
            label = (label - 1) // 10
        return ["label 0", *reversed(names)]

    with path.open("w") as out:
        for label in range(labels):
            out.write(" > ".join(ancestry(label)) + "\n")


def chain(path: Path, labels: int) -> None:
    with path.open("w") as out:
        for label in range(1, labels):
            out.write(f"label {label - 1}\tlabel {label}\n")


def star(path: Path, labels: int) -> None:
    with path.open("w") as out:
        out.write("Root")
        for label in range(labels):
            out.write(f"\tlabel {label}")


def short_documents(path: Path, count: int) -> None:
    """Documents of eight words, each with a leaf of a tree of 1,000 labels and one in a hundred a repetition."""
    tree(path.with_suffix(".tsv"), 1000)
    chance = random.Random(0)
    with path.open("w") as out:
        for number in range(count):
            words = [*chance.choices(WORDS, k=7), str(number)] if number % 100 else ["a", "text", "like", "others"]
            label = f"label {chance.randrange(100, 1000)}"
            out.write(json.dumps({"text": " ".join(words), "label": [label]}) + "\n")


def check_taxonomy(path: str) -> str:
    from hitin import check

    facts = check(path).taxonomy
    return f"{facts.labels:,} labels, {facts.depth:,} levels, {facts.several_parents:,} with several parents"


def check_documents(path: str) -> str:
    from hitin import check

    found = check(Path(path).with_suffix(".tsv"), [path])
    return f"{found.splits[0].documents:,} documents, {found.splits[0].duplicates:,} duplicates"


JOBS: dict[str, Callable[[str], str]] = {"taxonomy": check_taxonomy, "documents": check_documents}


def measure(job: str, path: str) -> None:
    """In a process of its own: do the job, print seconds, megabytes and what came out."""
    import_module("hitin.doctor")  # part of the interpreter that time and memory are counted beyond
    before = peak_kilobytes()
    start = time.perf_counter()
    result = JOBS[job](path)
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "megabytes": (peak_kilobytes() - before) / 1024, "result": result}))


def row(name: str, job: str, path: Path) -> None:
    found = measured(__file__, job, path)
    print(f"| {name} | {found['seconds']:.2f} | {found['megabytes']:.0f} | {found['result']} |", flush=True)


def main() -> None:
    print("| what | seconds | MB | result |\n|---|---|---|---|")
    for file in sys.argv[1:]:
        row(Path(file).name, "taxonomy", Path(file))
    with tempfile.TemporaryDirectory() as folder:
        for name, make, size in (
            ("tree of 1,000,000", tree, 1_000_000),
            ("the same as paths", paths, 1_000_000),
            ("chain of 100,000", chain, 100_000),
            ("chain of 1,000,000", chain, 1_000_000),
            ("star of 1,000,000", star, 1_000_000),
        ):
            path = Path(folder) / "taxonomy.tsv"
            make(path, size)
            row(name, "taxonomy", path)
        for count in (10_000, 100_000, 1_000_000):
            path = Path(folder) / "documents.jsonl"
            short_documents(path, count)
            row(f"hitin check, {count:,} documents", "documents", path)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
    else:
        main()
