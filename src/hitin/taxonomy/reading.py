"""Taxonomy files: the format recognised, then read."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from hitin.documents import LABEL_KEYS, TEXT_KEYS
from hitin.errors import InputError, InputWarning, counted, listed, place, printable, shown
from hitin.files import Source, is_file
from hitin.names import PATH_SEPARATOR, ROOT, SEPARATORS, path_below
from hitin.tables import Rows, csv_rows, delimiter_of
from hitin.taxonomy.builder import Homonyms, TaxonomyBuilder
from hitin.taxonomy.nested import read_json
from hitin.taxonomy.taxonomy import Taxonomy

Format = Literal["auto", "hiagm", "edges", "json", "paths"]

FORMATS: dict[str, str] = {
    "hiagm": "parent TAB child TAB child ...",
    "edges": "two columns, parent and child",
    "json": "JSON",
    "paths": "one path a line",
}

_PARENTS = {"parent", "parents", "parent_label", "parent_name", "parent_id"}
_CHILDREN = {"child", "children", "child_label", "child_name", "child_id"}
_COLUMNS_OF_LABELS = {"category", "categories", "class", "classes", "tag", "tags", "topic", "topics"}
_PAIRS = {("source", "target"), ("from", "to"), ("broader", "narrower"), ("category", "subcategory")}


@dataclass(frozen=True)
class Reading:
    """A taxonomy and how its file was read."""

    taxonomy: Taxonomy
    file: str = "taxonomy"
    format: str = ""
    encoding: str = ""
    builder: TaxonomyBuilder | None = None

    @property
    def homonym_policy(self) -> Homonyms | None:
        """What was done with the same name under several parents; `None` where names are identities."""
        return self.builder.homonym_policy if self.builder else None

    @cached_property
    def homonyms(self) -> list[str]:
        return self.builder.homonyms() if self.builder and self.homonym_policy else []

    @cached_property
    def repeated(self) -> list[tuple[int, str, str]]:
        """Edges that were given before: line, parent, child. Paths repeat theirs by nature."""
        return self.builder.repeated_edges() if self.builder and not self.homonym_policy else []

    def place_of(self, label: int) -> str:
        """Where a label is first named."""
        return place(self.file, self._lines[label]) if self.builder else self.file

    @cached_property
    def _lines(self) -> list[int]:
        return self.builder.label_lines().tolist() if self.builder else []

    def warn(self) -> None:
        if self.repeated:
            line, parent, child = self.repeated[0]
            warnings.warn(
                f"{place(self.file, line)}: the edge {printable(parent + PATH_SEPARATOR + child)} was given before "
                f"(such edges: {len(self.repeated)}; each counts once)",
                InputWarning,
                stacklevel=3,
            )


def read_taxonomy(
    path: str | Path,
    *,
    format: Format = "auto",
    separator: str | None = None,
    root: str | None = ROOT,
    homonyms: Homonyms = "merge",
    encoding: str | None = None,
) -> Reading:
    """Read a taxonomy file and say how; `Taxonomy.read` is the short form."""
    if format not in ("auto", *FORMATS):
        raise InputError(
            f"there is no taxonomy format {shown(format)}",
            kind="bad-option",
            remedy=f"Choose one of auto, {', '.join(FORMATS)}.",
        )
    if separator == "":
        raise InputError("the separator of paths is empty", kind="bad-option", remedy="Leave it out, or name one.")
    with Source(path, encoding=encoding) as source:
        if format == "auto":
            format = "paths" if separator and _has_paths(source, separator) else recognise(source, root)
        builder = TaxonomyBuilder(homonyms=homonyms, root=root, file=source.name)
        try:
            if format == "paths":
                _read_paths(builder, source, separator)
            else:
                _READERS[format](builder, source)
            taxonomy = builder.build()
        except InputError as error:
            error.file = error.file or source.name
            raise
        return Reading(taxonomy, source.name, format, source.encoding.removesuffix("-sig"), builder)


def encoding_beside(path: str | Path, documents: str | None) -> str | None:
    """What a taxonomy is read as beside documents in an encoding: as these, unless it is UTF-8 and not plain ASCII.

    Who has a spreadsheet's CSV may well have a taxonomy in UTF-8: `hitin taxonomy` writes it so.
    """
    if documents is None or not is_file(path):  # a pipe can be read once only
        return documents
    try:
        with Source(path) as source:
            return documents if source.text().isascii() else source.encoding
    except InputError:
        return documents


def recognise(source: Source, root: str | None = ROOT) -> Format:
    """The format of an opened taxonomy, by its first lines and its suffix."""
    lines = source.head_lines
    first = source.first_line.lstrip()
    tabs_at_first = "\t" in first.strip()
    if source.suffix == ".json" or (first[:1] in ("{", "[") and not tabs_at_first):
        return "json"
    if source.suffix == ".csv" and not tabs_at_first:
        return "edges"
    if _is_header(lines, "\t") and first.split("\t")[0].strip() != root:
        return "edges"
    if any("\t" in line.strip() for line in lines):
        return "hiagm"
    if any(mark in line for mark in SEPARATORS for line in lines):
        return "paths"
    delimiter = _delimiter(lines)
    if lines and all(line.count(delimiter) == 1 for line in lines):
        return "edges"
    return "paths"


def _has_paths(source: Source, separator: str) -> bool:
    """Whether a named separator is for this file. It may be for the documents' labels alone: others show their form."""
    lines = source.head_lines
    has_columns = any("\t" in line.strip() for line in lines) or _is_header(lines, _delimiter(lines))
    return "\t" in separator or not (has_columns or source.suffix == ".json")


