"""Standard input as it comes: a line can be answered before the next one is written."""

import io
import select
from collections.abc import Callable
from typing import Any

from hitin import compression
from hitin.files import LINE_LIMIT, STANDARD_INPUT, Source

_AT_ONCE = 1 << 16


class LiveInput(Source):
    """Standard input, of which no more is waited for than the line that is wanted next.

    A `Source` waits for the start of a file to recognise its format; here the first line that is not blank must do.
    """

    def __init__(self, *, encoding: str | None = None, file: io.RawIOBase | None = None) -> None:
        self.name = "standard input"
        self.limit = LINE_LIMIT
        self.line = 0
        self.size = 0
        self.suffix = ""
        self._file: Any = file or io.FileIO(0, closefd=False)
        self._arriving = _Arriving(self._file, self._guard)
        self._stream: Any = self._arriving
        self.head = self._arriving.first_line(self.limit)
        self.compression = compression.recognise(self.head)
        if self.compression:
            raise self.error(
                f"this is {self.compression} data",
                kind="unreadable",
                remedy=f"Unpack it first, or name the file instead of {STANDARD_INPUT}.",
            )
        if self.head:
            self._refuse_what_is_no_text()
        self.encoding = self._encoding(encoding)

    def is_waiting(self) -> bool:
        """Whether the next line has not been written yet."""
        return self._arriving.is_waiting()


class _Arriving(io.RawIOBase):
    """Bytes that are held until their line is whole."""

    def __init__(self, file: Any, guard: Callable[[Callable[[], Any]], Any]) -> None:
        self._file = file
        self._guard = guard
        self._held = bytearray()
        self._ended = False

    def readable(self) -> bool:
        return True

    def first_line(self, limit: int) -> bytes:
        """The bytes up to the first line that is not blank; they stay."""
        while not self._ended and len(self._held) < limit:
            if b"\n" in self._held.lstrip():
                break
            self._more()
        return bytes(self._held)

    def readline(self, size: int | None = -1, /) -> bytes:
        most = LINE_LIMIT if size is None or size < 0 else size
        searched = 0
        while (end := self._held.find(b"\n", searched)) < 0 and len(self._held) < most and not self._ended:
            searched = len(self._held)
            self._more()
        return self._taken(min(most, end + 1 if end >= 0 else len(self._held)))

    def readinto(self, buffer: Any) -> int:
        if not self._held and not self._ended:
            self._more()
        chunk = self._taken(len(buffer))
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def is_waiting(self) -> bool:
        while b"\n" not in self._held and not self._ended:
            if not _is_ready(self._file):
                return True
            self._more()
        return False

    def _taken(self, size: int) -> bytes:
        chunk = bytes(self._held[:size])
        del self._held[:size]
        return chunk

    def _more(self) -> None:
        chunk = self._guard(self._read)
        self._held += chunk
        self._ended = not chunk

    def _read(self) -> bytes:
        chunk: bytes | None = self._file.read(_AT_ONCE)
        if chunk is None:
            raise BlockingIOError("the file is open without waiting for data")
        return chunk


def _is_ready(file: Any) -> bool:
    """Whether reading would not wait; where that cannot be told, it would."""
    try:
        return bool(select.select([file], [], [], 0)[0])
    except (OSError, ValueError):
        return False
