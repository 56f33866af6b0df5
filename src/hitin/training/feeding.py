"""Batches that are made ahead, by a thread of its own, while a GPU computes."""

from collections.abc import Sequence
from queue import Full, Queue
from threading import Event, Thread
from types import TracebackType
from typing import Protocol, Self

import torch

from hitin.batches import Batch, Examples, Rows

_AHEAD = 4  # batches that wait
_LOOK = 0.1  # seconds between looks whether they are still wanted


class Source(Protocol):
    """Where batches come from."""

    def batch(self, rows: Rows) -> Batch:
        """These documents."""
        ...


class Feed:
    """The batches that are going to be wanted, in this order; on the CPU each is made when it is."""

    def __init__(self, examples: Examples, wanted: Sequence[Rows], device: torch.device) -> None:
        self.examples, self.wanted = examples, wanted
        self.made: Queue[Batch | Exception] = Queue(_AHEAD)
        self.stopped = Event()
        self.thread = Thread(target=self._make, daemon=True) if device.type == "cuda" else None

    def __enter__(self) -> Self:
        if self.thread:
            self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopped.set()
        if self.thread:
            self.thread.join()

    def batch(self, rows: Rows) -> Batch:
        """The next of those that were announced."""
        if not self.thread:
            return self.examples.batch(rows)
        made = self.made.get()
        if isinstance(made, Exception):
            raise made
        return made

    def _make(self) -> None:
        try:
            for rows in self.wanted:
                if not self._put(self.examples.batch(rows).pinned()):
                    return
        except Exception as error:  # it is raised where the batch is wanted
            self._put(error)

    def _put(self, made: Batch | Exception) -> bool:
        """Whether it is still wanted."""
        while not self.stopped.is_set():
            try:
                self.made.put(made, timeout=_LOOK)
            except Full:
                continue
            return True
        return False
