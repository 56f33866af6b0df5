"""What the service writes on standard error: a line of JSON for each request and each event."""

import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any


class Log:
    """Lines of JSON, whole ones also where several threads write."""

    def __init__(self, write: Callable[[str], object] | None = None) -> None:
        self._write = write or _to_standard_error
        self._lock = threading.Lock()

    def __call__(self, event: str, **fields: Any) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = json.dumps({"time": now, "event": event, **fields}) + "\n"
        with self._lock:
            self._write(line)


def _to_standard_error(line: str) -> None:
    with suppress(OSError, ValueError):  # who reads may have gone, and the service goes on
        sys.stderr.write(line)
        sys.stderr.flush()


@contextmanager
def of_libraries(log: Log) -> Iterator[None]:
    """Log what the libraries have to say, too: how they say it, but not of what, which may be a text."""
    handler, loggers = _Handler(log), [logging.getLogger(name) for name in ("uvicorn", "asyncio")]
    for each in loggers:
        each.addHandler(handler)
        each.propagate = False
    try:
        yield
    finally:
        for each in loggers:
            each.removeHandler(handler)
            each.propagate = True


class _Handler(logging.Handler):
    def __init__(self, log: Log) -> None:
        super().__init__(logging.WARNING)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        failure = {"failure": record.exc_info[0].__name__} if record.exc_info and record.exc_info[0] else {}
        self.log("library", level=record.levelname.lower(), message=str(record.msg).split("\n")[0], **failure)
