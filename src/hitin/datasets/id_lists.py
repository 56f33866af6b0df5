"""Lists of the articles of the New York Times for training, validation and test, as others have published them."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hitin.errors import InputError, listed, shown
from hitin.files import Source
from hitin.splitting import SPLITS, Split

_NAMES: dict[Split, tuple[str, ...]] = {"train": ("train",), "val": ("val", "dev"), "test": ("test",)}
_WHEN = r"(?:(?P<when>(?:19|20)\d\d(?:/\d\d(?=/\d\d/))?)/(?:\d\d/)?)?"
_ENTRY = re.compile(rf"(?:^|/){_WHEN}(?P<number>\d{{1,9}})(?:\.xml)?$", re.IGNORECASE)


class Listed(NamedTuple):
    """An article: the splits whose lists have it, the month or year where it has a path, what it is called there."""

    splits: tuple[Split, ...]
    """As often as it is listed: published lists share some articles."""
    when: str | None
    """Such as `1987/01` or `1987`."""
    name: str


_THREE = (
    "three files, with train, val and test in their names: lines such as 1987/01/25/0008401.xml. They are not part of "
    "the archive."
)


def read_lists(folder: Path | None) -> dict[int, Listed]:
    """The listed articles by their numbers, from the three files of a folder."""
    if folder is None:
        problem = "the lists of the articles for train, val and test are missing"
        raise InputError(problem, kind="missing-file", remedy=f"Name their folder with --ids: {_THREE}")
    files = _find_lists(folder)
    articles: dict[int, Listed] = {}
    for split, path in files.items():
        with Source(path, names_encoding=False) as source:
            entries = list(_entries(source))
            if not entries:
                raise source.error(
                    "this list names no article", kind="no-documents", remedy=f"There should be {_THREE}"
                )
            for line, entry in entries:
                number, one = _listed(entry, split, source, line)
                known = articles.get(number)
                articles[number] = known._replace(splits=(*known.splits, split)) if known else one
    return articles


def _find_lists(folder: Path) -> dict[Split, Path]:
    """The file of each split: the one with train, val (or dev), or test in its name."""
    if not folder.is_dir():
        raise InputError(
            "this is no folder", kind="no-such-file", file=str(folder), remedy="--ids is the folder of the three lists."
        )
    names = sorted(path.name for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    found: dict[Split, Path] = {}
    for split in SPLITS:
        fitting = [name for name in names if any(word in name.lower() for word in _NAMES[split])]
        if len(fitting) != 1:
            problem = "is missing" if not fitting else f"may be any of {listed(fitting)}"
            raise InputError(
                f"the list of the articles for {split} {problem}",
                kind="missing-file",
                file=str(folder),
                remedy=f"It should hold {_THREE}",
            )
        found[split] = folder / fitting[0]
    return found


def _entries(source: Source) -> Iterator[tuple[int | None, str]]:
    """What a list has on its lines, each with its number; or in a list of JSON, whose lines mean nothing."""
    if source.first_line.lstrip().startswith("["):
        try:
            entries = json.loads(source.text())
        except (ValueError, RecursionError) as error:
            remedy = "Is it whole?"
            raise source.error(f"this is no list of JSON ({error})", kind="bad-record", remedy=remedy) from error
        yield from ((None, str(entry)) for entry in entries)
        return
    for line in source.lines():
        if entry := line.strip().strip("\"',").strip():
            yield source.line, entry


def _listed(entry: str, split: Split, source: Source, line: int | None) -> tuple[int, Listed]:
    found = _ENTRY.search(entry.replace("\\", "/").strip())
    if found is None:
        raise source.error(
            f"{shown(entry)} names no article",
            kind="bad-record",
            line=line,
            remedy="An article is a path or a file's name, such as 1987/01/25/0008401.xml.",
        )
    return int(found["number"]), Listed((split,), found["when"], entry)
