"""How training looks while it goes: a live display for a person at the terminal, otherwise a line an epoch."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from math import isfinite
from types import TracebackType
from typing import Self

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from hitin.console import person_watches, say
from hitin.errors import printable
from hitin.model import Advance
from hitin.watcher import Watcher

_MEMORY = 0.95  # of the smoothed loss: about the last twenty steps


@contextmanager
def watching() -> Iterator[Watcher]:
    """What to train under."""
    if not person_watches():
        yield Lines()
        return
    with LiveDisplay(Console(stderr=True)) as display:
        yield display


def epoch_line(record: dict[str, float], epochs: int, is_best: bool) -> str:
    """`epoch  3/30  loss 0.0312  micro-F1 0.7811  macro-F1 0.5127  after 41 s  best`"""
    number = f"{record['epoch']:.0f}".rjust(len(str(epochs)))
    parts = [f"epoch {number}/{epochs}", f"loss {record['loss']:.4f}"]
    if "micro_f1" in record:
        parts += [f"validation loss {record['val_loss']:.4f}", _scores(record)]
    parts.append(f"after {_duration(record['seconds'])}")  # of the whole training
    return "  ".join([*parts, "best"] if is_best else parts)


def _scores(record: dict[str, float]) -> str:
    return f"micro-F1 {record['micro_f1']:.4f}  macro-F1 {record['macro_f1']:.4f}"


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


class Lines(Watcher):
    """Plain lines on standard error, for a file or another program."""

    def __init__(self) -> None:
        self._epochs = 0
        self._last_note = ""

    def note(self, message: str) -> None:
        if message != self._last_note:  # the same work, on training and on validation documents
            say(message)
        self._last_note = message

    def begin(self, epochs: int, documents: int, epochs_done: int, documents_done: int) -> None:  # noqa: ARG002
        self._epochs = epochs

    def epoch(self, record: dict[str, float], is_best: bool) -> None:
        say(epoch_line(record, self._epochs, is_best))


class LiveDisplay(Watcher):
    """A bar over the whole training with loss, speed and time left, the scores under it, and a line for each epoch."""

    def __init__(self, console: Console) -> None:
        self._bars = _Bars(console)
        self._task = TaskID(0)
        self._epochs = 0
        self._steps = 0
        self._loss = 0.0
        self._best: dict[str, float] | None = None
        self._last_note = ""

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def note(self, message: str) -> None:
        if message != self._last_note:
            self._bars.console.print(Text(printable(message, most=1000)), soft_wrap=True)
        self._last_note = message

    @contextmanager
    def counting(self, what: str, total: int, unit: str = "documents") -> Iterator[Advance]:
        task = self._bars.add_task(what, total=total, loss="", unit=unit)
        try:
            yield lambda count: self._bars.advance(task, count)
        finally:
            self._bars.remove_task(task)

    def begin(self, epochs: int, documents: int, epochs_done: int, documents_done: int) -> None:
        self._epochs = epochs
        done = epochs_done * documents + documents_done
        name = _epoch_name(epochs_done + 1, epochs)
        self._task = self._bars.add_task(name, total=epochs * documents, completed=done, loss="", unit="documents")

    def step(self, documents: int, loss: float) -> None:
        self._bars.advance(self._task, documents)
        if isfinite(loss):  # after an interruption it is not known at once
            self._steps += 1
            self._loss = _MEMORY * self._loss + (1 - _MEMORY) * loss
            mean = self._loss / (1 - _MEMORY**self._steps)
            self._bars.update(self._task, loss=f"loss {mean:.4f}")

    def epoch(self, record: dict[str, float], is_best: bool) -> None:
        self._bars.console.print(Text(epoch_line(record, self._epochs, is_best)), soft_wrap=True)
        self._bars.update(self._task, description=_epoch_name(int(record["epoch"]) + 1, self._epochs))
        if is_best:
            self._best = record
        if "micro_f1" in record:
            self._bars.below = f"last {_scores(record)}"
        if self._best:  # after an interruption it is not known at once
            self._bars.below += f"   best {_scores(self._best)} (epoch {self._best['epoch']:.0f})"


def _epoch_name(number: int, epochs: int) -> str:
    return f"epoch {min(number, epochs)}/{epochs}"


class _Bars(Progress):
    """The bars, and a line below them."""

    def __init__(self, console: Console) -> None:
        self.below = ""
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=20),
            TaskProgressColumn(),
            TextColumn("{task.fields[loss]}", markup=False),
            _Speed(),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            transient=True,
        )

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        if self.below:
            yield Text(self.below, style="dim", overflow="ellipsis", no_wrap=True)


class _Speed(ProgressColumn):
    """Documents, or what else is counted, in a second."""

    def render(self, task: Task) -> Text:
        return Text(f"{task.speed:,.0f} {task.fields['unit']}/s" if task.speed else "")
