"""Writing files whole or not at all."""

import contextlib
import errno
import io
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from hitin.compression import of_path, open_compressed
from hitin.errors import InputError
from hitin.files import is_same, is_there

LEFT_BEHIND = 24 * 3600
"""Seconds after which what a kill left of a file or folder is no longer being written."""
_LEFTOVERS = re.compile(r"\.[0-9a-f]{16}\.part|\.tmp\w{6}")  # ours, and those of safetensors


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path`, which takes its place when the block ends well and is gone otherwise.

    A link keeps pointing where it did; a pipe or a device is written to as it is.
    """
    part: Path | None = None
    try:
        target = Path(path)
        if target.exists() and not target.is_file() and not target.is_dir():
            yield target
        else:
            target = _resolved(target)
            part = target.with_name(f".{secrets.token_hex(8)}.part")
            target.parent.mkdir(parents=True, exist_ok=True)
            yield part
            part.replace(target)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        if part is not None:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


def is_leftover(path: Path) -> bool:
    """Whether a file is called like one that was being written when a kill came."""
    return bool(_LEFTOVERS.fullmatch(path.name))


def remove_leftovers(folder: Path) -> None:
    """Remove what a kill left of files that were being written. Folders are those of an export, perhaps at work."""
    for path in list(folder.iterdir()) if folder.is_dir() else ():
        if is_leftover(path) and not path.is_dir():
            path.unlink(missing_ok=True)


def check_writable(path: str | Path) -> None:
    """Raise what `replacing` would, as far as can be told without writing: before long work for a file."""
    try:
        folder = _resolved(Path(path)).parent
        while not folder.exists():
            folder = folder.parent
        if Path(path).is_dir():
            raise IsADirectoryError(errno.EISDIR, "this is a directory")
        if not folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a directory")
        is_special = Path(path).exists() and not Path(path).is_file()
        if not os.access(folder, os.W_OK | os.X_OK) and not is_special:
            raise PermissionError(errno.EACCES, f"{folder} cannot be written to")
    except OSError as error:
        raise unwritable(path, error) from error


def check_not_read(path: str | Path, files: Iterable[str | Path]) -> None:
    """Refuse to write a file over one of those that are read."""
    if any(is_same(path, file) for file in files):
        raise InputError(
            "this file is read, and would be written",
            kind="file-exists",
            file=str(path),
            remedy="Choose another --out.",
        )


def check_new(path: str | Path, overwrite: bool) -> None:
    """Refuse to take the place of a file in a folder, unless told so."""
    if is_there(path) and not overwrite:
        raise InputError(
            "there is a file of this name",
            kind="file-exists",
            file=str(path),
            remedy="Choose another folder with --out, or replace the files with --overwrite.",
        )


def check_folder(folder: str | Path, file: str) -> None:
    """Whether a file can be written into a folder that need not be there yet, before long work for it."""
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(
            "this file is not a directory", kind="unwritable", file=str(folder), remedy="Choose another --out."
        )
    check_writable(Path(folder) / file)


def _resolved(path: Path) -> Path:
    """Where a link leads; an `OSError` when it leads round in a circle, in every version of Python."""
    try:
        return path.resolve()
    except RuntimeError as error:
        raise OSError(errno.ELOOP, "a link that leads to itself") from error


def unwritable(path: str | Path, error: OSError) -> InputError:
    """What to tell a user whose file could not be written."""
    return InputError(
        f"the file cannot be written ({error.strerror or error})",
        kind="unwritable",
        file=str(path),
        remedy="Check that the directory can be written to and that the disk has room.",
    )


def write_text(path: str | Path, chunks: Iterable[str]) -> None:
    """Write UTF-8 text, compressed as the suffix says, whole or not at all."""
    compression = of_path(path)
    with replacing(path) as part:
        stream = open_compressed(compression, part, "wb") if compression else part.open("wb")
        with io.TextIOWrapper(stream, encoding="utf-8", newline="\n") as out:
            for chunk in chunks:
                out.write(chunk)
