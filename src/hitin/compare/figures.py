"""The figures of a comparison: F1 against parameters and against the height K, and what a method costs, as bars."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from hitin.compare.cells import DataSet
from hitin.compare.drawing import Axes, Bar, Point, bars, curve, scatter
from hitin.compare.results import MAIN_WAY, Line, Value, View
from hitin.compare.sentences import SUBJECT
from hitin.compare.statistics import METRICS
from hitin.compare.tables import SCORE_TITLES
from hitin.compare.words import amount, percent, short_number
from hitin.errors import counted

_COST_FIGURES = {
    "trainable_parameters": "Trainable parameters",
    "training_seconds": "Training time",
    "peak_memory_bytes": "Peak memory",
    "documents_per_second": "Documents labelled a second",
}
_SPLIT = "Dark: the text encoder; light: the rest."
_UNSPLIT = " Grey: not measured apart."


@dataclass(frozen=True)
class Figure:
    """A picture with its title and what is to be said of it."""

    name: str
    """Among those of a table on a data set."""
    title: str
    about: str
    svg: str


def figures(view: View, data: DataSet) -> Iterator[Figure]:
    """Those that the results of a table on a data set can fill; two rows at least make a figure."""
    if view.part == "ablation":
        yield from _by_height(view, data)
        return
    yield from _against_parameters(view, data)
    for cost, title in _COST_FIGURES.items():
        yield from _cost_bars(view, data, cost, title)


def _against_parameters(view: View, data: DataSet) -> Iterator[Figure]:
    """As figure 1 of the paper."""
    for metric in METRICS:
        points = [
            _point(line, data, metric, parameters.mean, f"{parameters.mean:,.0f} parameters")
            for line in view.lines
            if (parameters := line.entries[data.name].cost("trainable_parameters"))
        ]
        if len(points) > 1:
            title = f"{data.title}: {SCORE_TITLES[metric]} against trainable parameters"
            axes = Axes("Trainable parameters (logarithmic)", f"{SCORE_TITLES[metric]}, %", is_log=True)
            about = _deviations(points)
            yield Figure(f"{metric}-parameters", title, about, scatter(title, points, axes, _powers(points)))


def _powers(points: list[Point]) -> list[tuple[float, str]]:
    """Powers of ten from below the points to above them; where these are few, twice and five times each, too."""
    low, high = (max(1.0, end(point.x for point in points)) for end in (min, max))
    steps = (1, 2, 5) if high < 30 * low else (1,)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 2)
    values = [step * 10.0**power for power in powers for step in steps]
    first, last = max(value for value in values if value <= low), min(value for value in values if value >= high)
    return [(value, short_number(value)) for value in values if first <= value <= last]


def _by_height(view: View, data: DataSet) -> Iterator[Figure]:
    """As figure 3 of the paper."""
    lines = [line for line in view.lines if line.row.kind != "ablation" and line.entries[data.name].results]
    lines.sort(key=lambda line: int(line.row.run.method.height))
    for metric in METRICS:
        heights = [int(line.row.run.method.height) for line in lines]
        points = [
            _point(line, data, metric, height, f"K = {height}") for line, height in zip(lines, heights, strict=True)
        ]
        if len(points) > 1:
            title = f"{data.title}: {SCORE_TITLES[metric]} against the height K of the coding tree"
            axes = Axes("Height K of the coding tree", f"{SCORE_TITLES[metric]}, %")
            texts = [(float(height), str(height)) for height in sorted(set(heights))]
            yield Figure(f"{metric}-height", title, _deviations(points), curve(title, points, axes, texts))


def _point(line: Line, data: DataSet, metric: str, x: float, place: str) -> Point:
    score = line.entries[data.name].score(MAIN_WAY, metric)
    value = score or Value(math.nan)
    hint = f"{SCORE_TITLES[metric]} {percent(value.mean, value.deviation)} ({counted(value.seeds, 'seed')}), {place}"
    deviation = None if value.deviation is None else 100 * value.deviation
    return Point(line.row.title, x, 100 * value.mean, deviation, hint, _is_subject(line))


def _deviations(points: list[Point]) -> str:
    if any(point.deviation is not None for point in points):
        return "Thin lines: the deviation over seeds."
    return "1 seed each."


def _cost_bars(view: View, data: DataSet, cost: str, title: str) -> Iterator[Figure]:
    """As figure 4 of the paper, and the same of time and memory."""
    rows = []
    for line in view.lines:
        value, encoder = (line.entries[data.name].cost(name) for name in (cost, "encoder_parameters"))
        if value:
            is_split = cost == "trainable_parameters" and encoder is not None
            parts = (encoder.mean, value.mean - encoder.mean) if is_split and encoder else (value.mean,)
            text = amount(cost, value.mean)
            rows.append(Bar(line.row.title, parts, text, _cost_hint(cost, value, parts), _is_subject(line)))
    if len(rows) > 1:
        split = [len(row.parts) > 1 for row in rows]
        about = (_SPLIT if any(split) else "") + (_UNSPLIT if any(split) and not all(split) else "")
        full = f"{data.title}: {title[0].lower()}{title[1:]}"
        yield Figure(cost, full, about, bars(full, rows))


def _cost_hint(cost: str, value: Value, parts: tuple[float, ...]) -> str:
    split = f" ({parts[0]:,.0f} of the text encoder, {parts[1]:,.0f} of the rest)" if len(parts) > 1 else ""
    told = f"{value.mean:,.0f} parameters" if cost == "trainable_parameters" else amount(cost, value.mean)
    return f"{told}{split}"


def _is_subject(line: Line) -> bool:
    return line.row.run.method_name == SUBJECT
