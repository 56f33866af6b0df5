"""The table of WOS as it is downloaded: the spreadsheet, its export as text, the folder or the zip they are in."""

import re
import shutil
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from hitin.compression import ZIP
from hitin.errors import InputError, first_line, listed, shown
from hitin.extras import need
from hitin.files import Source
from hitin.records import RecordFormat, read_records

COLUMNS = ("Y1", "Y2", "Y", "Domain", "area", "Abstract")
"""Those that are read; a further one, `keywords`, is left alone, as in the paper."""
SPREADSHEET = "Meta-data/Data.xlsx"
PLACES = (SPREADSHEET, "Data.xlsx", "Meta-data/Data.txt", "Data.txt", "Meta-data/Data.tsv", "Data.tsv")
_PACKED = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".7z", ".rar")

_WORKBOOK = "xl/workbook.xml"  # what makes a zip a spreadsheet
_ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")  # how a spreadsheet writes characters that XML cannot hold
_UNREADABLE = (  # of zipfile, zlib, the library, and whichever reader of XML it has
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError),
    *(AttributeError, LookupError, ValueError, TypeError, SyntaxError),
)
_OLD_OR_PROTECTED = bytes.fromhex("D0CF11E0")
_SAVE = "Save the sheet as .xlsx without a password, or as text with tabs in between (UTF-8)."
_ORIGINAL = f"Give the folder as it was unpacked, or its {SPREADSHEET}."


class Row(NamedTuple):
    """A row of the table: its number there, its code, and the names and the text that belong to it."""

    line: int
    y1: int
    y2: int
    y: int
    domain: str
    area: str
    abstract: str

    @property
    def code(self) -> str:
        return f"{self.y1}-{self.y2}"


def find_table(path: str | Path) -> Path:
    """The table in a folder as it was unpacked, or the file itself."""
    path = Path(path)
    if not path.is_dir():
        return path
    for place in PLACES:
        if (path / place).is_file():
            return path / place
    problem = "the table of WOS is not in this folder"
    raise InputError(problem, kind="missing-file", file=str(path), remedy=_where_it_may_be(path))


def _where_it_may_be(folder: Path) -> str:
    remedy = f"It is in the official distribution as {SPREADSHEET}."
    for near in (folder.parent, *sorted(below for below in folder.iterdir() if below.is_dir())):
        if (near / SPREADSHEET).is_file():
            return f"Give {near}, which has {SPREADSHEET}."
    if packed := sorted(path for path in folder.iterdir() if path.name.lower().endswith((".zip", *_PACKED))):
        return f"{remedy} Is it still packed in {packed[0].name}? Unpack that."
    others = "X.txt and the like hold texts and numbers, not the names of labels. "
    return f"{others}{remedy}" if any(folder.rglob("X.txt")) else remedy


def read_rows(table: Path, *, encoding: str | None = None) -> Iterator[Row]:
    """The rows of a table: of a spreadsheet, of text in columns, or of a zip that holds one."""
    _refuse_others(table)
    with _unpacked(table) as file:
        try:
            cells = _spreadsheet_cells(file) if _begins(file, ZIP) else _text_cells(file, encoding)
            for line, values in cells:
                yield _row(line, values)
        except InputError as error:
            error.file = str(table)
            raise


def _refuse_others(table: Path) -> None:
    """Files that are neither, by their names or how they begin."""
    if _begins(table, _OLD_OR_PROTECTED):
        problem = "an old spreadsheet, or one with a password, is not read"
        raise InputError(problem, kind="unreadable", file=str(table), remedy=_SAVE)
    remedy = ""
    if table.name.lower().endswith(_PACKED):
        remedy = "Unpack it, and give the folder."
    elif table.suffix.lower() in (".xls", ".xlsb", ".ods"):
        remedy = _SAVE
    if remedy and table.is_file():
        raise InputError(f"a {table.suffix} is not read", kind="unreadable", file=str(table), remedy=remedy)


def _row(line: int, values: Sequence[object]) -> Row:
    y1, y2, y, domain, area, abstract = values
    try:
        codes = (_number("Y1", y1), _number("Y2", y2), _number("Y", y))
        names = (_name("Domain", domain), _name("area", area))
    except InputError as error:
        error.line = line
        raise
    return Row(line, *codes, *names, "" if abstract is None else str(abstract))


def _number(column: str, value: object) -> int:
    """A whole number, which a spreadsheet may write as 3.0."""
    try:
        number = float(str(value))
        if number.is_integer():
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise _bad_cell(f"{column} is {shown(value)}, not a whole number")


def _name(column: str, value: object) -> str:
    name = "" if value is None else str(value).strip()
    if not name or is_spoilt(name):
        raise _bad_cell(f"{column} is {shown(value)}, not a name")
    return name


def _bad_cell(problem: str) -> InputError:
    remedy = f"Cells are lost, spoilt by a spreadsheet program, or moved into other columns. {_ORIGINAL}"
    return InputError(problem, kind="bad-row", remedy=remedy)