def _read_hiagm(builder: TaxonomyBuilder, source: Source) -> None:
    """`parent TAB child TAB child ...`, in any order; a line with one name declares a label."""
    for text in source.lines():
        parent, *children = [cell.strip() for cell in text.rstrip().split("\t")]
        if source.line == 1 and _is_remark(text, "\t"):
            continue
        for child in children:
            if child:
                builder.add(parent or None, child, source.line)
        if parent and not any(children):
            builder.label(parent, source.line)


def _read_edges(builder: TaxonomyBuilder, source: Source) -> None:
    """Two columns, `parent` and `child`, with or without a header; with one, other columns may stand by."""
    parent_at, child_at, width = 0, 1, 2
    delimiter = _delimiter(source.head_lines)
    has_header = _is_header(source.head_lines, delimiter)
    for number, (line, row) in enumerate(_rows(source, delimiter)):
        cells = [cell.strip() for cell in row]
        if number == 0 and has_header and (header := _header(cells)):
            (parent_at, child_at), width = header, len(cells)
            continue
        if number == 0 and _names_documents(cells):
            raise source.error(
                f"these look like documents, with the columns {listed(cells)}",
                kind="bad-taxonomy",
                line=line,
                remedy="The taxonomy comes first, then the documents. "
                "If labels are paths, hitin taxonomy DOCUMENTS makes one.",
            )
        if len(cells) > width and not any(cells[width:]):  # empty cells at the end are no harm
            cells = cells[:width]
        if len(cells) != width:
            raise source.error(
                f"the row has {counted(len(cells), 'column')} where {width} are expected: {shown(row)}",
                kind="bad-row",
                line=line,
                remedy="Put names that hold the delimiter in double quotes. Where there are more columns, call "
                "one parent and one child in the first row. For a path a line, say --format paths.",
            )
        parent, child = cells[parent_at], cells[child_at]
        if child:
            builder.add(parent or None, child, line)
        elif parent:
            builder.label(parent, line)


def _names_documents(cells: list[str]) -> bool:
    """Whether a first row is that of documents, with a column of texts and one of labels."""
    names = {cell.lower() for cell in cells}
    return len(names.intersection(TEXT_KEYS + LABEL_KEYS)) > 1 or bool(
        names.intersection(TEXT_KEYS) and names.intersection(_COLUMNS_OF_LABELS)
    )


def _rows(source: Source, delimiter: str) -> Rows:
    """The rows of a two-column file. Cells between tabs have no quotes, unless the header has."""
    if delimiter != "\t" or source.first_line.startswith('"'):
        yield from ((line, row) for line, row in csv_rows(source, delimiter) if any(map(str.strip, row)))
        return
    for text in source.lines():
        if text.strip():
            yield source.line, text.rstrip("\r\n").split("\t")


def _delimiter(lines: list[str]) -> str:
    for mark in "\t;,":
        if _is_header(lines, mark):
            return mark
    return delimiter_of(lines, fits=lambda cells: len(cells) == 2)


def _header(cells: Iterable[str]) -> tuple[int, int] | None:
    """Which columns are parent and child, if these cells are a header."""
    names = [cell.strip().strip('"').lower() for cell in cells]
    if tuple(names) in _PAIRS:
        return 0, 1
    parents = [at for at, name in enumerate(names) if name in _PARENTS]
    children = [at for at, name in enumerate(names) if name in _CHILDREN]
    return (parents[0], children[0]) if parents and children else None


def _is_header(lines: list[str], delimiter: str) -> bool:
    """Whether the first line names columns rather than labels, which would come again further down."""
    cells = lines[0].split(delimiter) if lines else []
    if not _header(cells):
        return False
    names = {cell.strip() for cell in cells}
    return cells == ["parent", "child"] or not any(
        names.intersection(map(str.strip, line.split(delimiter))) for line in lines[1:]
    )


def _is_remark(text: str, separator: str) -> bool:
    """Whether a first line is a remark, such as `# Version: 3`."""
    return text.startswith("# ") and separator not in text.strip()


def _read_paths(builder: TaxonomyBuilder, source: Source, separator: str | None) -> None:
    """One path from the top down a line; a first line that begins with `# ` may be a remark."""
    paths = list(_paths_in(source, separator))
    tops = {names[1] if len(names) > 1 and names[0] == builder.root else names[0] for names, _ in paths}
    for names, line in paths:
        other = path_below(tops, names[0], builder.root) if len(names) == 1 and separator is None else None
        builder.add_path(list(other or names), line)


def _paths_in(source: Source, separator: str | None) -> Iterator[tuple[list[str], int]]:
    """The names on each line, and its number."""
    guessed = separator is None
    lines = source.head_lines
    separator = separator or next((mark for mark in SEPARATORS if any(mark in line for line in lines)), PATH_SEPARATOR)
    mark = separator.strip()
    for text in source.lines():
        if not text.strip() or (source.line == 1 and _is_remark(text, separator)):
            continue
        names = [name.strip() for name in text.strip("\r\n").split(separator)]
        while len(names) > 1 and not names[-1]:
            names.pop()
        if not all(names) or (guessed and any(name.startswith(mark) or name.endswith(mark) for name in names)):
            raise source.error(
                f"a name in the path is empty: {shown(text.strip())}",
                kind="bad-row",
                line=source.line,
                remedy=f"Names are separated by {mark or separator!r}; name another one with --separator.",
            )
        yield names, source.line


_READERS: dict[str, Callable[[TaxonomyBuilder, Source], None]] = {
    "hiagm": _read_hiagm,
    "edges": _read_edges,
    "json": read_json,
}
