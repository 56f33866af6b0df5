"""Taxonomy files: recognised, read, written."""

import csv
import io
import json
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hitin.errors import InputError, InputWarning
from hitin.files import Source, write_text
from hitin.records import csv_rows
from hitin.taxonomy import ROOT, Taxonomy, TaxonomyBuilder, label_name, shown

Format = Literal["auto", "hiagm", "edges", "json", "paths"]
Homonyms = Literal["merge", "separate"]

FORMATS: dict[str, str] = {
    "hiagm": "parent TAB child TAB child ...",
    "edges": "two columns, parent and child",
    "json": "JSON",
    "paths": "one path a line",
}
SEPARATORS = (" > ", ">", "--")
"""What may stand between the names of a path, when the separator is not named."""

_HEADERS = ({"parent", "parent_label", "source", "broader"}, {"child", "child_label", "target", "narrower"})


@dataclass(frozen=True)
class Reading:
    """A taxonomy and how its file was read."""

    taxonomy: Taxonomy
    file: str
    format: str
    encoding: str
    compression: str | None
    homonym_policy: Homonyms | None
    """What was done with the same name under several parents; `None` where names are identities."""
    homonyms: list[str]
    repeated: list[tuple[int, str, str]]
    """Edges that were given before: line, parent, child."""

    def warn(self) -> None:
        if self.repeated:
            line, parent, child = self.repeated[0]
            warnings.warn(
                f"{self.file}:{line}: the edge {parent} > {child} was given before "
                f"({len(self.repeated)} such edges; each counts once)",
                InputWarning,
                stacklevel=3,
            )


def read_taxonomy(
    path: str | Path,
    *,
    format: Format = "auto",
    separator: str | None = None,
    root: str = ROOT,
    homonyms: Homonyms = "merge",
    encoding: str | None = None,
) -> Reading:
    """Read a taxonomy file and say how; `Taxonomy.read` is the short form."""
    if format not in ("auto", *FORMATS):
        raise InputError(f"there is no taxonomy format {format!r}", remedy=f"Choose one of auto, {', '.join(FORMATS)}.")
    with Source(path, encoding=encoding) as source:
        if format == "auto":
            format = "paths" if separator is not None else recognise(source)
        has_paths = format in ("json", "paths")
        builder = TaxonomyBuilder(
            whole_paths=has_paths and homonyms == "separate",
            root=root,
            file=source.name,
        )
        try:
            is_flat_json = _READERS[format](builder, source, separator)
            taxonomy = builder.build(
                remedy="If these are different categories of the same name, read them with --homonyms separate."
                if has_paths and homonyms == "merge"
                else f"If {root!r} is a label of yours, name another artificial root with --root."
                if root in builder.names
                else ""
            )
        except InputError as error:
            error.file = error.file or source.name
            raise
        names_are_identities = not has_paths or bool(is_flat_json)
        return Reading(
            taxonomy=taxonomy,
            file=source.name,
            format=format,
            encoding=source.encoding.removesuffix("-sig"),
            compression=source.compression,
            homonym_policy=None if names_are_identities else homonyms,
            homonyms=[] if names_are_identities else builder.homonyms,
            repeated=builder.repeated if format in ("hiagm", "edges") else [],
        )


def recognise(source: Source) -> Format:
    """The format of an opened taxonomy, by its first lines and its suffix."""
    lines = [line for line in source.head_lines() if line.strip()]
    first = lines[0].lstrip() if lines else ""
    tabs_at_first = "\t" in first.strip()
    if source.format_suffix == ".json" or (first[:1] in ("{", "[") and not tabs_at_first):
        return "json"
    if source.format_suffix == ".csv" and not tabs_at_first:
        return "edges"
    if any("\t" in line.strip() for line in lines):
        return "hiagm"
    if any(mark in line for mark in SEPARATORS for line in lines):
        return "paths"
    if lines and all(line.count(_delimiter(line)) == 1 for line in lines):
        return "edges"
    return "paths"


def _delimiter(line: str) -> str:
    if "\t" in line:
        return "\t"
    return ";" if ";" in line and "," not in line else ","


def _read_hiagm(builder: TaxonomyBuilder, source: Source, _: str | None) -> None:
    """`parent TAB child TAB child ...`, in any order; a line with one name declares a label."""
    for text in source.lines():
        parent, *children = [cell.strip() for cell in text.rstrip().split("\t")]
        if source.line == 1 and len(children) == 1 and _is_header([parent, *children]):
            continue
        for child in children:
            if child:
                builder.add(parent or None, child, source.line)
        if parent and not any(children):
            builder.label(parent)


