"""The search for how HiTIN is best trained: every try of a file is trained and scored on validation documents alone.

    python benchmarks/recipe.py benchmarks/recipe.toml --out runs/recipe [--only 'minilm/*'] [--at-once 3]

Thresholds and policies are chosen on one half of the validation documents and scored on the other, both ways round, so
that a try is not scored on what it was tuned on. Test documents are not opened. A try that has its result in the folder
is not trained again; the table of all results is printed in the end.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from hitin.compare.measuring import machine
from hitin.compare.words import percent
from hitin.decisions import DecisionSettings, tune
from hitin.devices import choose_device
from hitin.estimator import HierarchicalTextClassifier
from hitin.metrics import Counts, macro_f1, micro_f1
from hitin.writing import write_text
from real_data import split

PATHS = ("encoder", "vectors")


@dataclass(frozen=True)
class Try:
    group: str
    data: str
    chosen: dict[str, Any]
    """What is not as the group has it."""
    settings: dict[str, Any]
    folder: Path
    """That of the data sets, and of vectors and transformers."""

    @property
    def name(self) -> str:
        return f"{self.group}/{self.data}"

    @property
    def key(self) -> str:
        """The same for the same settings, whatever the folder is called."""
        return blake2b(json.dumps([self.data, self.settings], sort_keys=True).encode(), digest_size=6).hexdigest()


def tries(file: Path) -> Iterator[Try]:
    """Each group of the file: `settings` of all its tries, and of each try what is its own."""
    written = tomllib.loads(file.read_text(encoding="utf-8"))
    folder = file.parent / written["folder"]
    for group, given in written["groups"].items():
        for one in given["tries"]:
            chosen = {name: value for name, value in one.items() if name != "data"}
            for data in [one["data"]] if isinstance(one["data"], str) else one["data"]:
                yield Try(group, data, chosen, given["settings"] | chosen, folder)


def measure(one: Try) -> dict[str, Any]:
    """Train once; F1 over both halves of the validation documents, each decided as the other says."""
    beside = {
        name: str(one.folder / one.settings[name])
        for name in PATHS
        if (one.folder / str(one.settings.get(name))).exists()
    }
    data = one.folder / one.data
    classifier = HierarchicalTextClassifier(data / "taxonomy.tsv", **one.settings | beside)
    with tempfile.TemporaryDirectory() as folder:
        classifier.fit(*split(data, "train"), split(data, "val"), out=folder)
    found = classifier.validation_
    given = np.zeros_like(found.truth)
    first = np.arange(len(found.truth)) % 2 == 0
    for tuned, scored in ((first, ~first), (~first, first)):
        decisions = tune(found.logits[tuned], found.truth[tuned], classifier.taxonomy_, DecisionSettings()).decisions
        given[scored] = decisions.decide(found.logits[scored], classifier.taxonomy_)
    history, counts = classifier.history_, Counts.of(given, found.truth)
    return {
        "data": one.data,
        "settings": one.settings,
        "crossed": [micro_f1(counts), macro_f1(counts)],
        "half": [history.chosen["micro_f1"], history.chosen["macro_f1"]],
        "epoch": history.chosen["epoch"],
        "seconds": round(history.seconds, 1),
        "device": machine(choose_device("auto"))["device"],
    }


def trained(one: Try, out: Path, file: Path) -> None:
    """In a process of its own, unless it is there already."""
    path = out / f"{one.key}.json"
    if path.exists():
        return
    started = time.monotonic()
    command = [sys.executable, __file__, str(file), "--measure", one.key]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"{one.name} {told(one)} failed:\n{done.stderr[-2000:]}", file=sys.stderr, flush=True)
        return
    found = done.stdout.splitlines()[-1]
    write_text(path, [found + "\n"])
    scores, seconds = both(json.loads(found)["crossed"]), time.monotonic() - started
    print(f"{one.name} {told(one)}: {scores}, {seconds:.0f} s", file=sys.stderr, flush=True)


def both(scores: Sequence[float]) -> str:
    """Micro and macro F1."""
    return " / ".join(map(percent, scores))


def told(one: Try) -> str:
    return " ".join(f"{name}={value}" for name, value in one.chosen.items()) or "as it is"


def main(given: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/recipe"))
    parser.add_argument("--only", default="*", help="such as minilm/*")
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args(given)
    wanted = list(tries(arguments.file))
    if arguments.measure:
        print(json.dumps(measure(next(one for one in wanted if one.key == arguments.measure))))
        return
    arguments.out.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(arguments.at_once) as pool:
        some = [one for one in wanted if fnmatch(one.name, arguments.only)]
        list(pool.map(lambda one: trained(one, arguments.out, arguments.file), some))
    print("| | settings | micro / macro | above 0.5 | seconds |\n|---|---|---|---|---|")
    for one in wanted:
        path = arguments.out / f"{one.key}.json"
        if path.exists():
            found = json.loads(path.read_text())
            crossed, half = (both(found[way]) for way in ("crossed", "half"))
            print(f"| {one.name} | `{told(one)}` | {crossed} | {half} | {found['seconds']:.0f} |")


if __name__ == "__main__":
    main()
