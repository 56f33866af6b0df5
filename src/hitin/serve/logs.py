"""What the service writes on standard error: a line of JSON for each request and each event."""

import json
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
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
