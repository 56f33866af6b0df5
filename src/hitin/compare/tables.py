"""Results laid out as tables of text, which Markdown, LaTeX and the page write each in its own way."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from hitin.compare.published import AVERAGE, PublishedRow, published_data
from hitin.compare.results import COSTS, WAYS, Entry, Line, Results, Value, View, Way
from hitin.compare.statistics import METRICS, SIGNIFICANT, Comparison
from hitin.compare.words import Condition, amount, condition, p_text, percent
from hitin.errors import counted

FLAT = "flat"
DASH = "–"
DAGGER = "†"
SCORE_TITLES = {"micro_f1": "Micro-F1", "macro_f1": "Macro-F1"}
COST_TITLES = {
    "trainable_parameters": "Parameters",
    "training_seconds": "Training",
    "peak_memory_bytes": "Memory",
    "documents_per_second": "Documents/s",
}
WAY_TITLES: dict[Way, str] = {
    "tuned": "decisions chosen on validation documents",
    "half": "each label above 0.5",
    "per_metric": "above 0.5, the best epoch for each score",
}
_WAY_NOTES: dict[Way, str] = {
    "tuned": "How probabilities become labels was chosen on validation documents, for each row and seed.",
    "half": "Each label with a probability above 0.5 is given, whatever the validation documents say.",
    "per_metric": "Each label above 0.5 is given; micro-F1 is of the epoch with the best micro-F1 on validation "
    "documents, macro-F1 of that with the best macro-F1, as the paper reports them. A row may be two models.",
}
_COST_NOTE = (
    "Means over seeds. Parameters: those that are trained, in millions; of the linear model, the weights it keeps. "
    "Memory: the peak of training and inference, on a GPU that of the GPU, otherwise of the whole process. "
    "Documents/s: from texts to labels."
)


@dataclass(frozen=True)
class GridCell:
    """What stands in a table."""

    text: str = DASH
    order: float | None = None
    """What the column is sorted by."""
    is_best: bool = False
    mark: str = ""
    hint: str = ""
    """What is told of it on demand."""


@dataclass(frozen=True)
class GridRow:
    title: str
    cells: tuple[GridCell, ...]
    is_published: bool = False


@dataclass(frozen=True)
class Grid:
    """A table: columns stand in groups, each with a title (perhaps empty) and how many they are."""

    of: str
    """The title of the comparison's table."""
    subtitle: str
    groups: tuple[tuple[str, int], ...]
    columns: tuple[str, ...]
    rows: tuple[GridRow, ...]
    about: str
    """What the numbers are."""
    notes: tuple[str, ...]
    """How to read them: the same, mostly, for all that is shown of a table."""

    @property
    def title(self) -> str:
        return f"{self.of}: {self.subtitle}"


def grids(view: View, results: Results) -> list[Grid]:
    """All that is shown of a table, in order: its ways, then its costs."""
    return [*(score_grid(view, way, results.resamples) for way in WAYS), cost_grid(view)]


def score_grid(view: View, way: Way, resamples: int) -> Grid:
    """Micro- and macro-F1 of every row on every data set, with the paper's rows below."""
    groups = [(data.title, len(METRICS)) for data in view.data]
    rows = [_score_row(view, line, way) for line in view.lines]
    published = [_published_row(view, row) for row in (view.published.rows if view.published else ())]
    if len(view.data) > 1:
        groups.append(("Average", len(METRICS)))
    columns = [SCORE_TITLES[metric] for _ in groups for metric in METRICS]
    return Grid(
        of=view.title,
        subtitle=WAY_TITLES[way],
        groups=(*groups, ("", 1)),
        columns=(*columns, "Seeds"),
        rows=(*_with_best(rows, max, range(len(columns))), *published),
        about=_WAY_NOTES[way],
        notes=tuple(_score_notes(view, way, resamples)),
    )


def _score_row(view: View, line: Line, way: Way) -> GridRow:
    cells = [
        _score_cell(entry, entry.score(way, metric), view.comparison(way, line.row.name, data, metric))
        for data, entry in line.entries.items()
        for metric in METRICS
    ]
    if len(view.data) > 1:
        cells += [_value_cell(line.average(way, metric)) for metric in METRICS]
    return GridRow(view.row_title(line), (*cells, _seeds_cell(line)))


def _value_cell(value: Value | None, hint: str = "") -> GridCell:
    if value is None:
        return GridCell(hint=hint)
    return GridCell(percent(value.mean, value.deviation), value.mean, hint=hint)


def _score_cell(entry: Entry, value: Value | None, comparison: Comparison | None) -> GridCell:
    if value is None:
        return GridCell(entry.state, hint="; ".join(entry.failures))
    hints = [counted(value.seeds, "seed") if value.seeds == entry.wanted else f"{value.seeds} of {entry.wanted} seeds"]
    if comparison:
        low, high = (100 * end for end in (comparison.low, comparison.high))
        hints += [f"{100 * comparison.difference:+.2f} to the best (95 % interval {low:+.2f} to {high:+.2f})"]
        hints += [f"p {p_text(comparison.p)}, corrected {p_text(comparison.corrected)}"]
    cell = _value_cell(value, "; ".join(hints))
    return replace(cell, mark=DAGGER) if comparison and not comparison.is_clear else cell