def is_spoilt(cell: str) -> bool:
    """Whether a spreadsheet program put an error in the place of the text: `#NAME?`, `#VALUE!`, `########`."""
    return re.fullmatch(r"#+|#(NAME\?|N/A|(REF|VALUE|DIV/0|NULL|NUM|SPILL|CALC)!)", cell.strip()) is not None


def _wanted(available: Sequence[str], where: str = "") -> list[str]:
    """The columns as the table spells them, or an error that names those that are missing."""
    spelt = {name.strip().casefold(): name for name in reversed(available)}
    missing = [name for name in COLUMNS if name.casefold() not in spelt]
    if missing:
        problem = f"this is not the table of WOS: no column is called {', '.join(missing)}"
        raise InputError(f"{problem}; there are: {listed(list(available))}", kind="bad-row", remedy=where + _ORIGINAL)
    return [spelt[name.casefold()] for name in COLUMNS]


def _text_cells(table: Path, encoding: str | None) -> Iterator[tuple[int, list[object]]]:
    with Source(table, encoding=encoding) as source:
        columns: RecordFormat = "tsv" if "\t" in source.first_line else "csv"
        for line, record in read_records(source, columns=_wanted, format=columns):
            yield line, list(record.values())


def _begins(table: Path, sign: bytes) -> bool:
    try:
        with table.open("rb") as file:
            return file.read(len(sign)) == sign
    except OSError:
        return False  # of which reading it as text tells more


def _spreadsheet_cells(table: Path) -> Iterator[tuple[int, list[object]]]:
    openpyxl = need("openpyxl", extra="data", purpose="A spreadsheet (.xlsx)")
    row = 0
    try:
        with table.open("rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # styles it does not know, and the like
            book = openpyxl.load_workbook(file, read_only=True, data_only=True)
            sheet = book.worksheets[0]
            sheet.reset_dimensions()  # what a sheet says of its own size may be wrong
            for row, values in _numbered(sheet):
                yield row, values
    except InputError:
        raise
    except _UNREADABLE as error:
        raise _damaged(f"the spreadsheet is damaged or cut short after row {row}", error) from error


def _damaged(problem: str, error: Exception) -> InputError:
    return InputError(f"{problem} ({first_line(error)})", kind="unreadable", remedy="Download it again.")


def _numbered(sheet: Any) -> Iterator[tuple[int, list[object]]]:
    """The wanted cells of each row that is not blank, with its number, under a header."""
    wanted: list[int] = []
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        cells = [_unescaped(cell) for cell in row]
        if not any(cell not in (None, "") for cell in cells):
            continue
        if not wanted:
            header = ["" if cell is None else str(cell) for cell in cells]
            wanted = [header.index(name) for name in _wanted(header, "The first row of the first sheet names them. ")]
        else:
            yield number, [cells[at] if at < len(cells) else None for at in wanted]


def _unescaped(cell: object) -> object:
    if not isinstance(cell, str) or "_x" not in cell:
        return cell
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), cell)


@contextmanager
def _unpacked(table: Path) -> Iterator[Path]:
    """The table itself, or a temporary copy of the one in a zip; the zip may lie in that of all files of the set."""
    if not _begins(table, ZIP):
        yield table
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            yield _taken_out(table, Path(folder))
        except InputError as error:
            error.file = str(table)
            raise


def _taken_out(packed: Path, folder: Path) -> Path:
    """The table in a zip, or in a zip within that, laid into a folder; or the zip itself, if it is a spreadsheet."""
    try:
        with zipfile.ZipFile(packed) as archive:
            names = _names_in(archive)
            found = packed if _WORKBOOK in names else _table_in(archive, folder)
            if found is None:
                found = _table_within(archive, [name for name in names if name.lower().endswith(".zip")], folder)
    except _UNREADABLE as error:
        raise _damaged("the zip is damaged or cut short", error) from error
    if found is None:
        raise InputError(
            f"neither a spreadsheet nor a zip with {SPREADSHEET} in it; it holds: {listed(names)}",
            kind="missing-file",
            remedy="Unpack it, and give the folder.",
        )
    return found


def _table_within(archive: zipfile.ZipFile, zips: Iterable[str], folder: Path) -> Path | None:
    """The table of the first zip within a zip that has it. Others may be damaged, unless none has."""
    damage: Exception | None = None
    for name in zips:
        try:
            with zipfile.ZipFile(_laid_out(archive, name, folder)) as inner:
                if found := _table_in(inner, folder):
                    return found
        except _UNREADABLE as error:
            damage = damage or error
    if damage:
        raise damage
    return None


def _names_in(archive: zipfile.ZipFile) -> list[str]:
    """What is in a zip, but for what a Macintosh adds to each file."""
    return [name for name in archive.namelist() if not name.rpartition("/")[2].startswith("._")]


def _table_in(archive: zipfile.ZipFile, folder: Path) -> Path | None:
    names = _names_in(archive)
    found = [name for place in PLACES for name in names if f"/{name}".endswith(f"/{place}")]
    return _laid_out(archive, found[0], folder) if found else None


def _laid_out(archive: zipfile.ZipFile, name: str, folder: Path) -> Path:
    copy = folder / Path(name).name
    with archive.open(name) as source, copy.open("wb") as target:
        shutil.copyfileobj(source, target)
    return copy
