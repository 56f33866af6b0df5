"""Compressed files: told apart by their first bytes, written by their suffix."""

import bz2
import gzip
import io
import lzma
import re
import sys
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from hitin.extras import need

SUFFIXES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz", ".zst": "zstd"}
_MAGIC = {
    re.compile(rb"\x1f\x8b"): "gzip",
    re.compile(rb"BZh[1-9](1AY&|\x17rE8)"): "bzip2",  # of data, or of none; a text may begin with BZh
    re.compile(rb"\xfd7zXZ\x00"): "xz",
    re.compile(rb"\x28\xb5\x2f\xfd"): "zstd",
}

ZIP = b"PK\x03\x04"
"""How a zip archive begins, and a spreadsheet, which is one."""

_CHUNK = 64 * 1024
_ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"


def recognise(head: bytes) -> str | None:
    """The compression of a file that begins with these bytes."""
    return next((name for mark, name in _MAGIC.items() if mark.match(head)), None)


def of_path(path: str | Path) -> str | None:
    """The compression that a file's name asks for."""
    return SUFFIXES.get(Path(path).suffix.lower())


def format_suffix(path: str | Path) -> str:
    """A file's suffix in lower case, less that of the compression: `.jsonl` of `train.jsonl.xz`."""
    path = Path(path)
    return (path.with_suffix("") if of_path(path) else path).suffix.lower()


def open_compressed(compression: str, file: Any, mode: str) -> Any:
    """A file or path through one of the libraries, which all open alike. What is written is the same every time."""
    if compression == "gzip" and mode == "wb":
        return _timeless_gzip(file)
    if compression in _STREAMS and mode == "rb":
        return io.BufferedReader(_Streams(file, *_STREAMS[compression]), buffer_size=_CHUNK)
    library = {"gzip": gzip, "bzip2": bz2, "xz": lzma}.get(compression) or zstd()
    return library.open(file, mode)


def open_zipped(file: Any, choose: Callable[[list[str]], str]) -> Any:
    """The file of a zip archive that `choose` names among all of them, unpacked as it is read."""
    try:
        with zipfile.ZipFile(file) as archive:
            return archive.open(choose(archive.namelist()))
    except RuntimeError as error:  # a password, or a compression that is not known
        raise zipfile.BadZipFile(str(error)) from error


class _Streams(io.RawIOBase):
    """What comes out of the compressed streams of a file or path, which is closed with it; after one, only another.

    The readers of `bz2` and `lzma` take a later stream that is damaged for something else behind the data, and end
    there as if all were well.
    """

    def __init__(self, file: Any, begin: Callable[[], Any], padding: bytes) -> None:
        """`padding` may stand behind a stream."""
        self._file = Path(file).open("rb") if isinstance(file, str | Path) else file  # noqa: SIM115
        self._begin, self._padding = begin, padding
        self._stream = begin()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = b""
        while not data:
            packed = self._packed()
            if packed is None:
                return 0
            data = self._stream.decompress(packed, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()

    def _packed(self) -> bytes | None:
        """Bytes for the stream, which may be the next one; nothing where the last one has ended."""
        if self._stream.eof:
            return self._next()
        packed: bytes = self._file.read1(_CHUNK) if self._stream.needs_input else b""
        if self._stream.needs_input and not packed:
            raise EOFError("it ends within the data")
        return packed

    def _next(self) -> bytes | None:
        """The first bytes of the stream behind one that has ended."""
        packed = self._stream.unused_data.lstrip(self._padding)
        while not packed:
            chunk = self._file.read1(_CHUNK)
            if not chunk:
                return None
            packed = chunk.lstrip(self._padding)
        self._stream = self._begin()
        return bytes(packed)


_STREAMS: dict[str, tuple[Callable[[], Any], bytes]] = {
    "bzip2": (bz2.BZ2Decompressor, b""),
    "xz": (partial(lzma.LZMADecompressor, lzma.FORMAT_XZ), b"\0"),
}


def _timeless_gzip(path: str | Path) -> gzip.GzipFile:
    """Written without the time and the name of the file, which gzip keeps otherwise."""
    stream = Path(path).open("wb")  # noqa: SIM115
    file = gzip.GzipFile(filename="", mode="wb", fileobj=stream, mtime=0)
    file.myfileobj = stream  # type: ignore[assignment]  # which is closed with it
    return file


def zstd() -> ModuleType:
    """Zstandard from the standard library (Python 3.14) or its back-port."""
    return need(_ZSTD, extra="zstd", purpose="A .zst file")


def reading_errors() -> tuple[type[Exception], ...]:
    """What is raised for data that cannot be had, or is damaged or cut short."""
    errors: tuple[type[Exception], ...] = (
        *(EOFError, OSError, ValueError),
        *(zlib.error, lzma.LZMAError, zipfile.BadZipFile),
    )
    return (*errors, sys.modules[_ZSTD].ZstdError) if _ZSTD in sys.modules else errors