def _read_edges(builder: TaxonomyBuilder, source: Source, _: str | None) -> None:
    """Two columns, `parent` and `child`, with or without a header; with one, other columns may stand by."""
    parent_at, child_at, width = 0, 1, 2
    for row_number, (line, row) in enumerate(_rows(source)):
        cells = [cell.strip() for cell in row]
        if row_number == 0 and _is_header(cells):
            names = [cell.lower() for cell in cells]
            parent_at, child_at = (next(at for at, name in enumerate(names) if name in known) for known in _HEADERS)
            width = len(cells)
            continue
        if len(cells) > width:  # empty cells at the end are no harm
            cells = cells[:width] if not any(cells[width:]) else cells
        if len(cells) != width:
            raise source.error(
                f"the row has {len(cells)} columns where {width} are expected: {shown(row)}",
                kind="ragged-row",
                line=line,
                remedy="Put names that hold the delimiter in double quotes. For a whole path a row, "
                "say --format paths --separator ','.",
            )
        parent, child = cells[parent_at], cells[child_at]
        if child:
            builder.add(parent or None, child, line)
        elif parent:
            builder.label(parent)


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, each with the line it starts on. A tab-separated file has no quotes."""
    first = next((line for line in source.head_lines() if line.strip()), "")
    delimiter = _delimiter(first)
    if delimiter == "\t":
        for text in source.lines():
            if text.strip():
                yield source.line, text.rstrip("\r\n").split("\t")
    else:
        yield from csv_rows(source, delimiter)


def _is_header(cells: Iterable[str]) -> bool:
    names = {cell.lower() for cell in cells}
    return all(names & known for known in _HEADERS)


def _read_paths(builder: TaxonomyBuilder, source: Source, separator: str | None) -> None:
    """One path from the top down a line; `#` on the first line makes it a comment."""
    guessed = separator is None
    separator = separator or next(
        (mark for mark in SEPARATORS if any(mark in line for line in source.head_lines())), SEPARATORS[0]
    )
    mark = separator.strip()
    for text in source.lines():
        if not text.strip() or (source.line == 1 and text.startswith("#")):
            continue
        names = [name.strip() for name in text.strip("\r\n").split(separator)]
        while len(names) > 1 and not names[-1]:
            names.pop()
        if not all(names) or (guessed and any(name.startswith(mark) or name.endswith(mark) for name in names)):
            raise source.error(
                f"a name in the path is empty: {shown(text.strip())}",
                kind="ragged-row",
                line=source.line,
                remedy=f"Names are separated by {mark or separator!r}; name another one with --separator.",
            )
        builder.add_path(names, source.line)


class _Pairs(list[tuple[str, object]]):
    """A JSON object with all its members, also where a key comes twice."""


def _read_json(builder: TaxonomyBuilder, source: Source, _: str | None) -> bool:
    """Nested JSON, or the flat form that `write` makes; answers whether it was the flat one."""
    try:
        value = json.loads("".join(source.lines()), object_pairs_hook=_Pairs)
    except json.JSONDecodeError as error:
        raise source.error(
            f"the JSON is broken: {error.msg} at column {error.colno}",
            kind="broken-json",
            line=error.lineno,
            remedy="One JSON value is expected. Documents come after the taxonomy on the command line."
            if error.msg == "Extra data"
            else "If the file is not JSON, name its format with --format.",
        ) from error
    except (RecursionError, ValueError) as error:
        raise source.error(
            f"the JSON cannot be read ({error})",
            kind="broken-json",
            remedy="Write a very deep taxonomy as 'parent TAB child' lines instead.",
        ) from error
    flat = _flat_labels(value)
    if flat is None:
        add_nested(builder, value)
        return False
    for label, parents in flat:
        builder.label(label)
        for parent in parents:
            builder.add(parent, label)
    builder.root = None  # parents are named one by one here, so any name may be a label
    return True


def _flat_labels(value: object) -> list[tuple[str, list[str]]] | None:
    """The labels and parents of `{"labels": [{"label": ..., "parents": [...]}, ...]}`; `None` for anything else."""
    members = dict(value) if isinstance(value, _Pairs) else {}
    entries = members.get("labels")
    if len(members) != 1 or not isinstance(entries, list) or isinstance(entries, _Pairs):
        return None
    labels = []
    for entry in entries:
        fields = dict(entry) if isinstance(entry, _Pairs) else {}
        parents = fields.get("parents")
        if fields.keys() != {"label", "parents"} or not isinstance(parents, list):
            return None
        labels.append((label_name(fields["label"]), [label_name(parent) for parent in parents]))
    return labels


def add_nested(builder: TaxonomyBuilder, value: object) -> None:
    """Add nested mappings and lists. A leaf is a name, or a name with nothing under it."""
    waiting: deque[tuple[str | None, object]] = deque([(None, value)])
    while waiting:
        above, value = waiting.popleft()
        for name, below in _members(value):
            waiting.append((builder.add_below(above, label_name(name)), below))


def _members(value: object) -> Iterator[tuple[object, object]]:
    """The names right inside a nested value, with what stands under each."""
    if value is None or value == "":
        return
    if isinstance(value, dict):
        value = _Pairs(value.items())
    if isinstance(value, _Pairs):
        members = dict(value)
        name = next((members[key] for key in ("name", "label", "title") if key in members), None)
        if isinstance(name, str | int) and not isinstance(name, bool):
            yield name, members.get("children")
        else:
            yield from value
    elif isinstance(value, list | tuple):
        for entry in value:
            if isinstance(entry, dict | _Pairs | list | tuple):
                yield from _members(entry)
            else:
                yield entry, None
    else:
        yield value, None


_READERS: dict[str, Callable[[TaxonomyBuilder, Source, str | None], bool | None]] = {
    "hiagm": _read_hiagm,
    "edges": _read_edges,
    "json": _read_json,
    "paths": _read_paths,
}


def write_taxonomy(taxonomy: Taxonomy, path: str | Path, *, format: Format = "auto", root: str = ROOT) -> None:
    """Write a taxonomy file that reads back as the same taxonomy, or say why the format cannot hold it."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if format == "auto":
        format = "json" if ".json" in suffixes else "edges" if ".csv" in suffixes else "hiagm"
    comma = format == "edges" and ".csv" in suffixes
    if format == "paths" or format not in FORMATS:
        raise InputError(
            f"a taxonomy cannot be written as {format!r}",
            remedy="Choose hiagm, edges or json.",
            kind="bad-format",
        )
    if format != "json":
        _refuse_unwritable(taxonomy, root, "" if comma else "\t\r\n", str(path))
    write_text(path, _WRITERS["csv" if comma else format](taxonomy, root))


