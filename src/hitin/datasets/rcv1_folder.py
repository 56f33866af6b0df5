"""The files of RCV1-v2, found in one folder or in those below it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hitin.datasets.reuters import DAY, STORY, WHOLE
from hitin.errors import InputError, listed

HIERARCHY = "rcv1.topics.hier.orig"
TOPICS = "rcv1-v2.topics.qrels"
TRAINING = "lyrl2004_tokens_train.dat"
ALL_NUMBERS = "rcv1v2-ids.dat"
TEST = tuple(f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4))

_APPENDIX = "It is one of the on-line appendices of LYRL2004 (Lewis and others, JMLR 5, 2004); as .gz it will do, too."
_ARCHIVE = re.compile(r".+\.(?:tar(?:\.\w+)?|t[bgx]z2?|zip|7z|rar)", re.IGNORECASE)


class Rcv1Folder(NamedTuple):
    """What was found."""

    hierarchy: Path
    topics: Path | None
    """Without, the topics are those in the XML."""
    training: Path
    days: tuple[Path, ...]
    """Zips, and folders with XML, or the archive of all; none where there are token files alone."""
    tokens: tuple[Path, ...]
    unread: Path | None = None
    """The archive of all that lies beside the days, if there are both."""


def find_rcv1(folder: Path, ids: Path | None = None) -> Rcv1Folder:
    """The files that are needed, or an `InputError` that says which one is missing and where it belongs."""
    days, named = _look_through(folder)
    if not days and not any(name in named for name in TEST):
        raise _no_stories(folder, [path.name for path in named.values() if _ARCHIVE.fullmatch(path.name)])
    hierarchy = _needed(folder, named, HIERARCHY)
    if days:
        training = ids or named.get(TRAINING) or named.get(ALL_NUMBERS)
        if training is None:
            raise _missing_training(folder)
        archives = [path for path in named.values() if WHOLE.fullmatch(path.name) and path not in days]
        return Rcv1Folder(hierarchy, named.get(TOPICS), training, days, (), next(iter(archives), None))
    topics, tokens = _needed(folder, named, TOPICS), [_needed(folder, named, name) for name in (TRAINING, *TEST)]
    return Rcv1Folder(hierarchy, topics, ids or tokens[0], (), tuple(tokens))


def _look_through(folder: Path) -> tuple[tuple[Path, ...], dict[str, Path]]:
    """The days, zipped or as folders of XML, in their order; and the other files by name, less .gz and .txt.

    Without a day, the archive that all of them are in.
    """
    if not folder.is_dir():
        problem = "this is a file, not a folder" if folder.exists() else "there is no such folder"
        raise InputError(
            problem, kind="no-such-file", file=str(folder), remedy="Give the folder of the discs or files."
        )
    days: list[Path] = []
    named: dict[str, Path] = {}
    for place, all_files in _folders(folder):
        files = [name for name in all_files if not name.startswith(".")]  # what a Macintosh adds to each
        days += [place / name for name in files if DAY.fullmatch(name)]
        days += [place] * any(STORY.fullmatch(name) for name in files)
        for name in sorted(name for name in files if not STORY.fullmatch(name)):
            named.setdefault(name.removesuffix(".gz").removesuffix(".txt"), place / name)  # as browsers save them
    days = days or [path for path in named.values() if WHOLE.fullmatch(path.name)]
    return tuple(sorted(days, key=lambda day: (day.stem, str(day)))), named


def _folders(folder: Path) -> Iterator[tuple[Path, list[str]]]:
    """A folder and those below it, also behind links, each once, with the names of their files."""
    seen = set(folder.resolve().parents)  # a link to one of these leads round in a circle
    for place, below, files in os.walk(folder, followlinks=True):
        real = Path(place).resolve()
        if real in seen:
            below.clear()
            continue
        seen.add(real)
        below.sort()
        yield Path(place), files


def _no_stories(folder: Path, archives: list[str]) -> InputError:
    unread = f" Not read: {listed(archives)}; a tar archive of all days needs rcv1 in its name." if archives else ""
    return InputError(
        "there are neither stories of Reuters nor the token files of those for test in this folder, or below it",
        kind="missing-file",
        file=str(folder),
        remedy="It should hold the discs (rcv1.tar.xz, 19960820.zip ..., or the *newsML.xml in them), or the token "
        f"files {TRAINING} and lyrl2004_tokens_test_pt0.dat to pt3.dat.{unread}",
    )


def _needed(folder: Path, named: dict[str, Path], name: str) -> Path:
    if name in named:
        return named[name]
    raise InputError(
        f"{name} is missing", kind="missing-file", file=str(folder), remedy=f"Put it into this folder. {_APPENDIX}"
    )


def _missing_training(folder: Path) -> InputError:
    return InputError(
        "which stories are for training is not known",
        kind="missing-file",
        file=str(folder),
        remedy=f"Put {TRAINING} or {ALL_NUMBERS} into this folder, or name a list of their numbers, one a line, "
        f"with --ids. {_APPENDIX}",
    )
