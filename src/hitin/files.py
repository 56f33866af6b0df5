"""Bytes on disk to numbered lines of text: compression, encoding, limits; and writing without half-written files."""

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import os
import secrets
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any, AnyStr, Self, TypeVar, cast

from hitin.errors import InputError, OnError, raise_error
from hitin.extras import need

T = TypeVar("T")

LINE_LIMIT = 16 * 1024 * 1024
"""The longest line that is read, in bytes (characters for UTF-16 and UTF-32)."""

COMPRESSION_SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
_BOMS = {  # UTF-32 before UTF-16: one begins with the other
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_HEAD = 64 * 1024


class Source:
    """A file opened for reading: decompressed, its encoding known, its lines counted."""

    def __init__(self, path: str | Path, *, encoding: str | None = None, limit: int = LINE_LIMIT) -> None:
        self.name = str(path)
        self.limit = limit
        self.line = 0
        self._raw = self._stream = _open(Path(path))
        try:
            self.size = os.fstat(self._raw.fileno()).st_size
            self.compression = _recognise(self._raw.peek(8), _MAGIC)
            self._stream = self._decompressed()
            self.head = self._guard(lambda: self._stream.peek(_HEAD)[:_HEAD])
            if not self.head:
                raise self.error("the file is empty", kind="empty-file", remedy="Give a file that has content.")
            self.encoding = self._encoding(encoding)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()
        self._raw.close()

    @property
    def position(self) -> int:
        """Bytes of the file consumed so far, compressed as they are: for progress against `size`."""
        return self._raw.tell() if self._raw.seekable() and not self._raw.closed else 0

    @property
    def format_suffix(self) -> str:
        """The file's suffix in lower case, less that of the compression: `.jsonl` of `train.jsonl.xz`."""
        path = Path(self.name)
        if path.suffix.lower() in COMPRESSION_SUFFIXES:
            path = path.with_suffix("")
        return path.suffix.lower()

    def head_lines(self, most: int = 50) -> list[str]:
        """The first lines, for recognising the format; nothing is consumed."""
        text = self.head.decode(self.encoding, errors="replace")
        lines = text.split("\n")
        if len(self.head) == _HEAD:
            lines = lines[:-1] or lines  # the last one may be cut
        return [line.rstrip("\r") for line in lines[:most]]

    def error(self, message: str, *, kind: str, line: int | None = None, remedy: str | None = None) -> InputError:
        return InputError(message, kind=kind, file=self.name, line=line, remedy=remedy)

    def lines(self, on_error: OnError = raise_error) -> Iterator[str]:
        """Lines with their ends, `self.line` being the number of the last one; only `\\n` ends a line."""
        if self.encoding in ("utf-16", "utf-32") or self.encoding.startswith(("utf-16-", "utf-32-")):
            yield from self._wide_lines()
            return
        encoding = self.encoding
        for raw in self._limited(self._stream):
            try:
                yield raw.decode(encoding)
            except UnicodeDecodeError as error:
                on_error(self._undecodable(error))
                yield raw.decode(encoding, errors="replace")
            if encoding == "utf-8-sig":  # a byte order mark stands at the start of a file only
                encoding = "utf-8"

    def _wide_lines(self) -> Iterator[str]:
        try:
            with io.TextIOWrapper(self._stream, encoding=self.encoding, newline="\n") as text:
                yield from self._limited(text)
        except UnicodeDecodeError as error:
            raise self.error(
                f"the file is not valid {self.encoding} after line {self.line}: {error.reason}",
                kind="not-utf-8",
                remedy="Save it as UTF-8, or name its encoding with --encoding.",
            ) from error

    def _limited(self, stream: IO[AnyStr]) -> Iterator[AnyStr]:
        """Lines of the stream, none longer than the limit."""
        most = self.limit + 2  # room for the line end
        while line := self._guard(lambda: stream.readline(most)):
            self.line += 1
            if len(line) > self.limit and len(line.rstrip()) > self.limit:
                raise self.error(
                    f"the line is longer than {self.limit:,} characters, which is the limit",
                    kind="line-too-long",
                    line=self.line,
                    remedy="Each document or label stands on a line of its own: is this the right file, "
                    "with its line ends intact? Cut very long documents first.",
                )
            yield line

    def _guard(self, read: Callable[[], T]) -> T:
        """Read, and say it plainly when the bytes cannot be had."""
        try:
            return read()
        except UnicodeDecodeError:
            raise
        except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, _zstd_error()) as error:
            if self.compression:
                what = f"the {self.compression} data is damaged or cut short"
                remedy = "Copy or download the file again."
            else:
                what, remedy = "the file cannot be read", "Check the disk and the permissions of the file."
            raise self.error(f"{what} ({error})", kind="unreadable", remedy=remedy) from error

    def _undecodable(self, error: UnicodeDecodeError) -> InputError:
        byte = error.object[error.start]
        return self.error(
            f"the bytes are not {self.encoding.removesuffix('-sig').upper()}: 0x{byte:02x} at byte {error.start + 1}",
            kind="not-utf-8",
            line=self.line,
            remedy="Save the file as UTF-8, or name its encoding, for example --encoding latin-1.",
        )

    def _decompressed(self) -> io.BufferedReader:
        if self.compression is None:
            return self._raw
        return io.BufferedReader(_compressed(self.compression, self._raw, "rb"), buffer_size=_HEAD)

    def _encoding(self, named: str | None) -> str:
        found = _recognise(self.head, _BOMS)
        if named is not None:
            try:
                name = codecs.lookup(named).name
            except LookupError:
                raise InputError(
                    f"there is no encoding called {named!r}",
                    kind="unknown-encoding",
                    remedy="Python's names hold: utf-8, utf-16, latin-1, cp1252, shift_jis, gb18030 ...",
                ) from None
            return "utf-8-sig" if (name, found) == ("utf-8", "utf-8-sig") else name
        if found is None and self._looks_wide():
            raise self.error(
                "the file looks like UTF-16 without a byte order mark",
                kind="not-utf-8",
                remedy="Name its encoding: --encoding utf-16-le or --encoding utf-16-be.",
            )
        return found or "utf-8"

    def _looks_wide(self) -> bool:
        sample = self.head[:400]
        return len(sample) >= 4 and not sample.startswith(b"PAR1") and sample.count(0) * 3 > len(sample)


