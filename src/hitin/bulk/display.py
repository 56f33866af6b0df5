"""How far it is, on standard error: a bar for a person, a line now and then for a log."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hitin.bulk.folder import Plan, Watcher
from hitin.bulk.scoring import Outcome
from hitin.console import person_watches, say
from hitin.errors import counted, listed

_SAY_EVERY = 60.0  # seconds, where no person watches


@contextmanager
def watching() -> Iterator[Watcher]:
    if not person_watches():
        yield Telling()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TextColumn("{task.description}", markup=False), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        yield Telling(bars)


class Telling(Watcher):
    """Counts what is done, and tells it: in bars, or else line by line."""

    def __init__(self, bars: Any = None) -> None:
        self.bars = bars
        self.task: Any = None
        self.shards = self.documents = self.bytes = 0
        self.sizes: dict[str, int] = {}
        self.start = self.said = time.monotonic()

    def planned(self, plan: Plan) -> None:
        if plan.found.others:
            say(f"left aside, for it is not known what they are: {listed(plan.found.others)}")
        if plan.again:
            say(f"damaged, or not of the documents as they are now, so written again: {listed(plan.again)}")
        self.start = time.monotonic()
        self.sizes = {shard.name: shard.size for shard in plan.todo}
        if self.bars is not None:
            self.task = self.bars.add_task("", total=sum(self.sizes.values()) or None)
        self._tell()

    def advanced(self, documents: int) -> None:
        self.documents += documents
        self._tell()

    def done(self, outcome: Outcome) -> None:
        self.shards += 1
        self.bytes += self.sizes[outcome.name]
        self._tell()

    def _tell(self) -> None:
        now = time.monotonic()
        speed = self.documents / max(now - self.start, 1e-9)
        told = f"{self.shards:,} of {counted(len(self.sizes), 'file')}, {speed:,.0f} documents a second"
        if self.bars is not None:
            self.bars.update(self.task, completed=self.bytes, description=told)
        elif now - self.said >= _SAY_EVERY:
            self.said = now
            say(told)
