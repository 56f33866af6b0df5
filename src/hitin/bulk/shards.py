"""Which files of a folder are scored, and the file of answers that each becomes."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, get_args

from hitin.answering import TEXT_SUFFIX
from hitin.compression import format_suffix, of_path
from hitin.errors import InputError, listed, shown
from hitin.files import STANDARD_INPUT, is_there
from hitin.option_values import bad_option
from hitin.records import SUFFIXES

AnswerFormat = Literal["auto", "jsonl", "parquet"]
"""What answers are written as; `auto` is Parquet for Parquet, else JSON lines, compressed as the documents are."""

_KNOWN = (*SUFFIXES, TEXT_SUFFIX)
_PARQUET = ".parquet"
_LONGEST = 255 - len(".json")  # bytes of a name, on most file systems, that leave room for that of a record
_NO_PIPES = "Name a folder or files, or leave out --engine."


@dataclass(frozen=True)
class Shard:
    """A file of documents."""

    file: str
    name: str
    """Of the file of answers, in the folder of all answers; always with `/`."""
    size: int = 0


@dataclass(frozen=True)
class Found:
    """The shards of what was named, in order, and the files that are left aside: what they are is not known."""

    shards: list[Shard]
    others: list[str]


def find_shards(
    inputs: Iterable[str | Path], out: str | Path, *, format: str = "auto", to: AnswerFormat = "auto"
) -> Found:
    """The files of folders and those that are named themselves. Nothing is written over what is read."""
    shards: list[Shard] = []
    others: list[str] = []
    for given in map(Path, inputs):
        _check_apart(given, Path(out))
        for path in _files(given, Path(out)) if given.is_dir() else [given]:
            if given.is_dir() and not _is_known(path, format):
                others.append(str(path))
                continue
            name = path.relative_to(given) if given.is_dir() else Path(path.name)
            shards.append(Shard(str(path), answers_name(name, format, to), _size(path)))
    if not shards:
        raise _no_shards(others)
    shards = _each_once(shards)
    _check_names(shards, Path(out))
    return Found(shards, others)


def _each_once(shards: Iterable[Shard]) -> list[Shard]:
    """Without those that were named again."""
    return list({(shard.name, Path(shard.file).resolve()): shard for shard in shards}.values())


def answers_name(file: Path, format: str, to: AnswerFormat) -> str:
    """`a/b.jsonl.gz` of `a/b.csv.gz`; a suffix that is not known is kept."""
    if to not in get_args(AnswerFormat):
        raise bad_option(f"answers cannot be written as {shown(to)}", "They are jsonl or parquet.")
    compression = file.suffix if of_path(file) else ""
    suffix = format_suffix(file)
    bare = file.with_name(file.name.removesuffix(compression))
    bare = bare.with_suffix("") if suffix in _KNOWN else bare
    is_parquet = to == "parquet" or (to == "auto" and (format == "parquet" or suffix == _PARQUET))
    return f"{bare.as_posix()}{_PARQUET if is_parquet else '.jsonl' + compression}"


def _files(folder: Path, out: Path) -> Iterator[Path]:
    """The files of a folder and of those in it, but for the hidden and those that begin with `_`, as Spark's do.

    Links to folders are followed, unless they lead back to a folder in which they lie.
    """

    def refuse(error: OSError) -> None:
        raise InputError(
            f"the folder cannot be read ({error.strerror})",
            kind="unreadable",
            file=str(error.filename),
            remedy="Check its permissions.",
        ) from error

    for parent, folders, files in os.walk(folder, onerror=refuse, followlinks=True):
        folders[:] = sorted(name for name in folders if _is_shown(name) and not _leads_back(Path(parent, name), folder))
        for link in (path for path in (Path(parent, name) for name in folders) if path.is_symlink()):
            _check_apart(link, out)
        yield from (Path(parent, name) for name in sorted(filter(_is_shown, files)))


def _leads_back(path: Path, top: Path) -> bool:
    """Whether a folder is a link to one on the way to it."""
    if not path.is_symlink():
        return False
    way = [parent for parent in path.parents if parent.is_relative_to(top)]
    return any(path.samefile(parent) for parent in way)


def _is_shown(name: str) -> bool:
    return not name.startswith((".", "_"))


def _is_known(path: Path, format: str) -> bool:
    """Whether it is known how to read a file. A pipe would be waited for; a broken link is told when it is read."""
    is_file = path.is_file() or not path.exists()
    return is_file and (format != "auto" or format_suffix(path) in _KNOWN)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # told when it is read
        return 0


def check_name(shard: Shard) -> None:
    """Whether files may be called as its answers are, and as the record of them is."""
    if len(os.fsencode(PurePosixPath(shard.name).name)) > _LONGEST:
        raise InputError(
            "the name is too long for a file of answers", kind="bad-name", file=shard.file, remedy="Rename it."
        )


def _check_apart(given: Path, out: Path) -> None:
    if str(given) == STANDARD_INPUT:
        raise bad_option("standard input is no shard", _NO_PIPES)
    if not is_there(given):
        raise InputError("there is no such file or folder", kind="missing-file", file=str(given), remedy="Check it.")
    if not given.is_file() and not given.is_dir():  # what was read of it is gone when its answers are looked at
        raise bad_option(f"{given} is a pipe or a device, which is no shard: it can be read once only", _NO_PIPES)
    if given.is_dir() and out.resolve().is_relative_to(given.resolve()):
        raise InputError(
            "the answers would lie among the documents",
            kind="bad-option",
            file=str(out),
            remedy="Choose another --out.",
        )


def _no_shards(others: Sequence[str]) -> InputError:
    aside = f"; not known by their suffixes: {listed([Path(name).name for name in others])}" if others else ""
    return InputError(
        f"there are no files of documents{aside}",
        kind="no-documents",
        remedy=f"They end in {', '.join(_KNOWN)}, perhaps compressed; --format names the format of others.",
    )


def _check_names(shards: Sequence[Shard], out: Path) -> None:
    """No two become the same file, nor one a file and the other a folder, nor does one become what is read."""
    read = {str(Path(shard.file).resolve()) for shard in shards}
    taken: dict[str, str] = {}
    folders = {str(parent): shard.file for shard in shards for parent in PurePosixPath(shard.name).parents}
    for shard in shards:
        before = folders.get(shard.name) or taken.setdefault(shard.name, shard.file)
        if before != shard.file:
            raise InputError(
                f"its answers and those of {shown(before)} would both be {shown(shard.name)}",
                kind="clash",
                file=shard.file,
                remedy="Rename one of them, or score them into folders of their own.",
            )
        if str((out / shard.name).resolve()) in read:
            raise InputError(
                "its answers would take its place", kind="clash", file=shard.file, remedy="Choose another --out."
            )
