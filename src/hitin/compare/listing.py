"""Every number of a comparison as a line of a CSV file: for figures and statistics of one's own."""

import math
from collections.abc import Iterator, Sequence
from itertools import chain

from hitin.cells import csv_line
from hitin.compare.results import COSTS, WAYS, Entry, Line, Results, Value, View, Way
from hitin.compare.statistics import METRICS

COLUMNS = (
    "table",
    "part",
    "way",
    "data",
    "row",
    "title",
    "method",
    "encoder",
    "height",
    "kind",
    "state",
    "seed",
    "metric",
    "value",
    "deviation",
    "seeds",
    "seeds_wanted",
    "is_best",
    "difference",
    "low",
    "high",
    "p",
    "p_holm",
)
MEAN = "mean"
AVERAGE = "average"
PUBLISHED = "published"

Cells = dict[str, object]


def to_csv(results: Results) -> str:
    """A line for each table, way, data set, row, score or cost: of every seed, and of their mean."""
    lines = (line for view in results.views for line in _view_lines(view))
    rows = ([_shown(line.get(name)) for name in COLUMNS] for line in lines)
    return "".join(map(csv_line, chain([COLUMNS], rows)))


def _shown(value: object) -> object:
    """Nothing for what is not known, words for yes and no."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return repr(value) if isinstance(value, float) else value


def _view_lines(view: View) -> Iterator[Cells]:
    base: Cells = {"table": view.table.name, "part": view.part}
    for line in view.lines:
        row = base | _row_cells(line)
        for data, entry in line.entries.items():
            for way in WAYS:
                yield from _scores(view, line, data, way, row)
            yield from _costs(entry, row | {"data": data, "state": entry.state, "seeds_wanted": entry.wanted})
        if len(view.data) > 1:
            yield from _averages(line, row)
    yield from _published(view, base)


def _row_cells(line: Line) -> Cells:
    row = line.row
    return {
        "row": row.name,
        "title": row.title,
        "method": row.run.method_name,
        "encoder": row.encoder,
        "height": getattr(row.run.method, "height", None),
        "kind": row.kind,
    }


def _scores(view: View, line: Line, data: str, way: Way, row: Cells) -> Iterator[Cells]:
    entry = line.entries[data]
    for metric in METRICS:
        found = row | {"way": way, "data": data, "metric": metric, "state": entry.state, "seeds_wanted": entry.wanted}
        comparison = view.comparison(way, line.row.name, data, metric)
        is_best = view.best.get((way, data, metric)) == line.row.name if entry.results else None
        beside: Cells = {"is_best": is_best}
        if comparison:
            beside |= {"difference": comparison.difference, "low": comparison.low, "high": comparison.high}
            beside |= {"p": comparison.p, "p_holm": comparison.corrected}
        yield from _seeds_and_mean(entry.seeds, entry.scores(way, metric), entry.score(way, metric), found, beside)


def _costs(entry: Entry, row: Cells) -> Iterator[Cells]:
    for cost in (*COSTS, "encoder_parameters"):
        value = entry.cost(cost)
        if value is not None or cost in COSTS:
            yield from _seeds_and_mean(entry.seeds, entry.costs(cost), value, row | {"metric": cost}, {})


def _seeds_and_mean(
    seeds: Sequence[int], values: Sequence[float], mean: Value | None, found: Cells, beside: Cells
) -> Iterator[Cells]:
    for seed, value in zip(seeds, values, strict=True):
        yield found | {"seed": seed, "value": value}
    yield found | beside | _value_cells(mean)


def _value_cells(value: Value | None) -> Cells:
    if value is None:
        return {"seed": MEAN, "seeds": 0}
    return {"seed": MEAN, "value": value.mean, "deviation": value.deviation, "seeds": value.seeds}


def _averages(line: Line, row: Cells) -> Iterator[Cells]:
    for way in WAYS:
        for metric in METRICS:
            value = line.average(way, metric)
            state = "not complete" if value is None else "finished"
            yield row | {"way": way, "data": AVERAGE, "metric": metric, "state": state} | _value_cells(value)


def _published(view: View, base: Cells) -> Iterator[Cells]:
    """The paper's numbers for the data sets that are its own."""
    for row in view.published.rows if view.published else ():
        found = base | {"way": PUBLISHED, "row": row.title, "title": row.title, "kind": PUBLISHED, "state": PUBLISHED}
        for data in view.data:
            for metric in METRICS:
                score = row.score(data.published, metric)
                if score is not None:
                    yield found | {"method": row.method, "data": data.name, "metric": metric, "value": score}
