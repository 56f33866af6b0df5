"""Writing files whole or not at all."""

import contextlib
import io
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

from hitin.compression import of_path, open_compressed
from hitin.errors import InputError


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path`, which takes its place when the block ends well and is gone otherwise.

    A link keeps pointing where it did; a pipe or a device is written to as it is.
    """
    target = Path(path)
    part: Path | None = None
    try:
        target = target.resolve()
        if target.exists() and not target.is_file() and not target.is_dir():
            yield target
        else:
            part = target.with_name(f".{secrets.token_hex(8)}.part")
            target.parent.mkdir(parents=True, exist_ok=True)
            yield part
            part.replace(target)
    except OSError as error:
        raise InputError(
            f"the file cannot be written ({error.strerror or error})",
            kind="unwritable",
            file=str(path),
            remedy="Check that the directory can be written to and that the disk has room.",
        ) from error
    finally:
        if part is not None:
            with contextlib.suppress(OSError):
                part.unlink(missing_ok=True)


def write_text(path: str | Path, chunks: Iterable[str]) -> None:
    """Write UTF-8 text, compressed as the suffix says, whole or not at all."""
    compression = of_path(path)
    with replacing(path) as part:
        stream = open_compressed(compression, part, "wb") if compression else part.open("wb")
        with io.TextIOWrapper(stream, encoding="utf-8", newline="\n") as out:
            for chunk in chunks:
                out.write(chunk)
