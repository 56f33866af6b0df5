"""Comparisons to test with: finished cells written as the engine writes them, without any training."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.compare.cells import Cell, DataSet, Plan, Row, Table, cells_of
from hitin.compare.results import Results, gather
from hitin.metrics import Counts, macro_f1, micro_f1
from hitin.settings import Run
from tests.conftest import REPOSITORY

Decided = NDArray[np.bool_]

LABELS = 12
GPU = {"device": "NVIDIA H200", "threads": 2, "torch": "2.13.0", "hitin": "0.1", "python": "3.11", "platform": "Linux"}


def data_set(name: str, *, title: str | None = None, published: str | None = None) -> DataSet:
    return DataSet(name, title or name, "taxonomy.tsv", ("train.jsonl",), (), ("test.jsonl",), published)


def row(name: str, method: str | None = None, *, seeds: Sequence[int] = (0, 1), **options: Any) -> Row:
    """A row of the main table; `kind` and `title` may be among the options."""
    kind, title = options.pop("kind", "main"), options.pop("title", name)
    return Row(name, title, Run.of(method=method or name, **options), kind, tuple(seeds))


LINEAR, FLAT = row("linear", seeds=(0,)), row("flat")
HITIN = row("hitin", title="HiTIN", height=2)
HEIGHTS = tuple(row(f"height-{k}", "hitin", title=f"K = {k}", kind="height", height=k) for k in (3, 4))
RANDOM = row("random-tree", "hitin", title="random coding tree", kind="ablation", tree="random")

ERRORS = {"linear": 0.2, "flat": 0.101, "hitin": 0.1}
"""Shares of wrong decisions: flat is about as good as HiTIN."""
ONE, TWO = data_set("one", title="One"), data_set("two", title="Two")


def plan(rows: Iterable[Row], data: Iterable[DataSet], *, published: str | None = None, title: str = "bag") -> Plan:
    sets = tuple(data)
    table = Table("bag", title, tuple(each.name for each in sets), tuple(rows), published)
    return Plan(sets, (table,), "compare.toml")


def truth_of(documents: int, *, labels: int = LABELS, seed: int = 0) -> Decided:
    return np.random.default_rng(seed).random((documents, labels)) < 0.3


def guesses(truth: Decided, errors: float, seed: int) -> Decided:
    """Decisions that are wrong in a share of all cells."""
    return np.asarray(truth ^ (np.random.default_rng(seed).random(truth.shape) < errors))


def write_data(folder: Path, name: str, truth: Decided) -> None:
    documents, labels = truth.shape
    facts = {"format": 1, "key": "k", "documents": {"train": 1000, "val": 100, "test": documents}}
    facts |= {"labels": labels, "levels": [3, labels - 3], "held_out": True}
    (folder / "data").mkdir(parents=True, exist_ok=True)
    (folder / "data" / f"{name}.json").write_text(json.dumps(facts))
    np.savez_compressed(folder / "data" / f"{name}.npz", truth=np.packbits(truth, axis=1), labels=np.array(labels))


def write_cell(cell: Cell, truth: Decided, given: Mapping[str, Decided], **changes: Any) -> None:
    """The result of a cell; `given` has `tuned` and `half`, and perhaps `micro_best` and `macro_best`."""
    cell.folder.mkdir(parents=True)
    tables = {name: np.packbits(table, axis=1) for name, table in given.items()}
    arrays: dict[str, Any] = {**tables, "labels": np.array(truth.shape[1])}
    np.savez_compressed(cell.folder / "decisions.npz", **arrays)
    scores = {name: f1s(table, truth) for name, table in given.items()}
    half = scores["half"]
    per_metric = {name: scores.get(f"{name[:5]}_best", half)[name] for name in half}
    result: dict[str, Any] = {
        "format": 1,
        "data": cell.data,
        "row": cell.row.name,
        "seed": cell.seed,
        "run": cell.row.text,
        "parameters": {"trainable": 15_000_000 + 1000 * len(cell.row.name), "all": 16_000_000},
        "training": {"seconds": 81.5 + cell.seed, "epochs": 6},
        "memory": {"peak_bytes": 3 * 2**30, "of": "cuda"},
        "inference": {"documents_per_second": 1234.5, "documents": len(truth)},
        "test": {"tuned": scores["tuned"], "half": half, "per_metric": per_metric},
        "machine": GPU,
        "at_once": 1,
    }
    (cell.folder / "result.json").write_text(json.dumps(result | changes))


def f1s(given: Decided, truth: Decided) -> dict[str, float]:
    counts = Counts.of(given, truth)
    return {"micro_f1": micro_f1(counts), "macro_f1": macro_f1(counts)}


def keys(plan: Plan) -> dict[str, str]:
    return {data.name: "k" for data in plan.data}


def comparison(
    folder: Path, plan: Plan, errors: Mapping[str, float], *, documents: int = 300, without: Iterable[str] = ()
) -> list[Cell]:
    """Cells of a plan, finished with these shares of errors by row; rows in `without` are not run."""
    cells = cells_of(plan, folder, keys(plan))
    truths = {data.name: truth_of(documents, seed=number) for number, data in enumerate(plan.data)}
    for name, truth in truths.items():
        write_data(folder, name, truth)
    for number, cell in enumerate(cells):
        if cell.row.name not in without and not cell.folder.exists():
            truth, share = truths[cell.data], errors.get(cell.row.name, 0.1)
            tuned, half, best = (guesses(truth, share + extra, 100 + number) for extra in (0, 0.02, 0.01))
            write_cell(cell, truth, {"tuned": tuned, "half": half, "micro_best": best})
    return cells


def titled(plan: Plan, title: str) -> Plan:
    """The same with another title of its table and data sets."""
    tables = tuple(replace(table, title=title) for table in plan.tables)
    return replace(plan, tables=tables, data=tuple(replace(data, title=title) for data in plan.data))


def gathered(folder: Path, wanted: Plan, cells: Iterable[Cell]) -> Results:
    return gather(wanted, cells, folder, resamples=200)


def results(folder: Path, wanted: Plan, errors: Mapping[str, float] = ERRORS, without: Iterable[str] = ()) -> Results:
    return gathered(folder, wanted, comparison(folder, wanted, errors, without=without))


def copied(cells: Iterable[Cell], source: Row, target: Row) -> None:
    """The target's cells get the results of the source's."""
    for one, other in zip(*([cell for cell in cells if cell.row is each] for each in (source, target)), strict=True):
        shutil.rmtree(other.folder, ignore_errors=True)
        shutil.copytree(one.folder, other.folder)
        result = json.loads((one.folder / "result.json").read_text())
        (other.folder / "result.json").write_text(json.dumps(result | {"run": target.text}))


def copy_of_studies(folder: Path) -> Path:
    """All studies of the repository with what came of them, in `folder/benchmarks`, which is answered."""
    benchmarks = folder / "benchmarks"
    for part in ("studies", "results/studies"):
        left_out = shutil.ignore_patterns("resampled.npz", "figures")
        shutil.copytree(REPOSITORY / "benchmarks" / part, benchmarks / part, ignore=left_out)
    return benchmarks
