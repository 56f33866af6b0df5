"""Memory of the process: how the C library keeps it, and the most there was of it."""

import ctypes
import re
import sys
import time
from pathlib import Path
from typing import Any

_TRIM_THRESHOLD = -1  # the names and numbers of malloc.h
_MMAP_THRESHOLD = -3
_LARGE = 2**31 - 1
_LARGER_THAN_A_TENSOR = 2**30
_RELEASE_EVERY = 1.0  # seconds


class _FreedMemory:
    """What becomes of memory that this process has freed."""

    is_kept = False
    released = 0.0
    """When it went back to the system last."""


def keep_freed_memory() -> bool:
    """Let freed memory wait for its next use instead of going back to the system after every tensor of some megabytes.

    On two cores a step of the demo's training takes 53 ms instead of 65, for the system clears no pages. For GNU's
    library only; whether it was done.
    """
    mallopt = _function("mallopt")
    if mallopt is None:
        return False
    _FreedMemory.is_kept = bool(mallopt(_MMAP_THRESHOLD, _LARGER_THAN_A_TENSOR) and mallopt(_TRIM_THRESHOLD, _LARGE))
    return _FreedMemory.is_kept


def release_freed_memory() -> bool:
    """Give freed memory back to the system now and then, unless it is to be kept; to be called often.

    Tensors of ever other sizes leave gaps that none of the next fits into: MiniLM, four batches at once, held 1.33 GB
    in the course of 12,600 documents, where it takes 0.71; with this, 1.02 to 1.07. It takes some 50 ms. Whether it was
    done.
    """
    now = time.monotonic()
    if _FreedMemory.is_kept or now - _FreedMemory.released < _RELEASE_EVERY:
        return False
    _FreedMemory.released = now
    trim = _function("malloc_trim")
    return trim is not None and bool(trim(0))


def _function(name: str) -> Any:
    """One of GNU's C library; `None` where there is another."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        return getattr(ctypes.CDLL(None), name)
    except (OSError, AttributeError):  # another library, such as musl
        return None


def most_held() -> int | None:
    """The most bytes this process has held, where Linux tells. What `getrusage` tells there may be the parent's."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
    return 1024 * int(found[1]) if found else None
