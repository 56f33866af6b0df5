"""The processor that this process has."""

import os


def cores() -> int:
    """Those that this process may use, which may be fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
