"""A comparison in a folder: what it is made of, checked before anything is trained, and what has come of it so far."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hitin.compare.cells import CELLS, RESULT, Cell, DataSet, Plan, cells_of, once, read_json
from hitin.compare.data import data_file, settle_data
from hitin.compare.places import Place, check_precision, places_of
from hitin.compare.plan import only, read_plan
from hitin.encoders.transformer import TransformerSettings, load_pretrained
from hitin.errors import InputError
from hitin.files import FileProgress, is_file
from hitin.model_kinds import kind_of
from hitin.settings import Run
from hitin.writing import check_folder


@dataclass(frozen=True)
class Comparison:
    """A plan with its cells, and where these are to run."""

    plan: Plan
    folder: Path
    data_keys: dict[str, str]
    cells: list[Cell]
    """All of the plan."""
    wanted: list[Cell]
    """Those that are to be trained now."""
    places: list[Place]
    warnings: tuple[str, ...]

    def unasked(self) -> int:
        """How many results of the folder belong to nothing that the file asks for: it has changed since, perhaps."""
        known = {cell.folder for cell in self.cells}
        return sum(path.parent not in known for path in (self.folder / CELLS).glob(f"*/*/seed-*/{RESULT}"))

    def states(self) -> Counter[str]:
        return Counter(cell.state for cell in once(self.cells))


def prepare(
    file: str | Path,
    out: str | Path | None = None,
    *,
    devices: Sequence[str] = (),
    at_once: int = 1,
    patterns: Sequence[str] = (),
    trains: bool = True,
    writes: bool = True,
    progress: FileProgress | None = None,
) -> Comparison:
    """What is to be done, after all that can be wrong with it. Documents are read where that was not done before.

    Without `trains` nothing is to be trained: what is needed for that is not looked for. Without `writes` the folder
    stays as it is.
    """
    plan, folder = read_plan(file), _folder_of(file) if out is None else Path(out)
    check_folder(folder, "index.html")
    wanted = only(plan, patterns) if patterns else plan
    places = places_of(devices, at_once) if trains else []
    if trains:
        _check_runs(wanted, places)
    used = [data for data in plan.data if any(data.name in table.data for table in plan.tables)]
    trained_on = {name for table in wanted.tables if table.rows for name in table.data} if trains else set()
    keys, warnings = {}, []
    for data in used:
        known = None if data.name in trained_on else _known_key(folder, data)
        keys[data.name], told = (
            (known, ()) if known and not trains else _key(data, plan, folder, progress, known, writes)
        )
        warnings += [f"{data.name}: {message}" for message in told]
    cells = cells_of(plan, folder, keys)
    rows = [row for table in wanted.tables for row in table.rows]
    chosen = [cell for cell in cells if any(cell.row is row for row in rows)]
    if trains:
        _check_encoders(cell.row.run for cell in chosen if cell.result() is None)
    return Comparison(plan, folder, keys, cells, chosen, places, tuple(warnings))


def _folder_of(file: str | Path) -> Path:
    """Where the results of a comparison are, unless another folder is named."""
    folder = Path(file).with_suffix("")
    if folder == Path(file):
        raise InputError(
            "the folder of the results would be called like this file, whose name has no ending",
            kind="bad-option",
            file=str(file),
            remedy="Name the folder with --out, or call the file .toml.",
        )
    return folder


def _known_key(folder: Path, data: DataSet) -> str | None:
    """That of the documents as they were read last: results can be looked at where they are no more."""
    known = read_json(data_file(folder, data.name)) or {}
    return str(known["key"]) if "key" in known else None


def _key(
    data: DataSet, plan: Plan, folder: Path, progress: FileProgress | None, known: str | None, writes: bool
) -> tuple[str, tuple[str, ...]]:
    """That of the documents as they are now; where they are not, the one that is known, if it will do."""
    try:
        return settle_data(data, folder, progress, writes=writes)
    except InputError as error:
        if error.kind == "missing-file":
            if known:
                return known, ()
            named = f"It is named in [data.{data.name}] of {plan.file}, where paths are relative to that file."
            error.remedy = f"{error.remedy}\n{named}" if error.remedy else named
        raise


def _check_runs(plan: Plan, places: Sequence[Place]) -> None:
    """Whether what the runs need is there."""
    for table in plan.tables:
        for row in table.rows:
            kind_of(row.run).check_needs(row.run)
            try:
                check_precision(places, row.run.training)
            except InputError as error:
                problem = f"the row {row.name} of the table {table.name}: {error.message}"
                raise InputError(problem, kind=error.kind, file=plan.file, remedy=error.remedy) from error


def _check_encoders(runs: Iterable[Run]) -> None:
    """Whether pretrained ones can be loaded and read as many tokens as are wanted, and vectors are there."""
    for encoder in dict.fromkeys(run.encoder for run in runs):
        if isinstance(encoder, TransformerSettings):
            load_pretrained(encoder)
        vectors = getattr(encoder, "vectors", "")
        if vectors and not is_file(vectors):
            remedy = "`vectors` is a path relative to the file of the comparison, or an absolute one."
            raise InputError("there is no such file of word vectors", kind="missing-file", file=vectors, remedy=remedy)
