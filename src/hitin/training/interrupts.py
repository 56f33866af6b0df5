"""Ctrl-C and a polite kill during training: the step under way is finished first."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Within it, the first signal only sets `wanted`; a second one interrupts at once.

    A signal that no one has looked at by the end is not lost.
    """

    def __init__(self) -> None:
        self.wanted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # elsewhere signals do not arrive
            for number in _SIGNALS:
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            if handler is not None:  # it was not set from Python
                signal.signal(number, handler)
        if kind is None:
            self.check()

    def check(self, done: int = 0) -> None:  # noqa: ARG002
        """Interrupt here if it is wanted. It can stand where someone is told how many more documents are done."""
        if self.wanted:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.check()
        self.wanted = True
