"""A folder for one process at a time. A kill frees it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hitin.errors import InputError
from hitin.writing import unwritable

LOCK = ".lock"
_LOOK_EVERY = 0.2  # seconds


@contextmanager
def locked(folder: Path, doing: str, *, patience: float = 0.0) -> Iterator[None]:
    """Keep other processes out; those who come later wait for so many seconds and are refused then."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK).open("ab")
    except OSError as error:
        raise unwritable(folder / LOCK, error) from error
    with file:
        end = time.monotonic() + patience
        while not is_mine(file):
            if time.monotonic() >= end:
                raise busy(folder, doing)
            time.sleep(_LOOK_EVERY)
        yield


def is_mine(file: IO[bytes]) -> bool:
    """Keep other processes from a file as long as it is open; whether none had it before."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # a system or a disk without locks
        return True
    return True


def busy(folder: Path, doing: str) -> InputError:
    return InputError(
        f"another process is {doing} in this folder",
        kind="busy-folder",
        file=str(folder),
        remedy="Wait for it, stop it, or choose another folder.",
    )