def _open(path: Path) -> io.BufferedReader:
    name = str(path)
    try:
        return io.BufferedReader(io.FileIO(path), buffer_size=_HEAD)
    except FileNotFoundError:
        raise InputError("there is no such file", kind="missing-file", file=name, remedy=_neighbours(path)) from None
    except IsADirectoryError:
        raise InputError(
            "this is a directory, not a file",
            kind="directory",
            file=name,
            remedy="Name a file in it" + _listing(path) + ".",
        ) from None
    except OSError as error:
        raise InputError(
            f"the file cannot be opened ({error.strerror})",
            file=name,
            remedy="Check its name and permissions.",
        ) from error
    except ValueError as error:  # a NUL in the name
        raise InputError(f"{name!r} is not a file name ({error})", kind="missing-file") from error


def _neighbours(path: Path) -> str:
    if not path.parent.is_dir():
        return f"Nor is there a directory {path.parent}: check the path."
    from difflib import get_close_matches

    near = get_close_matches(path.name, (child.name for child in path.parent.iterdir()), n=3)
    return f"Did you mean {' or '.join(near)}?" if near else "Check the path."


def _listing(path: Path) -> str:
    try:
        names = sorted(child.name for child in path.iterdir() if child.is_file())[:3]
    except OSError:
        names = []
    return ", such as " + ", ".join(names) if names else ""


def _recognise(head: bytes, marks: dict[bytes, str]) -> str | None:
    return next((name for mark, name in marks.items() if head.startswith(mark)), None)


def zstd() -> ModuleType:
    """Zstandard from the standard library (Python 3.14) or its back-port."""
    module = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    return need(module, extra="zstd", purpose="A .zst file")


def _zstd_error() -> type[Exception]:
    for name in ("compression.zstd", "backports.zstd"):
        if name in sys.modules:
            return cast(type[Exception], sys.modules[name].ZstdError)
    return zlib.error


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary path beside `path`, which takes its place when the block ends well and is gone otherwise."""
    target = Path(path)
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield part
        part.replace(target)
    except OSError as error:
        raise InputError(
            f"the file cannot be written ({error.strerror or error})",
            kind="unwritable",
            file=str(target),
            remedy="Check that the directory can be written to and that the disk has room.",
        ) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: str | Path, chunks: Iterable[str]) -> None:
    """Write UTF-8 text, compressed as the suffix says, whole or not at all."""
    path = Path(path)
    compression = COMPRESSION_SUFFIXES.get(path.suffix.lower())
    with replacing(path) as part, _open_for_writing(part, compression) as out:
        for chunk in chunks:
            out.write(chunk)


def _open_for_writing(path: Path, compression: str | None) -> io.TextIOWrapper:
    stream = _compressed(compression, path, "wb") if compression else path.open("wb")
    return io.TextIOWrapper(stream, encoding="utf-8", newline="\n")


def _compressed(compression: str, file: Any, mode: str) -> Any:
    """A file or path through one of the compression libraries, which all open alike."""
    library = {"gzip": gzip, "bzip2": bz2, "xz": lzma}.get(compression) or zstd()
    return library.open(file, mode)
