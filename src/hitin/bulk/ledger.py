"""Which shards are finished: a small file for each beside the answers, written just before by whoever writes them.

So many may finish at once, on several machines, and none waits for another. A file that a kill left unfinished is not
believed, nor are answers that are not those it tells of. Answers of which none tells are someone else's file.
"""

import errno
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from hitin.bulk.shards import Shard
from hitin.errors import InputError
from hitin.files import is_there
from hitin.model_folder import checksum_of, remove_tree
from hitin.trust import unique_json
from hitin.writing import check_folder, remove_leftovers, replacing, unwritable, write_text

FOLDER = ".hitin"
"""In the folder of answers: what was asked, and a folder of records."""
REQUEST = "request.json"
RECORDS = "shards"
FORMAT = 1


@dataclass(frozen=True)
class Stamp:
    """What a look at a file tells."""

    size: int
    modified: int
    """In nanoseconds."""

    @classmethod
    def of(cls, path: Path) -> "Stamp":
        found = path.stat()
        return cls(found.st_size, found.st_mtime_ns)


@dataclass(frozen=True)
class Finished:
    """A shard whose answers are written."""

    name: str
    rows: int
    size: int
    checksum: str
    seconds: float
    input: Stamp
    input_checksum: str


@dataclass(frozen=True)
class Failed:
    """A shard that cannot be scored, and why."""

    name: str
    error: InputError


class Ledger:
    """The records of a folder of answers, for one request."""

    def __init__(self, out: str | Path, asked: Mapping[str, Any]) -> None:
        self.out = Path(out)
        self.asked = {"format": FORMAT, **asked}
        self.key = sha256(json.dumps(self.asked, sort_keys=True).encode()).hexdigest()
        """Of the request, which every record repeats."""

    def begin(self, shards: Iterable[Shard], *, overwrite: bool) -> None:
        """Refuse a folder that holds something else, unless it is to be overwritten."""
        check_folder(self.out / FOLDER, REQUEST)
        path = self.out / FOLDER / REQUEST
        if overwrite:
            self._clear(shards)
        else:
            was_begun = path.exists()
            if was_begun:
                self._check(path)
            for shard in shards:
                if is_there(self.out / shard.name) and not (was_begun and self.has_record(shard)):
                    raise _in_the_way(self.out / shard.name)
        if not path.exists():
            write_text(path, [json.dumps(self.asked, indent=2) + "\n"])

    def finished(self, shard: Shard) -> Finished | None:
        """The record of a shard whose answers are there, for this request and this file; `None` otherwise."""
        found = self._record(self._path(shard.name))
        if found is None or found.name != shard.name:
            return None
        return found if self._is_of(found, Path(shard.file)) and self.is_whole(found) else None

    def has_record(self, shard: Shard) -> bool:
        return is_there(self._path(shard.name))

    def is_whole(self, record: Finished) -> bool:
        """Whether the answers are those that were written."""
        answers = self.out / record.name
        try:
            return answers.stat().st_size == record.size and checksum_of(answers) == record.checksum
        except OSError:
            return False

    def note(self, record: Finished) -> None:
        """Let a shard count as finished as soon as its answers are there: what has no record is not ours."""
        with replacing(self._path(record.name)) as part:
            part.write_text(json.dumps({"request": self.key, **asdict(record)}) + "\n", encoding="utf-8")

    def forget(self, name: str) -> None:
        """Let a shard count as unfinished: its answers are not believed."""
        for path in (self.out / name, self._path(name)):
            _remove(path)

    def remove_leftovers(self, shards: Iterable[Shard]) -> None:
        """Remove what a kill left of files that were being written."""
        written = {path.parent for shard in shards for path in (self.out / shard.name, self._path(shard.name))}
        for folder in (self.out / FOLDER, *written):
            try:
                remove_leftovers(folder)
            except OSError as error:
                raise unwritable(folder, error) from error

    def _path(self, name: str) -> Path:
        return self.out / FOLDER / RECORDS / f"{name}.json"

    def _record(self, path: Path) -> Finished | None:
        """What a file says, if it is of this request."""
        try:
            found = unique_json(path.read_text(encoding="utf-8"))
            if found.pop("request") != self.key:
                return None
            return Finished(**{**found, "input": Stamp(**found["input"])})
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def _is_of(self, record: Finished, file: Path) -> bool:
        """Whether a record is of this file as it is now. A copy has another time, but the same bytes."""
        try:
            now = Stamp.of(file)
            return now == record.input or (now.size == record.input.size and checksum_of(file) == record.input_checksum)
        except OSError:
            return False

    def _check(self, path: Path) -> None:
        try:
            before = unique_json(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            before = None
        if before != self.asked:
            raise InputError(
                f"the folder holds answers to something else: {_difference(before, self.asked)}",
                kind="other-request",
                file=str(self.out),
                remedy="Choose another --out; --overwrite removes those answers and begins anew.",
            )

    def _clear(self, shards: Iterable[Shard]) -> None:
        """Remove the answers that were written here, whatever was asked; but none that are to be read."""
        records = self.out / FOLDER / RECORDS
        names = [path.relative_to(records).with_suffix("").as_posix() for path in sorted(records.rglob("*.json"))]
        removed = {(self.out / name).resolve() for name in names}
        for shard in shards:
            if Path(shard.file).resolve() in removed:
                raise _would_be_removed(shard)
        for name in names:
            self.forget(name)
        remove_tree(records)
        _remove(self.out / FOLDER / REQUEST)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:  # as no file is called
            raise unwritable(path, error) from error


def _difference(before: object, now: Mapping[str, Any]) -> str:
    """What is not as it was asked, in the words of the options."""
    if not isinstance(before, dict):
        return f"{REQUEST} is damaged"
    names = [name for name in now if before.get(name) != now[name]]
    if "options" in names:
        old = before.get("options")
        options = [
            name for name in now["options"] if not isinstance(old, dict) or old.get(name) != now["options"][name]
        ]
        names = [name for name in names if name != "options"] + [f"--{name.replace('_', '-')}" for name in options]
    return f"another {' and '.join(names)}"


def _would_be_removed(shard: Shard) -> InputError:
    return InputError(
        "this file of documents is among the answers that --overwrite removes",
        kind="clash",
        file=shard.file,
        remedy="Choose another --out.",
    )


def _in_the_way(path: Path) -> InputError:
    return InputError(
        "there is a file already where answers are to be written",
        kind="file-exists",
        file=str(path),
        remedy="Move it away or choose another --out; --overwrite replaces it.",
    )
