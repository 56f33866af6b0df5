"""The file of a comparison: data sets, tables, rows, seeds. What can be wrong in it is told here, before any work."""

import re
import tomllib
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from hitin.compare.cells import DataSet, Plan, Row, Table, slug
from hitin.compare.published import TABLES, published_data
from hitin.compare.rows import ABLATIONS, HITIN, RowBuilder, ablation_rows, check_may_be_set
from hitin.errors import InputError, first_line, listed, printable, shown
from hitin.methods import METHODS
from hitin.option_values import TOML_ERRORS
from hitin.settings import all_options, options_of

LINEAR = "linear"
"""The row that every table begins with."""

_FILE = ("seeds", "data", "tables")
READING = ("text_key", "label_key", "label_delimiter", "separator", "encoding", "taxonomy_encoding")
"""What may be said of how the files of a data set are read: the options of the other commands."""
_DATA = ("taxonomy", "train", "val", "test", "title", "published", "seeds", *READING)
_TABLE = ("title", "encoder", "data", "seeds", "methods", "ablations", "published", "settings", "rows")
_NEEDED = {"data": "It names a taxonomy and documents.", "tables": "It says which methods are compared."}
_BESIDE_SETTINGS = {
    "encoder": 'Write encoder = "..." in the section of the table itself, or in that of a row.',
    "method": 'Write methods = ["..."] in the section of the table itself; a row of your own may say method = "...".',
}
"""Options that stand elsewhere in the section of a table."""
_EXAMPLE = "hitin compare --help shows an example."


def read_plan(path: str | Path) -> Plan:
    """What the file asks for, with the run of every row."""
    file = Path(path)
    try:
        with file.open("rb") as stream:
            sections = tomllib.load(stream)
    except OSError as error:
        problem = f"the comparison cannot be read ({error.strerror or error})"
        problem, kind = ("this is a folder, not a file", "directory") if file.is_dir() else (problem, "missing-file")
        raise InputError(problem, kind=kind, file=str(file), remedy=_EXAMPLE) from error
    except TOML_ERRORS as error:
        raise InputError(
            f"this is not TOML ({first_line(error)})", kind="bad-run", file=str(path), remedy=_EXAMPLE
        ) from error
    try:
        return _plan(sections, file)
    except InputError as error:
        error.file = error.file or str(path)
        raise


def _plan(sections: dict[str, Any], file: Path) -> Plan:
    _check_names(sections, _FILE, "the file")
    seeds = _seeds(sections.get("seeds", [0]), "seeds")
    data = tuple(
        _data_set(name, _section(values, f"data.{name}"), file) for name, values in _sections(sections, "data")
    )
    _check_distinct([each.name for each in data], "data sets")
    names = tuple(each.name for each in data)
    tables = tuple(
        _table(name, _section(values, f"tables.{name}"), file, names, seeds)
        for name, values in _sections(sections, "tables")
    )
    plan = Plan(data, tables, str(file))
    _check_distinct([slug(table.name) for table in tables], "tables, as files and links name them,")
    for table in tables:
        _check_published(table, data)
        for row in table.rows:
            for name in table.data:
                if not plan.seeds(row, name):
                    problem = f"the row {shown(row.name)} of the table {table.name} has no seed on {name}"
                    raise _bad(problem, "`seeds` of a data set are some of the seeds of the rows.")
    return plan


def _check_published(table: Table, data: tuple[DataSet, ...]) -> None:
    """Refuse what would set rows without a single number below a table."""
    if table.published and not any(each.published for each in data if each.name in table.data):
        problem = f"published of [tables.{table.name}]: no data set of the table says which one of the paper it is"
        raise _bad(problem, f"Write published in a [data.NAME]; it is one of {', '.join(published_data())}.")


def only(plan: Plan, patterns: Collection[str]) -> Plan:
    """The rows whose `TABLE/ROW` fits one of the patterns, such as `bert/hitin*`."""
    tables = [
        replace(table, rows=tuple(row for row in table.rows if _fits(f"{table.name}/{row.name}", patterns)))
        for table in plan.tables
    ]
    if not any(table.rows for table in tables):
        rows = [f"{table.name}/{row.name}" for table in plan.tables for row in table.rows]
        problem = f"no row is called {' or '.join(map(shown, patterns))}"
        raise InputError(problem, kind="bad-run", file=plan.file, remedy=f"The rows are {listed(rows, most=60)}.")
    return replace(plan, tables=tuple(tables))


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern if "/" in pattern else f"*/{pattern}") for pattern in patterns)


