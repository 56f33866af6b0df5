"""A folder for one process at a time. A kill frees it."""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from hitin.errors import InputError
from hitin.files import is_there
from hitin.writing import unwritable

LOCK = ".lock"
_LOOK_EVERY = 0.2  # seconds
_MINE: ContextVar[frozenset[Path]] = ContextVar("mine", default=frozenset())


@contextmanager
def locked(folder: Path, doing: str, *, patience: float = 0.0) -> Iterator[None]:
    """Keep other processes out; those who come later wait for so many seconds and are refused then."""
    end = time.monotonic() + patience
    while (file := _taken(folder)) is None:
        if time.monotonic() >= end:
            raise _busy(folder, doing)
        time.sleep(_LOOK_EVERY)
    with file:
        yield


@contextmanager
def locked_for_now(folder: Path, doing: str, *, patience: float = 0.0) -> Iterator[None]:
    """`locked`, and nothing of it stays, nor of folders made for it alone. Who has it already may go in again."""
    if folder.resolve() in _MINE.get():
        yield
        return
    made = [each for each in (folder, *folder.parents) if not is_there(each)]
    try:
        with locked(folder, doing, patience=patience):
            before = _MINE.set(_MINE.get() | {folder.resolve()})
            try:
                yield
            finally:
                _MINE.reset(before)
                with suppress(OSError):
                    (folder / LOCK).unlink()
    finally:
        remove_empty(made)


def remove_empty(folders: Iterable[Path]) -> None:
    """Remove them up to the first that is not empty, where others may remove them, too."""
    for folder in folders:
        try:
            folder.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return


def is_lock(path: Path) -> bool:
    """Whether a file is a lock of ours, in use or left by a kill: it is always empty."""
    return path.is_file() and not path.stat().st_size


def _taken(folder: Path) -> IO[bytes] | None:
    """A folder's lock, kept from other processes as long as it is open; `None` where one of them has it."""
    file = _lock_of(folder)
    if _is_mine(file) and _is_there_still(folder, file):
        return file
    file.close()
    return None


def _lock_of(folder: Path, tries: int = 10) -> IO[bytes]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / LOCK).open("ab")
    except OSError as error:
        if tries > 1 and isinstance(error, (FileNotFoundError, FileExistsError)):  # removed just now by who had it
            return _lock_of(folder, tries - 1)
        raise unwritable(folder / LOCK, error) from error


def _is_mine(file: IO[bytes]) -> bool:
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # a system or a disk without locks
        return True
    return True


def _is_there_still(folder: Path, file: IO[bytes]) -> bool:
    """Whether a lock is the one that others will find: who had it before may have removed it meanwhile."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), (folder / LOCK).stat())
    except OSError:
        return False


def _busy(folder: Path, doing: str) -> InputError:
    return InputError(
        f"another process is {doing} in this folder",
        kind="busy-folder",
        file=str(folder),
        remedy="Wait for it, stop it, or choose another folder.",
    )
