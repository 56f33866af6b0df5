"""What a comparison is made of: data sets, tables with their rows, and the cells to train, each in a folder of its own.

A cell is a row on a data set with a seed. Cells of the same run, in two tables perhaps, share their folder and are
trained once.
"""

import json
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

from hitin.locking import LOCK
from hitin.methods import METHODS, WholeMethod
from hitin.model_folder import remove_tree
from hitin.option_values import TOML_ERRORS
from hitin.settings import Run, is_plain

FORMAT = 1
RESULT = "result.json"
FAILURE = "failure.json"
DECISIONS = "decisions.npz"
MODEL = "model"
TRAINED = "trained.json"
"""What was measured of the training of a cell that is not finished."""
ERRORS = "stderr.txt"
"""What the process of a cell that is not finished complained about."""
DATA = "data"
CELLS = "cells"

Kind = Literal["main", "ablation", "height"]
State = Literal["finished", "failed", "begun", "to do"]

_DEPENDS_ON_NOTHING: dict[str, Any] = {"checkpoint_seconds": 0.0, "tensorboard": False}
"""Options that no result depends on."""


@dataclass(frozen=True)
class DataSet:
    """A taxonomy and its documents, as files."""

    name: str
    title: str
    taxonomy: str
    train: tuple[str, ...]
    val: tuple[str, ...]
    """Without any, a part of the training documents is held out."""
    test: tuple[str, ...]
    """Without any, another part of them."""
    published: str | None = None
    """Under which name the paper has numbers for it."""
    seeds: tuple[int, ...] | None = None
    """If not all of a row's seeds: which of them."""
    reading: dict[str, str] = field(default_factory=dict)
    """How its files are read, where that is otherwise than usual: `text_key`, `encoding` ..."""


@dataclass(frozen=True)
class Row:
    """A method with its settings."""

    name: str
    title: str
    run: Run
    """Its seed is 0; paths in it lead to the files."""
    kind: Kind
    seeds: tuple[int, ...]
    written: Run | None = None
    """The same with paths as they are written in the file, where that is something else."""

    @property
    def depends_on_seed(self) -> bool:
        """Methods with a training of their own draw nothing by chance: one seed stands for all."""
        return not isinstance(METHODS[self.run.method_name], WholeMethod)

    @property
    def encoder(self) -> str:
        """The text encoder, as the file names it."""
        return (self.written or self.run).encoder_name

    @property
    def text(self) -> str:
        """The run in words that are the same on every machine."""
        return (self.written or self.run).with_training(**_DEPENDS_ON_NOTHING).to_toml()

    @property
    def chosen(self) -> dict[str, dict[str, Any]]:
        """What of it is otherwise than usual, with the names of method and encoder.

        A later version of hitin may know more options: as long as these are as usual, it is the same run.
        """
        run = self.written or self.run
        usual = Run.of(method=run.method_name, encoder=run.encoder_name).to_dict()
        return {
            section: {name: value for name, value in options.items() if _is_chosen(name, value, usual[section])}
            for section, options in run.with_training(**_DEPENDS_ON_NOTHING).to_dict().items()
        }


@dataclass(frozen=True)
class Table:
    """Rows over data sets."""

    name: str
    title: str
    data: tuple[str, ...]
    rows: tuple[Row, ...]
    published: str | None = None
    """Which of the paper's tables stands beside it."""


@dataclass(frozen=True)
class Plan:
    """All that a file asks for."""

    data: tuple[DataSet, ...]
    tables: tuple[Table, ...]
    file: str

    def data_set(self, name: str) -> DataSet:
        return next(data for data in self.data if data.name == name)

    def seeds(self, row: Row, data: str) -> tuple[int, ...]:
        """The seeds of a row on a data set; the first of them where it makes no difference."""
        wanted = self.data_set(data).seeds
        chosen = tuple(seed for seed in row.seeds if wanted is None or seed in wanted)
        return chosen if row.depends_on_seed else chosen[:1]