def _data_set(name: str, values: dict[str, Any], file: Path) -> DataSet:
    where = f"[data.{name}]"
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise _bad(f"a data set is called {shown(name)}", "It names a folder: letters, digits, '-', '_' and '.'.")
    _check_names(values, _DATA, where)
    for needed in ("taxonomy", "train"):
        if needed not in values:
            raise _bad(f"{where} has no {needed}", f'Write {needed} = "..." there: a file beside {file.name}.')
    taxonomy = _text(values["taxonomy"], f"taxonomy of {where}")
    train, val, test = (
        _files(values.get(split, []), f"{split} of {where}", file) for split in ("train", "val", "test")
    )
    return DataSet(
        name=name,
        title=_text(values.get("title", name), f"title of {where}"),
        taxonomy=str(file.parent / taxonomy),
        train=train,
        val=val,
        test=test,
        published=_one_of(values.get("published"), tuple(published_data()), f"published of {where}"),
        seeds=_seeds(values["seeds"], f"seeds of {where}") if "seeds" in values else None,
        reading={name: _text(values[name], f"{name} of {where}") for name in READING if name in values},
    )


def _table(name: str, values: dict[str, Any], file: Path, data: tuple[str, ...], seeds: tuple[int, ...]) -> Table:
    where = f"[tables.{name}]"
    _check_names(values, _TABLE, where)
    chosen = _texts(values.get("data", list(data)), f"data of {where}")
    if not chosen:
        raise _bad(f"data of {where} is empty", "Leave it out for all data sets, or name some of them.")
    for each in chosen:
        _one_of(each, data, f"data of {where}")
    encoder, settings = values.get("encoder"), _section(values.get("settings", {}), f"tables.{name}.settings")
    with _saying(f"settings of {where}"):
        for option in settings:
            if option in _BESIDE_SETTINGS:
                raise _bad(f"{option} cannot be among them", _BESIDE_SETTINGS[option])
            check_may_be_set(option)
            if option not in all_options():
                raise _bad(f"there is no option {shown(option)}", _nearest(option, all_options()))
    builder = RowBuilder(
        folder=file.parent,
        encoder=None if encoder is None else _text(encoder, f"encoder of {where}"),
        settings=settings,
        seeds=_seeds(values["seeds"], f"seeds of {where}") if "seeds" in values else seeds,
    )
    rows = tuple(_rows(name, values, builder))
    for option in set(settings).difference(*(options_of(row.run) for row in rows)):
        raise _bad(f"settings of {where}: {option} means nothing to any of its rows", "Leave it out.")
    return Table(
        name=name,
        title=_text(values.get("title", name), f"title of {where}"),
        data=tuple(each for each in data if each in chosen),
        rows=rows,
        published=_one_of(values.get("published"), TABLES, f"published of {where}"),
    )


def _rows(table: str, values: dict[str, Any], builder: RowBuilder) -> Iterator[Row]:
    """`linear`, the methods, rows of the user's own, ablations."""
    where = f"[tables.{table}]"
    methods = _texts(values.get("methods", []), f"methods of {where}")
    for method in methods:
        _one_of(method, tuple(METHODS), f"methods of {where}")
    own = {
        name: _section(each, f"tables.{table}.rows.{name}")
        for name, each in _section(values.get("rows", {}), f"tables.{table}.rows").items()
    }
    ablations = _texts(values.get("ablations", []), f"ablations of {where}")
    for ablation in ablations:
        _one_of(ablation, ABLATIONS, f"ablations of {where}")
    if not methods and not own:
        raise _bad(f"{where} has no rows", f"Write methods = [...] there; they are {', '.join(METHODS)}.")
    rows = [_row(table, name, own.get(name, {}), builder) for name in dict.fromkeys((LINEAR, *methods, *own))]
    yield from rows
    if ablations:
        base = next((row for row in rows if row.name == HITIN and row.run.method_name == HITIN), None)
        if base is None:
            raise _bad(f"{where} has ablations, but no row hitin", "Ablations are of HiTIN: add it to `methods`.")
        with _saying(f"ablations of {where}"):
            found = [*ablation_rows(builder, base, _own_options(own.get(HITIN, {})), ablations)]
        _check_distinct([row.name for row in (*rows, *found)], f"rows of {where}")
        yield from found


