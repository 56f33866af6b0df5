"""Files of word vectors: GloVe text, word2vec text and binary, and NumPy archives. Only wanted words are kept."""

import re
import zipfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path
from statistics import mode
from tokenize import TokenError
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitin import compression
from hitin.errors import InputError, listed, shown
from hitin.files import Source

_ARCHIVE = ("q", "scale", "words")
_ARCHIVE_ERRORS = (  # of zipfile, zlib, and NumPy, which reads an array's shape as Python
    *(OSError, EOFError, RuntimeError, KeyError, zlib.error, zipfile.BadZipFile),
    *(ValueError, SyntaxError, TokenError),
)
_HEADER = re.compile(r"(\d{1,12}) (\d{1,5})\s*", re.ASCII)
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1f]")
_CHUNK = 1024 * 1024
_SHOWN = 3  # words of a file that has none of those wanted
_LONGEST_WORD = 10_000  # bytes that a damaged binary file is searched for the end of a word

_WHOLE = "Is the file whole, and not damaged? Copy or download it again."
_A_LINE = "Each line is a word and its numbers, single blanks between: the 0.418 0.24968 -0.41242"


class Kept:
    """The vectors kept so far. One buffer that grows: rows by themselves would need the memory twice at the end."""

    def __init__(self, wanted: Collection[str] | None) -> None:
        self.rows: dict[str, int] = {}
        self.numbers = bytearray()
        self.first: list[str] = []
        """Some words at the beginning of the file, wanted or not."""
        self.undecodable = 0
        self.missing = 0
        self.wanted = None if wanted is None else frozenset(wanted)
        self._beginnings = frozenset(word.partition(" ")[0] for word in self.wanted or ())

    @property
    def problems(self) -> list[str]:
        """What a person should look at, but no reason to refuse the rest."""
        told = []
        if self.undecodable:  # old programs cut long words in the middle of a character
            told.append(f"words that are not UTF-8 were left out: {self.undecodable:,}")
        if self.missing > 0:
            told.append(f"the header promises {self.missing:,} words more than there are: is the file whole?")
        return told

    def may_begin(self, piece: str) -> bool:
        """Whether a wanted word can begin with this piece, up to a blank; tells most lines off at once."""
        return self.wanted is None or piece in self._beginnings

    def takes(self, word: str) -> bool:
        return word not in self.rows and (self.wanted is None or word in self.wanted)

    def add(self, word: str, vector: NDArray[np.float32]) -> bool:
        """Keep a vector; `False` when some of it is no finite number."""
        self.rows[word] = len(self.rows)
        self.numbers += vector.astype(np.float32, copy=False).tobytes()
        return bool(np.isfinite(vector).all())


def read_stream(path: str | Path, kept: Kept) -> int:
    """Keep what is wanted of text or binary vectors; answers their width."""
    with Source(path, encoding="utf-8") as source:  # named, or much zero in a binary file is taken for UTF-16
        header = _header(source)
        if header and _is_binary(source, header):
            width = _read_binary(source, path, header, kept)
        else:
            width = _read_text(source, header, kept)
        if not kept.rows and kept.wanted is None:
            raise source.error("there are no vectors in the file", kind="empty-file", remedy=_A_LINE)
    return width


class _Header(NamedTuple):
    """The first line of a word2vec file."""

    words: int
    width: int


def _header(source: Source) -> _Header | None:
    match = _HEADER.fullmatch(source.first_line)
    if match is None:
        if b"\0" in source.head and source.encoding.startswith("utf-8"):
            raise source.error(
                "this is neither text nor the binary format of word2vec",
                kind="unreadable",
                remedy="Of a fastText model give the .vec file, not the .bin; save others as text.",
            )
        return None
    header = _Header(int(match[1]), int(match[2]))
    if not header.width:
        raise source.error("the header says that vectors have no numbers", kind="bad-row", line=1, remedy=_WHOLE)
    return header


def _is_binary(source: Source, header: _Header) -> bool:
    """Whether numbers are bytes: the next line does not read as text, and there is what text does not have."""
    rest = source.head.partition(b"\n")[2]
    if _numbers_at_end(rest.partition(b"\n")[0].decode(errors="replace")) >= header.width:
        return False
    return source.suffix == ".bin" or _CONTROL.search(rest) is not None


def _read_text(source: Source, header: _Header | None, kept: Kept) -> int:
    width = header.width if header else _usual_width(source)
    undecodable: list[InputError] = []
    kept.first = [line.rstrip().rsplit(" ", width)[0] for line in source.head_lines[bool(header) :][:_SHOWN]]
    lines = (text for text in source.lines(undecodable.append) if not text.isspace())
    if header:
        next(lines)
    for text in lines:
        if kept.may_begin(text[: text.find(" ")]):
            _keep_line(source, text, width, kept)
    kept.undecodable = len(undecodable)
    kept.missing = header.words - (source.line - 1) if header else 0
    return width


def _usual_width(source: Source) -> int:
    """The numbers on most of the first lines: a word may look like one, or hold blanks."""
    width = mode([_numbers_at_end(line) for line in source.head_lines] or [0])
    if not width:
        raise source.error("there are no word vectors in the file", kind="bad-row", line=1, remedy=_A_LINE)
    return width


def _numbers_at_end(line: str) -> int:
    """How many numbers follow the word, which itself may be one."""
    pieces = line.rstrip().split(" ")[1:]
    return next((at for at, piece in enumerate(reversed(pieces)) if not _is_number(piece)), len(pieces))


def _is_number(piece: str) -> bool:
    try:
        float(piece)
    except ValueError:
        return False
    return True