@dataclass(frozen=True)
class Cell:
    """A row on a data set with a seed, and where its result is."""

    data: str
    row: Row
    seed: int
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.data} / {self.row.name} / seed {self.seed}"

    @property
    def state(self) -> State:
        if self.result() is not None:
            return "finished"
        if self.failure() is not None:
            return "failed"
        return "begun" if (self.folder / MODEL).is_dir() else "to do"

    def result(self) -> dict[str, Any] | None:
        """What came of it; `None` as long as it is not finished."""
        return result_in(self.folder, self.row.text)

    def failure(self) -> dict[str, Any] | None:
        """Why the last attempt failed: its `message` and the last lines it wrote (`stderr`)."""
        return read_json(self.folder / FAILURE)


def cells_of(plan: Plan, folder: Path, data_keys: Mapping[str, str]) -> list[Cell]:
    """All cells in the order of the work: the first seed of every row, then the second; data sets as in the file.

    `data_keys` are the fingerprints of the data sets. A row that stands in several tables gives a cell in each.
    """
    found, taken = [], dict[tuple[str, str], str]()
    for position in range(max((len(row.seeds) for table in plan.tables for row in table.rows), default=0)):
        for data, row in _places(plan):
            seeds = plan.seeds(row, data)
            if position < len(seeds):
                key = cell_key(row, data_keys[data])
                name = taken.setdefault((data, key), _folder_name(folder / CELLS / data, row, key))
                path = folder / CELLS / data / name / f"seed-{seeds[position]}"
                found.append(Cell(data, row, seeds[position], path))
    return found


def once(cells: Iterable[Cell]) -> list[Cell]:
    """Without those that share the folder of an earlier one."""
    found: dict[Path, Cell] = {}
    for cell in cells:
        found.setdefault(cell.folder, cell)
    return list(found.values())


def _places(plan: Plan) -> Iterator[tuple[str, Row]]:
    for data in plan.data:
        for table in plan.tables:
            if data.name in table.data:
                yield from ((data.name, row) for row in table.rows)


def cell_key(row: Row, data_key: str) -> str:
    """Equal for cells that must have the same result with the same seed, unless what is usual has changed."""
    chosen = json.dumps(row.chosen, sort_keys=True)
    return blake2b(f"{data_key}\n{chosen}".encode(), digest_size=6).hexdigest()


def _is_chosen(name: str, value: object, usual: Mapping[str, object]) -> bool:
    return name in ("method", "encoder") or name not in usual or usual[name] != value


def result_in(folder: Path, run: str) -> dict[str, Any] | None:
    """The result of a run in its folder. One from when some option usually was something else is none."""
    found = read_json(folder / RESULT)
    return found if found and found.get("format") == FORMAT and _agrees(str(found.get("run")), run) else None


def _agrees(before: str, now: str) -> bool:
    """Whether all that a run said before is what it says now. The seed is that of the cell.

    What it did not say there was not to choose yet: it was then as the setting by itself is.
    """
    try:
        said, known = tomllib.loads(before), tomllib.loads(now)
    except TOML_ERRORS:  # no result of ours
        return False
    pairs = {(section, name) for each in (said, known) for section, options in each.items() for name in options}
    for section, name in pairs:
        then, today = (each.get(section, {}).get(name) for each in (said, known))
        is_same = is_plain(section, name, today) if then is None else today == then
        if not is_same and name not in {*_DEPENDS_ON_NOTHING, "seed"}:
            return False
    return True


def _folder_name(parent: Path, row: Row, key: str) -> str:
    """That of the row, and what tells it from others; a row that was called otherwise before keeps its folder."""
    before = sorted(parent.glob(f"*-{key}"))
    return before[0].name if before else f"{slug(row.name)}-{key}"


def tidy(folder: Path, *, keep_model: bool) -> None:
    """Remove what a finished cell needs no longer."""
    if not keep_model:
        remove_tree(folder / MODEL)
    for name in (TRAINED, ERRORS, LOCK):
        (folder / name).unlink(missing_ok=True)


def slug(name: str) -> str:
    """A name that every file system takes."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "row"


def read_json(path: Path) -> dict[str, Any] | None:
    """The object of a file; `None` where there is none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None
