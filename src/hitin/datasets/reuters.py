"""The stories of Reuters' Corpus Volume 1: its XML, loose, zipped by days or in one archive; LYRL2004's token files."""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple
from zipfile import ZipFile

from hitin.datasets.xml_files import (
    LARGEST,
    archive_errors,
    bad_xml,
    loose_file,
    packed_files,
    read_xml,
    text_of,
    too_large,
)
from hitin.errors import InputError, shown
from hitin.files import FileProgress, Source

DAY = re.compile(r"\d{8}\.zip", re.IGNORECASE)
"""The archive of a day on the discs, such as `19960820.zip`. What else is zipped there are no stories."""
WHOLE = re.compile(r"[^/]*rcv1[^/]*\.(?:tar(?:\.\w+)?|t[bgx]z2?)", re.IGNORECASE)
"""All days in one archive: `rcv1.tar.xz`, as it is downloaded, or another with rcv1 in its name."""
STORY = re.compile(r"(\d+)newsML\.xml", re.IGNORECASE)

_TOPICS = "bip:topics:1.0"
_COUNTRIES = "bip:countries:1.0"
_EVERY = 1000  # stories between two signs of life


class Story(NamedTuple):
    """A story, its topics as they are in its own file (none in token files), and where it stands."""

    number: int
    text: str
    topics: tuple[str, ...]
    has_region: bool
    file: str
    line: int | None = None


def xml_stories(days: Sequence[Path], advance: FileProgress | None = None) -> Iterator[Story]:
    """The stories of zips and of folders, day by day, those of a day by their numbers; of an archive as they come."""
    is_empty = True
    for done, day in enumerate(days):
        if advance:
            advance("stories", done, len(days))
        for data, file in _files_of(day):
            is_empty = False
            yield _story(data, file)
    if is_empty and days and WHOLE.fullmatch(days[0].name):  # others are named with all that are missing
        raise InputError(
            "there is no story (such as 2286newsML.xml) in this archive",
            kind="missing-documents",
            file=str(days[0]),
            remedy="Unpack it; the zips of days that may be in it can stay as they are.",
        )


def token_stories(files: Sequence[Path], advance: FileProgress | None = None) -> Iterator[Story]:
    """The stories of token files: stems without stop words, in the order in which they are written there."""
    whole, before = sum(path.stat().st_size for path in files), 0
    for path in files:
        with Source(path, encoding="latin-1") as source:
            for count, story in enumerate(_tokens_of(source)):
                if advance and count % _EVERY == 0:
                    advance("stories", before + source.position, whole)
                yield story
            before += source.size


def token_numbers(path: Path) -> Iterator[int]:
    """The numbers of the stories of a token file."""
    with Source(path, encoding="latin-1") as source:
        for line in source.lines():
            if line.startswith(".I"):
                yield number_in(line[2:], source)


def listed_number(line: str, source: Source) -> int:
    """The number on a line of a list, which may be the name of its file or a path."""
    name = line.strip().replace("\\", "/").rpartition("/")[2]
    story = STORY.fullmatch(name)
    return number_in(
        story[1] if story else name, source, "A list has the number of a story on each line, such as 2286."
    )


def number_in(text: str, source: Source, remedy: str = "Is this the file as it was downloaded?") -> int:
    """A number that stands on the line which was read last."""
    text = text.strip()
    if not _is_number(text):
        problem = f"{shown(text)} is not the number of a story"
        remedy = "The file looks like UTF-16: save it as UTF-8." if "\0" in text else remedy
        raise source.error(problem, kind="bad-record", line=source.line, remedy=remedy)
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19


def _files_of(day: Path) -> Iterator[tuple[bytes, str]]:
    """The bytes of each story of a day, and what it is called."""
    try:
        if day.is_dir():
            yield from _loose(day)
        elif DAY.fullmatch(day.name):
            yield from _zipped(day)
        else:
            yield from _in_one(day)
    except InputError:
        raise
    except archive_errors() as error:
        what = "the folder of this day cannot be read" if day.is_dir() else "the archive is damaged or cut short"
        remedy = "Copy or download it again."
        raise InputError(f"{what} ({error})", kind="unreadable", file=str(day), remedy=remedy) from error


def _in_one(archive: Path) -> Iterator[tuple[bytes, str]]:
    """Of an archive of all days; one in which the days are zips is not unpacked twice."""
    for _, data, place in packed_files(archive, lambda name: bool(STORY.fullmatch(name))):
        yield data, place


def _loose(day: Path) -> Iterator[tuple[bytes, str]]:
    for name in _in_order(path.name for path in day.iterdir()):
        yield loose_file(day / name), str(day / name)


def _zipped(day: Path) -> Iterator[tuple[bytes, str]]:
    with ZipFile(day) as archive:
        for name in _in_order(archive.namelist()):
            if archive.getinfo(name).file_size > LARGEST:
                raise too_large(f"{day}/{name}")
            yield archive.read(name), f"{day}/{name}"


def _in_order(names: Iterable[str]) -> list[str]:
    """Those of stories, by their numbers."""
    numbers = {name: STORY.fullmatch(name.rpartition("/")[2]) for name in names}
    return [name for _, name in sorted((int(found[1]), name) for name, found in numbers.items() if found)]


def _story(data: bytes, file: str) -> Story:
    """The paragraphs, or the title where none has text; and the topics that Reuters gave it."""
    root = read_xml(data, file)
    number = root.get("itemid", "")
    if root.tag != "newsitem" or not _is_number(number):
        raise bad_xml("this is no story of Reuters: it should be a newsitem with an itemid", file)
    paragraphs = filter(None, (text_of(p) for text in root.iter("text") for p in text.iter("p")))
    parts = [*paragraphs] or [*map(text_of, root.findall("title"))]
    codes = {
        kind: tuple(
            code.get("code", "") for codes in root.iter("codes") if codes.get("class") == kind for code in codes
        )
        for kind in (_TOPICS, _COUNTRIES)
    }
    return Story(int(number), "\n".join(parts), codes[_TOPICS], bool(codes[_COUNTRIES]), file)


def _tokens_of(source: Source) -> Iterator[Story]:
    """`.I 2286`, `.W`, lines of tokens, a blank line; and the next one."""
    number: int | None = None
    words: list[str] | None = None  # there after .W
    begins = 0
    for line in source.lines():
        if line.startswith(".I"):
            if number is not None:
                yield _of_tokens(source, number, begins, words)
            number, begins, words = number_in(line[2:], source), source.line, None
        elif line.strip() == ".W" and number is not None and words is None:
            words = []
        elif line.strip():
            if words is None:
                raise _no_token_file(source, source.line)
            words += line.split()
    if number is None:
        raise _no_token_file(source, 1)
    yield _of_tokens(source, number, begins, words)


def _of_tokens(source: Source, number: int, line: int, words: list[str] | None) -> Story:
    if words is None:
        raise source.error(
            f"story {number} has no .W: the file is cut short or damaged",
            kind="bad-record",
            line=line,
            remedy="Download it again.",
        )
    return Story(number, " ".join(words), (), True, source.name, line)


def _no_token_file(source: Source, line: int) -> InputError:
    return source.error(
        "this is no token file: .I and a number, then .W, then tokens",
        kind="bad-record",
        line=line,
        remedy="Is this the file as it was downloaded?",
    )