def _keep_line(source: Source, text: str, width: int, kept: Kept) -> None:
    """Keep the vector of a line. It is split from the right: some words of GloVe's largest files hold blanks."""
    word, *pieces = text.rstrip().rsplit(" ", width)
    if len(pieces) < width or (" " in word and _is_number(word.rpartition(" ")[2])):
        problem = f"the word should be followed by {width} numbers and is by {_numbers_at_end(text)}"
        raise source.error(problem, kind="bad-row", line=source.line, remedy=_WHOLE)
    if kept.takes(word) and not kept.add(word, _vector(pieces)):
        wrong = next(piece for piece in pieces if not np.isfinite(_vector([piece])).all())
        problem = f"{shown(wrong)} is not a number that a vector can hold"
        raise source.error(problem, kind="bad-row", line=source.line, remedy=_A_LINE)


def _vector(pieces: list[str]) -> NDArray[np.float32]:
    """Numbers from text; not a number where one cannot be read."""
    try:
        with np.errstate(over="ignore"):
            return np.array(pieces, dtype=np.float32)
    except ValueError:
        return np.full(len(pieces), np.nan, dtype=np.float32)


def _read_binary(source: Source, path: str | Path, header: _Header, kept: Kept) -> int:
    with _bytes_of(source, path) as file:
        file.readline(_CHUNK)  # the header
        for number, (name, numbers) in enumerate(_binary_words(source, file, header), start=1):
            try:
                word = name.decode()
            except UnicodeDecodeError:
                kept.undecodable += 1
                continue
            if len(kept.first) < _SHOWN:
                kept.first.append(word)
            if kept.takes(word) and not kept.add(word, np.frombuffer(numbers, dtype="<f4")):
                problem = f"the vector of word {number:,}, {shown(word)}, holds what is not a number"
                raise source.error(problem, kind="bad-row", remedy=_WHOLE)
    return header.width


def _bytes_of(source: Source, path: str | Path) -> IO[bytes]:
    """The bytes from the start. A compressed file is opened anew, which needs no room on disk; a pipe cannot be."""
    if source.compression and Path(path).is_file():
        file: IO[bytes] = compression.open_compressed(source.compression, path, "rb")
        return file
    return source.seekable_file()


def _binary_words(source: Source, file: IO[bytes], header: _Header) -> Iterator[tuple[bytes, bytes]]:
    """Each word and the bytes of its numbers. Between words there may be a line end."""
    size = 4 * header.width
    data, at = b"", 0
    for number in range(1, header.words + 1):
        blank = data.find(b" ", at)
        while blank < 0 or len(data) <= blank + size:
            more = _read(source, file)
            if not more or (blank < 0 and len(data) - at > _LONGEST_WORD):
                problem = f"the file ends or is damaged at word {number:,} of {header.words:,}"
                raise source.error(problem, kind="unreadable", remedy=_WHOLE)
            data, at = data[at:] + more, 0
            blank = data.find(b" ")
        yield data[at:blank].lstrip(b"\r\n"), data[blank + 1 : blank + 1 + size]
        at = blank + 1 + size


def _read(source: Source, file: IO[bytes]) -> bytes:
    try:
        return file.read(_CHUNK)
    except compression.reading_errors() as error:
        problem = f"the {source.compression or 'binary'} data is damaged or cut short ({error})"
        raise source.error(problem, kind="unreadable", remedy=_WHOLE) from error


def is_archive(path: str | Path) -> bool:
    """Whether a zip archive is to be expected; what is no file goes on to `Source`, which says so."""
    path = Path(path)
    return path.is_file() and (path.suffix.lower() == ".npz" or zipfile.is_zipfile(path))


def read_archive(path: str | Path, kept: Kept) -> int:
    """Keep what is wanted of `q * scale`; answers the width. The words are UTF-8 with line ends between."""
    numbers, scale, words = _archived(path)
    if numbers.ndim != 2 or len(words) != len(numbers):
        raise _bad_archive(path, f"there are {len(words):,} words, but `q` has the shape {numbers.shape}")
    kept.first = words[:_SHOWN]
    for row, word in enumerate(words):
        if kept.takes(word):
            kept.rows[word] = row
    rows = list(kept.rows.values())
    try:
        with np.errstate(all="ignore"):
            matrix = (numbers[rows] * np.broadcast_to(scale, numbers.shape)[rows]).astype(np.float32)
    except (TypeError, ValueError) as error:
        raise _bad_archive(path, f"`q` and `scale` cannot be multiplied ({error})") from error
    if not np.isfinite(matrix).all():
        raise _bad_archive(path, "some vectors hold what is not a number")
    kept.numbers += matrix.tobytes()
    return int(matrix.shape[1])


def _archived(path: str | Path) -> tuple[NDArray[Any], NDArray[Any], list[str]]:
    """What `q`, `scale` and `words` of an archive hold."""
    try:
        with zipfile.ZipFile(path) as members:
            found = [name.removesuffix(".npy") for name in members.namelist()]
        if set(_ARCHIVE) <= set(found):
            with np.load(path, allow_pickle=False) as archive:
                numbers, scale, words = (np.asarray(archive[key]) for key in _ARCHIVE)
            return numbers, scale, bytes(words).decode().split("\n")
    except _ARCHIVE_ERRORS as error:
        raise _bad_archive(path, f"the archive is damaged or of another kind ({error})") from error
    problem = f"`q`, `scale` and `words` are expected in the archive; there are: {listed(found)}"
    raise _bad_archive(path, problem, "Unpack an archive of text files first, and give one of them.")


def _bad_archive(path: str | Path, message: str, remedy: str = _WHOLE) -> InputError:
    return InputError(message, kind="unreadable", file=str(path), remedy=remedy)
