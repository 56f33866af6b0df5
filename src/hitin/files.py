"""Bytes on disk or from a pipe to numbered lines of text: compression, encoding, limits."""

import codecs
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import IO, Any, AnyStr, Self, TypeVar

from hitin import compression
from hitin.errors import InputError, OnError, raise_error

T = TypeVar("T")

LINE_LIMIT = 16 * 1024 * 1024
"""The longest line that is read, in bytes (characters for UTF-16 and UTF-32)."""

STANDARD_INPUT = "-"

FileProgress = Callable[[str, int, int], None]
"""Called now and then with a file's name, the bytes read and its size."""

_HEAD = 64 * 1024
_BOMS = {  # UTF-32 before UTF-16: one begins with the other
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


# Of names that none can have pathlib raises an error where they are too long; these say no.


def is_there(path: str | Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110


def is_file(path: str | Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113


def is_folder(path: str | Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112


def is_same(one: str | Path, other: str | Path) -> bool:
    """Whether both lead to one file that is there. Pipes and devices are no files."""
    return is_file(one) and is_file(other) and os.path.samefile(one, other)  # noqa: PTH121


def name_of(path: str | Path) -> str:
    """What a file is called in messages."""
    return "standard input" if str(path) == STANDARD_INPUT else str(path)


class Source:
    """A file opened for reading: decompressed, its encoding known, its lines counted. `-` is standard input."""

    names_encoding = True

    def __init__(
        self,
        path: str | Path,
        *,
        encoding: str | None = None,
        names_encoding: bool = True,
        limit: int = LINE_LIMIT,
        member: Callable[[list[str]], str] | None = None,
    ) -> None:
        """`names_encoding`: whether a user can name the encoding, which errors then advise.

        `member` names the file of a zip archive that is read, among all that are in it; without, none is.
        """
        self.name = name_of(path)
        self.limit = limit
        self.names_encoding = names_encoding
        self.line = 0
        self.compression: str | None = None
        self._file = _open(path)
        self._stream: Any = self._file
        try:
            self.size = os.fstat(self._file.fileno()).st_size
            if member and self._is_zip():
                self.compression = "zip"
                self._stream = self._guard(lambda: compression.open_zipped(self._file, member))
            start, self._stream = self._with_start(8)
            if inner := compression.recognise(start):
                self.compression = inner
                self._stream = compression.open_compressed(inner, self._stream, "rb")
            self.head, self._stream = self._with_start(_HEAD)
            self.suffix = compression.format_suffix(path)
            self._refuse_what_is_no_text()
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
        self._file.close()

    @property
    def position(self) -> int:
        """Bytes of the file consumed so far, compressed as they are: for progress against `size`."""
        return self._file.tell() if not self._file.closed and self._file.seekable() else 0

    @cached_property
    def head_lines(self) -> list[str]:
        """The first lines that are not blank, for recognising a format; nothing is consumed."""
        text = self.head.decode(self.encoding, errors="replace")
        lines = (text.replace("\r", "\n") if "\n" not in text else text).split("\n")
        if len(self.head) == _HEAD:
            lines = lines[:-1] or lines  # the last one may be cut
        return [line.rstrip("\r") for line in lines if line.strip()]

    @property
    def first_line(self) -> str:
        return next(iter(self.head_lines), "")

    def error(self, message: str, *, kind: str, line: int | None = None, remedy: str | None = None) -> InputError:
        return InputError(message, kind=kind, file=self.name, line=line, remedy=remedy)

    def lines(self, on_error: OnError = raise_error) -> Iterator[str]:
        """Lines with their ends, `self.line` being the number of the last one; one that is not text is left out."""
        if self.encoding.startswith(("utf-16", "utf-32")) or self._has_old_line_ends():
            yield from self._decoded_lines()
            return
        encoding = self.encoding
        for raw in self._limited(self._stream):
            try:
                text = raw.decode(encoding)
            except UnicodeError as error:
                on_error(self._undecodable(error))
            else:
                yield text
            if encoding == "utf-8-sig":  # a byte order mark stands at the start of a file only
                encoding = "utf-8"

    def text(self) -> str:
        """All of it, where a line has no meaning and no limit."""
        try:
            return str(self._guard(lambda: self._stream.read().decode(self.encoding)))
        except UnicodeError as error:
            raise self._undecodable(error) from error

    def seekable_file(self) -> IO[bytes]:
        """The bytes as a file in which one can move about: itself, or a temporary copy of what comes out of it."""
        if self.compression is None and self._file.seekable():
            same = os.fdopen(os.dup(self._file.fileno()), "rb")
            same.seek(0)
            return same
        copy = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
        self._guard(lambda: shutil.copyfileobj(self._stream, copy))
        copy.seek(0)
        return copy

    def _is_zip(self) -> bool:
        if not self._file.seekable():
            return False
        start = self._guard(lambda: self._file.read(len(compression.ZIP)))
        self._file.seek(0)
        return start == compression.ZIP

    def _with_start(self, size: int) -> tuple[bytes, io.BufferedReader]:
        """The first bytes of the stream, however slowly they come, and a stream that still has them."""
        start = self._guard(lambda: _read_fully(self._stream, size))
        return start, io.BufferedReader(_Rejoined(start, self._stream), buffer_size=_HEAD)

    def _decoded_lines(self) -> Iterator[str]:
        """Lines where bytes cannot be cut at line ends: wide encodings, and the line ends of old Macintoshes."""
        newline = None if self._has_old_line_ends() else "\n"
        try:
            with io.TextIOWrapper(self._stream, encoding=self.encoding, newline=newline) as text:
                yield from self._limited(text)
        except UnicodeError as error:
            raise self._undecodable(None) from error

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
        except (UnicodeError, InputError):
            raise
        except compression.reading_errors() as error:
            if self.compression:
                what, remedy = f"the {self.compression} data is damaged or cut short", "Copy or download it again."
            else:
                what, remedy = "the file cannot be read", "Check the disk and the permissions of the file."
            raise self.error(f"{what} ({error})", kind="unreadable", remedy=remedy) from error

    def _undecodable(self, error: UnicodeError | None) -> InputError:
        """The error of bytes that are not text; `error` tells which, where a line is decoded by itself."""
        name = self.encoding.removesuffix("-sig").upper()
        where = ""
        if isinstance(error, UnicodeDecodeError):
            where = f": 0x{error.object[error.start]:02x} at byte {error.start + 1}"
        return self.error(
            f"the bytes are not {name}{where}",
            kind="not-utf-8",
            line=self.line or None,
            remedy="Save the file as UTF-8"
            + (", or name its encoding, for example --encoding windows-1252." if self.names_encoding else "."),
        )

    def _refuse_what_is_no_text(self) -> None:
        if not self.head:
            raise self.error("the file is empty", kind="empty-file", remedy="Give a file that has content.")
        if self.head.startswith(compression.ZIP):
            raise self.error(
                "this is a zip archive or a spreadsheet",
                kind="unreadable",
                remedy="Unpack it, or save the sheet as CSV (UTF-8).",
            )

    def _encoding(self, named: str | None) -> str:
        """The encoding that a byte order mark tells, or else the one that is named, or else UTF-8."""
        found = next((name for mark, name in _BOMS.items() if self.head.startswith(mark)), None)
        named = None if named is None else _known_encoding(named)
        encoding = found or named
        if encoding is not None:
            return encoding
        if not self.head.startswith(b"PAR1") and self.head[:400].count(0) * 3 > len(self.head[:400]) > 3:
            raise self.error(
                "the file looks like UTF-16 without a byte order mark",
                kind="not-utf-8",
                remedy="Name its encoding: --encoding utf-16-le or --encoding utf-16-be."
                if self.names_encoding
                else "Save it as UTF-8.",
            )
        return "utf-8"

    def _has_old_line_ends(self) -> bool:
        return b"\r" in self.head and b"\n" not in self.head


class _Rejoined(io.RawIOBase):
    """A stream with its first bytes, which were read already, put back in front."""

    def __init__(self, start: bytes, rest: Any) -> None:
        self._start = start
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        chunk = self._start[: len(buffer)] if self._start else _some(self._rest.read(len(buffer)))
        self._start = self._start[len(chunk) :]
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        self._rest.close()
        super().close()


def _read_fully(stream: Any, size: int) -> bytes:
    chunks = []
    while size > 0 and (chunk := _some(stream.read(size))):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _some(chunk: bytes | None) -> bytes:
    if chunk is None:
        raise BlockingIOError("the file is open without waiting for data")
    return chunk


def _known_encoding(named: str) -> str:
    try:
        name = codecs.lookup(named).name
        "a".encode(name).decode(name)  # some are no encodings of text, and say so here
    except (LookupError, UnicodeError, ValueError):
        raise InputError(
            f"there is no encoding of text called {named!r}",
            kind="bad-option",
            remedy="Python's names hold: utf-8, utf-16, latin-1, windows-1252, shift_jis, gb18030 ...",
        ) from None
    return name


def check_there(path: str | Path) -> None:
    """Refuse what cannot be opened, before long work for it. Pipes are left alone: to open them is to wait."""
    if is_file(path) or is_folder(path) or not is_there(path):
        _open(path).close()


def _open(path: str | Path) -> io.FileIO:
    name = str(path)
    try:
        return io.FileIO(0, closefd=False) if name == STANDARD_INPUT else io.FileIO(path)
    except FileNotFoundError:
        problem, kind, remedy = "there is no such file", "missing-file", _neighbours(Path(path))
    except IsADirectoryError:
        files = [child.name for child in _children(Path(path)) if child.is_file()]
        problem, kind = "this is a directory, not a file", "directory"
        remedy = "Name a file in it" + (f", such as {', '.join(sorted(files)[:3])}." if files else ".")
    except (OSError, ValueError) as error:  # a ValueError for a NUL in the name
        reason = getattr(error, "strerror", None) or error
        problem, kind = f"the file cannot be opened ({reason})", "unreadable"
        remedy = "Check its name and permissions."
    raise InputError(problem, kind=kind, file=name, remedy=remedy)


def _neighbours(path: Path) -> str:
    if not path.parent.is_dir():
        return f"Nor is there a directory {path.parent}: check the path."
    near = get_close_matches(path.name, [child.name for child in _children(path.parent)], n=3)
    return f"Did you mean {' or '.join(near)}?" if near else "Check the path."


def _children(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
