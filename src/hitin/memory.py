"""Memory of the C library, for the command: a process that trains and ends."""

import ctypes
import sys

_TRIM_THRESHOLD = -1  # the names and numbers of malloc.h
_MMAP_THRESHOLD = -3
_LARGE = 2**31 - 1
_LARGER_THAN_A_TENSOR = 2**30


def keep_freed_memory() -> bool:
    """Let freed memory wait for its next use instead of going back to the system after every tensor of some megabytes.

    On two cores a step of the demo's training takes 53 ms instead of 65, for the system clears no pages. For GNU's
    library only; whether it was done.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another library, such as musl
        return False
    return bool(mallopt(_MMAP_THRESHOLD, _LARGER_THAN_A_TENSOR) and mallopt(_TRIM_THRESHOLD, _LARGE))
