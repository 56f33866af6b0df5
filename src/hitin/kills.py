"""What a signal does to the command: a polite kill ends it as an exception does, none cuts off its last words."""

import signal
import threading
from types import FrameType

from hitin.launching import has_launcher


def unwind_on_kills() -> None:
    """A polite kill ends a command as an exception does, by which half-written files are removed; a second one at once.

    Those that save what they have done treat the signal their own way meanwhile. A launcher is left to see that its
    processes were killed.
    """
    if threading.current_thread() is not threading.main_thread() or has_launcher():
        return
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # ignored, it stays so
        signal.signal(signal.SIGTERM, unwind)


def unwind(number: int, frame: FrameType | None) -> None:  # noqa: ARG001
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(128 + number)


def end_unhurried() -> None:
    """From here on the command ends by itself: a second signal does not cut off its last words.

    Where the signals are not the command's to treat, as in a program that uses the library, they stay as they are.
    """
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is unwind:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