def _seeds_cell(line: Line) -> GridCell:
    """How many seeds, on every data set."""
    done, wanted = ([count(entry) for entry in line.entries.values()] for count in (_done, _wanted))
    if done == wanted:
        few, many = min(done), max(done)
        return GridCell(str(few) if few == many else f"{few}{DASH}{many}", float(sum(done)))
    return GridCell(f"{sum(done)} of {sum(wanted)}", float(sum(done)), hint="of all data sets together")


def _done(entry: Entry) -> int:
    return len(entry.seeds)


def _wanted(entry: Entry) -> int:
    return entry.wanted


def _published_row(view: View, row: PublishedRow) -> GridRow:
    names: list[str | None] = [data.published for data in view.data]
    if len(names) > 1:
        names.append(AVERAGE if set(names) == set(published_data()) else None)
    scores = [row.score(name, metric) for name in names for metric in METRICS]
    cells = [GridCell() if score is None else GridCell(percent(score), score) for score in scores]
    return GridRow(f"{row.title} (published)", (*cells, GridCell()), is_published=True)


def _with_best(
    rows: Sequence[GridRow],
    best: Callable[..., float],
    columns: Sequence[int],
    takes_part: Sequence[bool] | None = None,
) -> list[GridRow]:
    """The rows with the best value of each of these columns marked, if there is more than one to choose from."""
    found = [list(row.cells) for row in rows]
    ranked = [cells for place, cells in enumerate(found) if takes_part is None or takes_part[place]]
    for column in columns:
        known = [value for cells in ranked if (value := cells[column].order) is not None]
        for cells in ranked if len(known) > 1 else ():
            if cells[column].order is not None:
                cells[column] = replace(cells[column], is_best=cells[column].order == best(known))
    return [replace(row, cells=tuple(cells)) for row, cells in zip(rows, found, strict=True)]


def _score_notes(view: View, way: Way, resamples: int) -> Iterator[str]:
    family = [comparison for (of, _), comparison in view.comparisons.items() if of == way]
    if family:
        yield (
            f"F1 in per cent. Bold: the highest mean of a column. {DAGGER}: the test documents cannot tell it from "
            f"the best (p of at least {SIGNIFICANT:g}, after Holm's correction for the "
            f"{counted(len(family), 'comparison')} of this table; paired bootstrap over documents, {resamples:,} "
            f"resamples). What another seed would change is not in p."
        )
    if family and len(view.data) > 1:
        yield "Average: over the data sets, of rows that have them all; its differences are not tested."
    if 2 * len(family) / (resamples + 1) >= SIGNIFICANT:
        yield f"So few resamples cannot tell anything of {counted(len(family), 'comparison')}: {DAGGER} means nothing."
    entries = view.entries
    if any(len(entry.seeds) > 1 for entry in entries):
        yield "±: the sample deviation over seeds; where it is missing there is 1 seed."
        alone = [line.row.title for line in view.lines if not line.row.depends_on_seed]
        if alone:
            yield f"{', '.join(alone)}: nothing is drawn by chance, so 1 training stands for all seeds."
    elif any(entry.seeds for entry in entries):
        yield "Every row has 1 seed, so nothing is known of what another seed would change."
    flat = [view.row_title(line) for line in view.lines if line.row.run.method_name == FLAT]
    if flat:
        yield f"{', '.join(flat)}: the text encoder and one linear map, which knows nothing of the hierarchy."
    if any(entry.failures for entry in entries):
        yield "failed: see failure.json in the folder of that cell; the same command tries it again."
    if view.published:
        yield f"(published): {view.published.title}, as printed; {DASH} where it has none. No part of the comparisons."


def cost_grid(view: View) -> Grid:
    """Parameters, time, memory and speed of every row on every data set."""
    groups = [(data.title, len(COSTS)) for data in view.data]
    rows = [GridRow(view.row_title(line), tuple(_cost_cells(line))) for line in view.lines]
    usual = _usual(view)
    for number, data in enumerate(view.data):
        alike = [set(map(condition, line.entries[data.name].results)) <= {usual} for line in view.lines]
        for place, cost in enumerate(COSTS, start=number * len(COSTS)):
            takes_part = None if cost == "trainable_parameters" else alike
            rows = _with_best(rows, max if cost == "documents_per_second" else min, [place], takes_part)
    return Grid(
        of=view.title,
        subtitle="what it costs",
        groups=tuple(groups),
        columns=tuple(COST_TITLES[cost] for _ in groups for cost in COSTS),
        rows=tuple(rows),
        about=_COST_NOTE,
        notes=tuple(_cost_notes(view)),
    )


def _cost_cells(line: Line) -> Iterator[GridCell]:
    for entry in line.entries.values():
        for cost in COSTS:
            value = entry.cost(cost)
            yield GridCell() if value is None else GridCell(amount(cost, value.mean), value.mean)


def _conditions(view: View) -> Counter[Condition]:
    return Counter(condition(result) for entry in view.entries for result in entry.results)


def _usual(view: View) -> Condition | None:
    """Under which conditions most trainings of a table ran: those whose times are compared."""
    return max(sorted(found), key=found.__getitem__) if (found := _conditions(view)) else None


def _cost_notes(view: View) -> Iterator[str]:
    found = _conditions(view)
    if len(found) > 1:
        told = "; ".join(f"{kind}, {counted(load, 'training')} at a time" for kind, load in sorted(found))
        yield (
            f"Trainings ran under different conditions ({told}): times, memory and speed are comparable within one "
            f"only, and bold is the best under those of most."
        )
    elif any(load > 1 for _, load in found):
        yield f"{next(iter(found))[1]} trainings ran at a time, which may make times longer."
