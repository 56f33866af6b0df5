"""Waiting for what others do: it ends in time, or the test fails."""

import time
from collections.abc import Callable


def until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(0.02)
