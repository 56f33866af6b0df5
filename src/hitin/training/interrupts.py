"""Ctrl-C and a polite kill during training: the step under way is finished first."""

import os
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any, Self

from hitin.kills import unwind
from hitin.launching import has_launcher

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_USUAL = (signal.SIG_DFL, signal.default_int_handler, unwind)  # Python's own, and that of our command
_ECHO = 2.0  # seconds in which a launcher passes a signal on that a process may have got already


class Interrupts:
    """Within it, the first signal only sets `wanted`; a second one interrupts at once.

    Signals that the caller ignores, or handles in its own way, stay as they are. A signal that no one has looked at by
    the end is not lost. Where a launcher started this process, the same signal may come twice, and an end of the
    launcher itself is one, too.
    """

    def __init__(self) -> None:
        self._noted: float | None = None
        """When the first came."""
        self._echo = _ECHO if has_launcher() else 0.0
        self._parent = os.getppid() if has_launcher() else None
        self._before: dict[int, Any] = {}

    @property
    def wanted(self) -> bool:
        """Whether someone wants to stop."""
        return self._noted is not None or (self._parent is not None and os.getppid() != self._parent)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # elsewhere signals do not arrive
            for number in _SIGNALS:
                if signal.getsignal(number) in _USUAL:
                    self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if kind is None:
            self.check()

    def check(self) -> None:
        """Interrupt here if it is wanted."""
        if self.wanted:
            raise KeyboardInterrupt

    def _note(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002
        if self._noted is None:
            self._noted = time.monotonic()
        elif time.monotonic() - self._noted >= self._echo:
            raise KeyboardInterrupt