def _row(table: str, name: str, values: dict[str, Any], builder: RowBuilder) -> Row:
    method = _text(values.get("method", name), f"method of the row {name} of the table {table}")
    if method not in METHODS:
        remedy = f'Write method = "..." in [tables.{table}.rows.{_quoted(name)}]; the methods are {", ".join(METHODS)}.'
        raise _bad(f"the table {table} has a row {shown(name)} of no known method", remedy)
    with _saying(f"the row {name} of the table {table}"):
        return builder.row(
            name,
            _own_options(values),
            method=method,
            title=None if "title" not in values else _text(values["title"], "title"),
            seeds=_seeds(values["seeds"], "seeds") if "seeds" in values else None,
        )


def _own_options(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in ("method", "title", "seeds")}


@contextmanager
def _saying(where: str) -> Iterator[None]:
    """Errors within say where in the file they are."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{where}: {error.message}", kind=error.kind, remedy=error.remedy) from error


# Values of TOML, checked.


def _sections(values: dict[str, Any], name: str) -> Iterable[tuple[str, Any]]:
    found = _section(values.get(name, {}), name)
    if not found:
        raise _bad(f"there is no section [{name}.NAME]", f"{_NEEDED[name]} {_EXAMPLE}")
    return found.items()


def _section(value: Any, name: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        header = f"[{name}.NAME]" if name in _FILE or name.endswith(".rows") else f"[{name}]"
        raise _bad(f"{name} is {shown(value)}", f"Write a section: {header} with a line for each option.")
    return value


def _check_names(values: dict[str, Any], known: Collection[str], where: str) -> None:
    for name in values:
        if name not in known:
            raise _bad(f"{where} cannot have {shown(name)}", _nearest(name, known))


def _check_distinct(names: list[str], what: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        if name.casefold() in seen:
            other = seen[name.casefold()]
            raise _bad(f"two {what} are called {shown(name)} and {shown(other)}", "Give one of them another name.")
        seen[name.casefold()] = name


def _nearest(name: str, known: Collection[str]) -> str:
    near = get_close_matches(name, known, n=1)
    return f"Did you mean {listed(near)}?" if near else f"There may be {listed(sorted(known), most=100)}."


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not value:
        raise _bad(f"{what} is {shown(value)}", "It is text in quotes.")
    return value


def _texts(value: Any, what: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _bad(f"{what} is {shown(value)}", 'It is a list of names: ["...", "..."].')
    _check_distinct(value, what)
    return tuple(value)


def _files(value: Any, what: str, file: Path) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(each, str) and each for each in names):
        raise _bad(f"{what} is {shown(value)}", "It is the path of a file, or a list of them.")
    return tuple(str(file.parent / name) for name in names)


def _seeds(value: Any, what: str) -> tuple[int, ...]:
    is_list = isinstance(value, list) and all(type(each) is int and 0 <= each < 2**63 for each in value)
    if not is_list or not value or len(set(value)) < len(value):
        raise _bad(f"{what} is {shown(value)}", "It is a list of different whole numbers from 0 on, such as [0, 1, 2].")
    return tuple(value)


def _one_of(value: Any, known: tuple[str, ...], what: str) -> Any:
    """The value, which may be left out (`None`)."""
    if value is not None and value not in known:
        near = get_close_matches(str(value), known, n=1)
        meant = f"Did you mean {listed(near)}? " if near else ""
        raise _bad(f"{what} cannot be {shown(value)}", f"{meant}It is one of {listed(known, most=20)}.")
    return value


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"'


def _bad(message: str, remedy: str) -> InputError:
    """Names in the file may be of any length, and in both."""
    return InputError(printable(message, 1000), kind="bad-run", remedy=printable(remedy, 1500))
