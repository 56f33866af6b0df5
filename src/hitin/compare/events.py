"""What a process that trains a cell tells the one that started it: lines of JSON."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

from hitin.model import Advance
from hitin.watcher import Watcher

Event = dict[str, Any]
_TELL_EVERY = 0.5  # seconds


class EventWriter(Watcher):
    """Writes how training goes; steps and counts now and then only.

    `kind` of an event is `note` (`message`), `begin` (`epochs`, `documents` an epoch, `done` of all), `step` (`done`,
    `loss`), `epoch` (the record of the epoch), `work` (`what`, `done` of `total`) or `error` (`message`).
    """

    def __init__(self, out: IO[str]) -> None:
        self._out = out
        self._told = 0.0
        self._done = 0

    def tell(self, kind: str, **values: Any) -> None:
        with suppress(BrokenPipeError):  # of a process that is gone, which is noticed elsewhere
            self._out.write(json.dumps({"kind": kind, **values}) + "\n")
            self._out.flush()

    def note(self, message: str) -> None:
        self.tell("note", message=message)

    @contextmanager
    def counting(self, what: str, total: int, unit: str = "documents") -> Iterator[Advance]:  # noqa: ARG002
        done = 0
        self.tell("work", what=what, done=0, total=total)

        def advance(count: int) -> None:
            nonlocal done
            done += count
            self._now_and_then("work", what=what, done=done, total=total)

        yield advance

    def begin(self, epochs: int, documents: int, epochs_done: int, documents_done: int) -> None:
        self._done = epochs_done * documents + documents_done
        self.tell("begin", epochs=epochs, documents=documents, done=self._done)

    def step(self, documents: int, loss: float) -> None:
        self._done += documents
        self._now_and_then("step", done=self._done, loss=loss)

    def epoch(self, record: dict[str, float], is_best: bool) -> None:
        self.tell("epoch", **record, is_best=is_best)

    def _now_and_then(self, kind: str, **values: Any) -> None:
        if time.monotonic() - self._told >= _TELL_EVERY:
            self._told = time.monotonic()
            self.tell(kind, **values)
