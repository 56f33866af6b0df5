"""What a comparison has come to so far: the finished cells as rows of tables, each compared with the best."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, Literal

from hitin.compare.cells import Cell, DataSet, Plan, Row, Table
from hitin.compare.published import ABLATION, PublishedTable, published_table
from hitin.compare.resampling import ResampledScores
from hitin.compare.statistics import METRICS, RESAMPLES, Comparison, compared, corrected

Way = Literal["tuned", "half", "per_metric"]
Part = Literal["main", "ablation"]
State = Literal["finished", "failed", "not run"]

WAYS: tuple[Way, ...] = ("tuned", "half", "per_metric")
MAIN_WAY: Way = "tuned"
COSTS = ("trainable_parameters", "training_seconds", "peak_memory_bytes", "documents_per_second")


@dataclass(frozen=True)
class Value:
    """The mean over seeds, and the sample deviation where there are several."""

    mean: float
    deviation: float | None = None
    seeds: int = 1

    @classmethod
    def of(cls, values: Sequence[float]) -> "Value":
        return cls(fmean(values), stdev(values) if len(values) > 1 else None, len(values))


@dataclass(frozen=True)
class Entry:
    """A row on a data set: the results of its seeds, as far as they are finished."""

    seeds: tuple[int, ...]
    """The finished ones."""
    wanted: int
    """How many there will be."""
    results: tuple[Mapping[str, Any], ...]
    folders: tuple[Path, ...]
    failures: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        if self.results:
            return "finished"
        return "failed" if self.failures else "not run"

    def scores(self, way: Way, metric: str) -> list[float]:
        """One a seed; without epochs to choose from, one half is all there is."""
        return [float((result["test"].get(way) or result["test"]["half"])[metric]) for result in self.results]

    def score(self, way: Way, metric: str) -> Value | None:
        return Value.of(self.scores(way, metric)) if self.results else None

    def costs(self, cost: str) -> list[float]:
        """One a seed; no number where it was not measured."""
        return [_cost(result, cost) for result in self.results]

    def cost(self, cost: str) -> Value | None:
        known = [value for value in self.costs(cost) if not math.isnan(value)]
        return Value.of(known) if known else None


def _cost(result: Mapping[str, Any], cost: str) -> float:
    section, name = {
        "trainable_parameters": ("parameters", "trainable"),
        "encoder_parameters": ("parameters", "encoder"),
        "training_seconds": ("training", "seconds"),
        "peak_memory_bytes": ("memory", "peak_bytes"),
        "documents_per_second": ("inference", "documents_per_second"),
    }[cost]
    found = (result.get(section) or {}).get(name)
    return math.nan if found is None else float(found)


@dataclass(frozen=True)
class Line:
    """A row with what it came to on each data set of its table."""

    row: Row
    entries: Mapping[str, Entry]

    def average(self, way: Way, metric: str) -> Value | None:
        """Over the data sets; `None` unless there is a result on each. Its deviation is that of seeds run on all."""
        found = [entry.score(way, metric) for entry in self.entries.values()]
        known = [value.mean for value in found if value is not None]
        if len(known) < len(found):
            return None
        runs = {entry.seeds for entry in self.entries.values()}
        if len(runs) > 1:
            return Value(fmean(known), None, min(map(len, runs)))
        seeds = zip(*(entry.scores(way, metric) for entry in self.entries.values()), strict=True)
        return Value.of([fmean(scores) for scores in seeds])


Place = tuple[str, str, str]
"""The name of a row, that of a data set, and a score."""


@dataclass(frozen=True)
class View:
    """A table as it is shown: the methods, or the ablations with the row that they are of."""

    table: Table
    part: Part
    data: tuple[DataSet, ...]
    lines: tuple[Line, ...]
    published: PublishedTable | None
    best: Mapping[tuple[Way, str, str], str]
    """For a way, a data set and a score: the name of the row with the highest mean, the first of equal ones."""
    comparisons: Mapping[tuple[Way, Place], Comparison]
    """Of every other row with the best, where both are finished."""

    @property
    def title(self) -> str:
        return self.table.title if self.part == "main" else f"{self.table.title}: ablations of HiTIN"

    @property
    def entries(self) -> list[Entry]:
        return [entry for line in self.lines for entry in line.entries.values()]

    def row_title(self, line: Line) -> str:
        """Beside rows with other heights, the row that they change says its own."""
        is_base = self.part == "ablation" and line.row.kind == "main"
        if is_base and any(each.row.kind == "height" for each in self.lines):
            return f"{line.row.title} (K = {line.row.run.method.height})"
        return line.row.title

    def line(self, name: str) -> Line:
        return next(line for line in self.lines if line.row.name == name)

    def comparison(self, way: Way, row: str, data: str, metric: str) -> Comparison | None:
        return self.comparisons.get((way, (row, data, metric)))


@dataclass(frozen=True)
class Results:
    """All tables of a comparison, and where its results come from."""

    plan: Plan
    folder: Path
    views: tuple[View, ...]
    cells: tuple[Cell, ...]
    """Each once, however many tables it stands in."""
    finished: tuple[Mapping[str, Any], ...]
    resamples: int


def gather(plan: Plan, cells: Iterable[Cell], folder: Path, *, resamples: int = RESAMPLES) -> Results:
    """Read what is finished, and compare it."""
    once = {cell.folder: cell for cell in cells}
    scores = ResampledScores(folder, resamples=resamples)
    entries = _Entries(plan, once.values())
    views = [_view(plan, table, part, entries, scores) for table in plan.tables for part in _parts(table)]
    finished = tuple(result for cell in once.values() if (result := cell.result()) is not None)
    return Results(plan, folder, tuple(views), tuple(once.values()), finished, resamples)


def _parts(table: Table) -> tuple[Part, ...]:
    return ("main", "ablation") if any(row.kind != "main" for row in table.rows) else ("main",)


class _Entries:
    """Finds the cells of a row. They are known by what they run, since another table may call them otherwise."""

    def __init__(self, plan: Plan, cells: Iterable[Cell]) -> None:
        self.plan = plan
        self.cells = {(cell.data, cell.row.text, cell.seed): cell for cell in cells}

    def of(self, row: Row, data: str) -> Entry:
        seeds = self.plan.seeds(row, data)
        cells = [cell for seed in seeds if (cell := self.cells.get((data, row.text, seed)))]
        found = [(cell, cell.result()) for cell in cells]
        done = [(cell, result) for cell, result in found if result is not None]
        failures = [failure for cell, result in found if result is None and (failure := cell.failure()) is not None]
        return Entry(
            seeds=tuple(cell.seed for cell, _ in done),
            wanted=len(seeds),
            results=tuple(result for _, result in done),
            folders=tuple(cell.folder for cell, _ in done),
            failures=tuple(str(failure.get("message", "")) for failure in failures),
        )


def _view(plan: Plan, table: Table, part: Part, entries: _Entries, scores: ResampledScores) -> View:
    data = tuple(plan.data_set(name) for name in table.data)
    lines = [Line(row, {each.name: entries.of(row, each.name) for each in data}) for row in _rows(table, part)]
    best, found = dict[tuple[Way, str, str], str](), dict[tuple[Way, Place], Comparison]()
    for way in WAYS:
        leaders = _leaders(lines, way, table.data)
        best |= {(way, *column): leader.row.name for column, leader in leaders.items()}
        compared_ones = corrected(dict(_comparisons(lines, way, leaders, scores)))  # a family for each table and way
        found |= {(way, place): comparison for place, comparison in compared_ones.items()}
    return View(table, part, data, tuple(lines), _published(table, part), best, found)


def _rows(table: Table, part: Part) -> list[Row]:
    """The ablations stand with the row that they change."""
    if part == "main":
        return [row for row in table.rows if row.kind == "main"]
    changed = [row for row in table.rows if row.kind == "main" and row.name == "hitin"]
    return [*changed, *(row for row in table.rows if row.kind != "main")]


def _published(table: Table, part: Part) -> PublishedTable | None:
    """The paper has ablations with TextRCNN only."""
    if table.published is None or (part == "ablation" and table.published != "textrcnn"):
        return None
    return published_table(table.published if part == "main" else ABLATION)


def _leaders(lines: Iterable[Line], way: Way, data: Iterable[str]) -> dict[tuple[str, str], Line]:
    """For each data set and score the row with the highest mean."""
    found = {}
    for name in data:
        for metric in METRICS:
            known = [(value.mean, line) for line in lines if (value := line.entries[name].score(way, metric))]
            if known:
                found[name, metric] = max(known, key=lambda pair: pair[0])[1]
    return found


def _comparisons(
    lines: Iterable[Line], way: Way, leaders: Mapping[tuple[str, str], Line], scores: ResampledScores
) -> Iterator[tuple[Place, Comparison]]:
    """Every finished row with the best of its column."""
    for line in lines:
        for (data, metric), leader in leaders.items():
            found = None if line is leader else compared_lines(line, leader, data, way, metric, scores)
            if found:
                yield (line.row.name, data, metric), found


def compared_lines(
    line: Line, other: Line, data: str, way: Way, metric: str, scores: ResampledScores
) -> Comparison | None:
    """A row with another one on a data set, by a score; `None` unless both are finished."""
    both = [each.entries[data] for each in (line, other)]
    mine, theirs = (entry.score(way, metric) for entry in both)
    if not mine or not theirs:
        return None
    drawn, their_drawn = ([scores.of(data, folder, way, metric) for folder in entry.folders] for entry in both)
    return compared(drawn, their_drawn, (mine.mean, theirs.mean))