def _refuse_unwritable(taxonomy: Taxonomy, root: str, forbidden: str, file: str) -> None:
    for label in taxonomy.labels:
        if label == root:
            problem = f"a label is called {root!r}, which this format keeps for the artificial root"
        elif any(char in label for char in forbidden):
            problem = f"the label {label!r} holds a tab or a line end, which this format cannot"
        else:
            continue
        raise InputError(problem, kind="unwritable", file=file, remedy="Write it as JSON.")


def _hiagm_lines(taxonomy: Taxonomy, root: str) -> Iterator[str]:
    yield from _family_lines(root, taxonomy.labels[: len(taxonomy.roots)])
    for parent, label in enumerate(taxonomy.labels):
        yield from _family_lines(label, [taxonomy.labels[child] for child in taxonomy.children(parent).tolist()])


def _family_lines(parent: str, children: Sequence[str], most: int = 10_000) -> Iterator[str]:
    """A parent with its children; a very large family goes over several lines, for the sake of line limits."""
    for start in range(0, len(children), most):
        yield "\t".join([parent, *children[start : start + most]]) + "\n"


def _edge_names(taxonomy: Taxonomy, root: str) -> Iterator[tuple[str, str]]:
    yield "parent", "child"
    for label in taxonomy.labels[: len(taxonomy.roots)]:
        yield root, label
    for parent, child in taxonomy.edges.tolist():
        yield taxonomy.labels[parent], taxonomy.labels[child]


def _edge_lines(taxonomy: Taxonomy, root: str) -> Iterator[str]:
    for parent, child in _edge_names(taxonomy, root):
        yield f"{parent}\t{child}\n"


def _csv_lines(taxonomy: Taxonomy, root: str) -> Iterator[str]:
    for pair in _edge_names(taxonomy, root):
        line = io.StringIO()
        has_return = any("\r" in name for name in pair)  # which the writer would leave unquoted
        csv.writer(line, lineterminator="\n", quoting=csv.QUOTE_ALL if has_return else csv.QUOTE_MINIMAL).writerow(pair)
        yield line.getvalue()


def _json_lines(taxonomy: Taxonomy, _: str) -> Iterator[str]:
    """One label a line, its parents named: room for several parents and for any depth."""
    before = '{"labels": [\n'
    for number, label in enumerate(taxonomy.labels):
        parents = [taxonomy.labels[parent] for parent in taxonomy.parents(number).tolist()]
        yield before + json.dumps({"label": label, "parents": parents}, ensure_ascii=False)
        before = ",\n"
    yield "\n]}\n"


_WRITERS: dict[str, Callable[[Taxonomy, str], Iterator[str]]] = {
    "hiagm": _hiagm_lines,
    "edges": _edge_lines,
    "csv": _csv_lines,
    "json": _json_lines,
}
