"""How a comparison looks while it goes: bars for a person at the terminal, otherwise a line for each cell."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn
from rich.text import Text

from hitin.compare.cells import Cell, once
from hitin.compare.events import Event
from hitin.compare.places import Place
from hitin.compare.plan import LINEAR
from hitin.compare.running import Audience
from hitin.compare.statistics import METRICS
from hitin.compare.words import duration, percent
from hitin.console import person_watches, say
from hitin.errors import printable


@contextmanager
def showing(cells: Sequence[Cell], places: int) -> Iterator[Audience]:
    """What to run cells under."""
    count = Count(once(cells), places)
    if not person_watches():
        yield Lines(count)
        return
    with bars_on(Console(stderr=True)) as bars:
        yield LiveDisplay(count, bars)


class Count:
    """How many cells are done, and how long the others may take."""

    def __init__(self, cells: Sequence[Cell], places: int) -> None:
        self.total, self.places = len(cells), max(places, 1)
        self.seconds: dict[tuple[str, str], float] = {}
        self.left = []
        self.of_encoders = len({cell.row.encoder for cell in cells if cell.row.run.method_name != LINEAR}) > 1
        for cell in cells:
            result = cell.result()
            if result is None:
                self.left.append(cell)
            else:
                self.seconds[cell.data, cell.row.name] = float(result["training"]["fit_seconds"])

    @property
    def done(self) -> int:
        return self.total - len(self.left)

    def end(self, cell: Cell, seconds: float | None) -> None:
        """A cell is finished, or has failed (`None`)."""
        self.left.remove(cell)
        if seconds is not None:
            self.seconds[cell.data, cell.row.name] = seconds

    def name(self, cell: Cell) -> str:
        """With the text encoder, where there are several."""
        return f"{cell.name} ({cell.row.encoder.rsplit('/', 1)[-1]})" if self.of_encoders else cell.name

    def seconds_left(self) -> float | None:
        """As long as the same row took on the same data, or all rows on these data, or all cells."""
        if not self.seconds:
            return None
        return sum(self._expected(cell) for cell in self.left) / min(self.places, max(len(self.left), 1))

    def _expected(self, cell: Cell) -> float:
        same = self.seconds.get((cell.data, cell.row.name))
        alike = [seconds for (data, _), seconds in self.seconds.items() if data == cell.data]
        return same if same is not None else fmean(alike or self.seconds.values())


class Lines(Audience):
    """`[3/24] arxiv / hitin / seed 0: micro-F1 78.11, macro-F1 51.27 in 81 s` on standard error."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._ended = count.done
        self._warned: set[tuple[str, str]] = set()

    def event(self, cell: Cell, event: Event) -> None:
        """Of all notes, warnings are for people, once for all seeds."""
        message = str(event.get("message", ""))
        if event["kind"] == "note" and message.startswith("warning:"):
            if (cell.row.name, message) not in self._warned:
                self.line(f"{self._count.name(cell)}: {message}")
            self._warned.add((cell.row.name, message))

    def finished(self, cell: Cell, result: dict[str, Any], seconds: float) -> None:
        scores = result["test"]["tuned"]
        micro, macro = (percent(scores[name]) for name in METRICS)
        self._end(cell, f"micro-F1 {micro}, macro-F1 {macro} in {duration(seconds)}", seconds)

    def failed(self, cell: Cell, message: str) -> None:
        self._end(cell, f"failed: {next(iter(message.splitlines()), '')}", None)

    def stopping(self, cells: int) -> None:
        if cells:
            self.line("stopping: the state is being saved; Ctrl-C again does without")

    def _end(self, cell: Cell, words: str, seconds: float | None) -> None:
        self._ended += 1
        self._count.end(cell, seconds)
        self.line(f"[{self._ended}/{self._count.total}] {self._count.name(cell)}: {words}")

    def line(self, text: str) -> None:
        say(text)


class LiveDisplay(Lines):
    """A bar over all cells with the time left, and one for each cell under way; finished ones scroll by above."""

    def __init__(self, count: Count, bars: Progress) -> None:
        super().__init__(count)
        self._bars = bars
        self._all = bars.add_task("cells", total=count.total, completed=count.done, told="")
        self._tasks: dict[Path, TaskID] = {}
        self._scores: dict[Path, str] = {}

    def line(self, text: str) -> None:
        self._bars.console.print(Text(printable(text, most=1000)), soft_wrap=True)

    def begin(self, cell: Cell, place: Place) -> None:
        name = self._count.name(cell) + (f" on {place.name}" if self._count.places > 1 else "")
        self._tasks[cell.folder] = self._bars.add_task(printable(name), total=None, told="starting")

    def event(self, cell: Cell, event: Event) -> None:
        super().event(cell, event)
        changes = self._changes(cell, event)
        if changes:
            self._bars.update(self._tasks[cell.folder], **changes)

    def _changes(self, cell: Cell, event: Event) -> dict[str, Any]:
        """What the bar of a cell shows from now on."""
        match event["kind"]:
            case "begin":
                return {"total": event["epochs"] * event["documents"], "completed": event["done"], "told": "training"}
            case "step":
                loss = f"loss {event['loss']:.4f}  " if isfinite(event["loss"]) else ""
                return {"completed": event["done"], "told": loss + self._scores.get(cell.folder, "")}
            case "epoch":
                scores = f"micro {percent(event['micro_f1'])} macro {percent(event['macro_f1'])}"
                self._scores[cell.folder] = f"epoch {event['epoch']:.0f}: {scores}"
                return {"told": self._scores[cell.folder]}
            case "work":
                return {"told": f"{event['what']} {event['done']:,} of {event['total']:,}"}
        return {}

    def _end(self, cell: Cell, words: str, seconds: float | None) -> None:
        super()._end(cell, words, seconds)
        self._bars.remove_task(self._tasks.pop(cell.folder))
        left = self._count.seconds_left()
        told = f"about {duration(left)} left" if left else ""
        self._bars.update(self._all, completed=self._ended, told=told)


def bars_on(console: Console) -> Progress:
    """Bars with a few words beside each."""
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=12),
        TaskProgressColumn(),
        TextColumn("{task.fields[told]}", markup=False),
        console=console,
        transient=True,
    )
