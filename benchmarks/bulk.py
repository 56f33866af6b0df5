"""`hitin predict` on folders: how fast the local engine and Ray answer, and whether memory stays bounded.

    python benchmarks/bulk.py --model FOLDER
    python benchmarks/bulk.py --documents 10000 --runtimes torch

Documents are pairs of phrases of ICD-10-CM, no two alike, in Parquet shards of 10,000. Each measurement is a process of
its own; what it and all processes of Ray hold together is looked at twice a second (memory that several share counts
once). The ids of all answers are compared with those of the documents, row by row. Without --model, a small one is
trained on the phrases first.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet

from hitin.bulk import Request, score_folder
from hitin.bulk.ray_engine import Cluster
from hitin.datasets.icd10 import icd10
from hitin.estimator import HierarchicalTextClassifier
from hitin.export.exporting import export_model
from hitin.model_folder import remove_tree
from hitin.processor import cores
from measuring import measured, peak_kilobytes
from reporting import Report, begun

SHARD = 10_000  # documents
MARK = "HITIN_BENCHMARK"
EVERY = 0.5  # seconds between looks at memory
LOCAL = "local"


def write_documents(folder: Path, documents: int, seed: int) -> None:
    """Pairs of phrases, each pair once."""
    phrases = sorted({document.text for document in icd10().train})
    pairs = len(phrases) ** 2
    step = next(number for number in range(pairs * 5 // 13, pairs) if math.gcd(number, pairs) == 1)
    folder.mkdir(parents=True)
    for start in range(0, documents, SHARD):
        rows = range(start, min(start + SHARD, documents))
        chosen = [divmod((seed + row * step) % pairs, len(phrases)) for row in rows]
        texts = [f"{phrases[first]}; {phrases[second]}" for first, second in chosen]
        table = arrow.table({"id": [str(row) for row in rows], "text": texts})
        parquet.write_table(table, folder / f"{start // SHARD:05}.parquet")


def answered_once(folder: Path, out: Path) -> int:
    """How many rows of answers stand where their documents do."""
    right = 0
    for file in sorted(folder.glob("*.parquet")):
        wanted, found = (parquet.read_table(place / file.name, columns=["id"])["id"] for place in (folder, out))
        if len(wanted) == len(found):
            right += sum(a == b for a, b in zip(wanted.to_pylist(), found.to_pylist(), strict=True))
    return right


def trained(folder: Path) -> Path:
    """A small model of ICD-10-CM, and its export."""
    data = icd10()
    texts, labels = [each.text for each in data.train], [each.labels for each in data.train]
    classifier = HierarchicalTextClassifier(data.taxonomy, preset="icd10", epochs=1, device="cpu")
    classifier.fit(texts, labels, out=folder)
    export_model(str(folder), None, int8=False)
    return folder


@dataclass
class Seen:
    """What the processes of a measurement hold together, and the seconds of processors they have taken."""

    most: int = 0
    """In kilobytes."""
    processes: int = 0
    seconds: dict[int, float] = field(default_factory=dict)

    def look(self, mark: str) -> None:
        held = []
        for number in _marked(mark):
            pss = [line.split()[1] for line in _read(number, "smaps_rollup").splitlines() if line.startswith(b"Pss:")]
            held += [int(pss[0])] if pss else []
            times = _read(number, "stat").rpartition(b")")[2].split()
            if times:
                self.seconds[number] = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
        if sum(held) > self.most:
            self.most, self.processes = sum(held), len(held)


@contextmanager
def watched() -> Iterator[Seen]:
    """Looks at the processes that begin within the block, by a mark in their environment."""
    os.environ[MARK] = str(time.time_ns())
    seen, ended = Seen(), threading.Event()

    def look() -> None:
        while not ended.wait(EVERY):
            seen.look(f"{MARK}={os.environ[MARK]}")

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def _marked(mark: str) -> list[int]:
    processes = (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())
    return [number for number in processes if mark.encode() in _read(number, "environ")]


def _read(process: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{process}/{name}").read_bytes()
    except OSError:  # it has ended
        return b""


def measure(model: str, folder: str, out: str, engine: Any, runtime: str, workers: int, device: str) -> dict[str, Any]:
    """In a process of its own."""
    cluster = None if engine == LOCAL else Cluster(workers=workers or None)
    request = Request(model, runtime=runtime, device=device)
    found = score_folder(request, [folder], out, engine=engine, cluster=cluster)
    assert not found.failed, found.failed[0].error
    return {"rows": found.rows, "seconds": found.seconds, "driver": peak_kilobytes()}


def table(report: Report, arguments: argparse.Namespace, model: Path) -> None:
    """Every engine with every runtime at every size."""
    columns = ("documents/s", "s", "MB of the driver", "MB of all processes", "processes", "answered once, in order")
    report.header("runtime", "engine", "workers", "documents", *columns)
    for documents in arguments.documents:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary, "in")
            write_documents(folder, documents, arguments.seed)
            for runtime in arguments.runtimes:
                for engine, workers in ((LOCAL, 0), *(("ray", each) for each in arguments.workers)):
                    _row(report, arguments, model, folder, runtime, engine, workers)


def _row(
    report: Report, arguments: argparse.Namespace, model: Path, folder: Path, runtime: str, engine: str, workers: int
) -> None:
    out = folder.with_name("out")
    remove_tree(out)
    before = sum(os.times()[2:4])
    asked = json.dumps([str(model), str(folder), str(out), engine, runtime, workers, arguments.device])
    with watched() as seen:
        found = measured(__file__, asked)
    # what Ray's processes take is no child's time, but ours it is
    report.others.own -= max(0.0, sum(seen.seconds.values()) - (sum(os.times()[2:4]) - before))
    once = answered_once(folder, out)
    report.row(
        runtime,
        engine,
        workers or "-",
        f"{found['rows']:,}",
        f"{found['rows'] / found['seconds']:,.0f}",
        f"{found['seconds']:,.0f}",
        f"{found['driver'] // 1024:,}",
        f"{seen.most // 1024:,}",
        seen.processes,
        f"{once:,}",
    )


def main(given: list[str]) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    parser.add_argument("--model", type=Path, help="a folder; else one is trained")
    parser.add_argument("--documents", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--runtimes", nargs="+", default=["torch", "onnx"])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, cores()], help="of Ray")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    parser.add_argument("--out", type=Path, help="a folder for the table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--measure", help=argparse.SUPPRESS)  # what a process of its own has to do
    arguments = parser.parse_args(given)
    if arguments.measure:
        print(json.dumps(measure(*json.loads(arguments.measure))))
        return
    report = begun("bulk", "A folder of documents to a folder of answers", arguments, given)
    with tempfile.TemporaryDirectory() as temporary:
        model = arguments.model or trained(Path(temporary) / "model")
        loaded = HierarchicalTextClassifier.load(model, device="cpu").model_
        what = f"{loaded.run.method_name} on {loaded.run.encoder_name}, {len(loaded.taxonomy):,} labels"
        report.say(
            f"{what}; documents of two phrases, shards of {SHARD:,}. "
            "Seconds are those after the driver has loaded the model; the start of Ray and of its workers counts.\n"
        )
        table(report, arguments, model)
    report.close()


if __name__ == "__main__":
    main(sys.argv[1:])
