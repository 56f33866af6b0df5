"""Documents: a text and the names of its labels, from files, data frames, data sets or plain Python."""

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hitin.errors import InputError, OnError, raise_error
from hitin.files import Source
from hitin.records import Record, RecordFormat, read_records
from hitin.taxonomy import label_name, shown

TEXT_KEYS = ("text", "token", "doc_token")
LABEL_KEYS = ("label", "labels", "doc_label")
ID_KEYS = ("id", "doc_id")


class Document(NamedTuple):
    """A text, the labels it was given (ancestors may be missing), and where it stands."""

    text: str
    labels: tuple[str, ...] = ()
    id: str | None = None
    file: str | None = None
    line: int | None = None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.file else f"document {self.line}"


@dataclass(frozen=True)
class Keys:
    """Which keys or columns hold the text, the labels and the id; the usual names when not given."""

    text: str | None = None
    label: str | None = None
    labelled: bool = True
    """Whether a document must have a label key."""

    def find(self, available: Iterable[str]) -> tuple[str | None, str | None, str | None]:
        """The keys of text, labels and id among those that are there."""
        names = set(available)
        return (
            _first(names, (self.text,) if self.text else TEXT_KEYS),
            _first(names, (self.label,) if self.label else LABEL_KEYS),
            _first(names, ID_KEYS),
        )

    def columns(self, available: Sequence[str]) -> list[str]:
        """The wanted columns of a table, or an error that names those it has."""
        text, label, id = self.find(available)
        for found, flag, usual, named in (
            (text, "--text-key", TEXT_KEYS, self.text),
            (label, "--label-key", LABEL_KEYS, self.label),
        ):
            if found is None and (flag == "--text-key" or self.labelled):
                looked_for = repr(named) if named else " or ".join(repr(key) for key in usual)
                raise InputError(
                    f"no column is called {looked_for}; there are: {_listed(available)}",
                    kind="no-text" if flag == "--text-key" else "no-label",
                    line=1,
                    remedy=f"The first row names the columns. Say which one to take with {flag}.",
                )
        return [name for name in (text, label, id) if name is not None]


def read_documents(
    data: object,
    *,
    text_key: str | None = None,
    label_key: str | None = None,
    labelled: bool = True,
    format: RecordFormat = "auto",
    encoding: str | None = None,
    on_error: OnError = raise_error,
) -> Iterator[Document]:
    """Stream documents from a file, a data frame (pandas, polars), a Hugging Face data set or an iterable.

    An iterable holds mappings, `Document`s or `(text, labels)` pairs. Bad documents go to `on_error`, which
    raises unless told otherwise. `labelled=False` lets documents come without a label key.
    """
    keys = Keys(text_key, label_key, labelled)
    if isinstance(data, str | Path):
        return _from_file(data, keys, format, encoding, on_error)
    if isinstance(data, Mapping):
        raise InputError(
            f"one set of documents is expected, not a mapping of {_listed(data)}",
            kind="bad-documents",
            remedy="Pick a split of it, for example data['train'].",
        )
    columns = getattr(data, "columns", None)
    columns = getattr(data, "column_names", None) if columns is None else columns
    if columns is not None and not callable(columns):
        return _from_table(data, [str(name) for name in columns], keys, on_error)
    if isinstance(data, Iterable):
        return _from_items(data, keys, on_error)
    raise InputError(f"documents cannot be read from {shown(data)}", kind="bad-documents")


def documents_in(
    source: Source, keys: Keys, *, format: RecordFormat = "auto", on_error: OnError = raise_error
) -> Iterator[Document]:
    """Stream the documents of an opened file."""
    try:
        for line, record in read_records(source, columns=keys.columns, format=format, on_error=on_error):
            try:
                yield _document(record, keys, source.name, line)
            except InputError as error:
                on_error(error)
    except InputError as error:
        error.file = error.file or source.name
        raise


def _from_file(
    path: str | Path, keys: Keys, format: RecordFormat, encoding: str | None, on_error: OnError
) -> Iterator[Document]:
    with Source(path, encoding=encoding) as source:
        yield from documents_in(source, keys, format=format, on_error=on_error)


def _from_table(data: object, names: list[str], keys: Keys, on_error: OnError) -> Iterator[Document]:
    """Columns by name: the one access that data frames and data sets have in common."""
    wanted = keys.columns(names)
    columns = [data[name] for name in wanted]  # type: ignore[index]  # duck typing: a data frame or data set
    for row, cells in enumerate(zip(*columns, strict=True), start=1):
        try:
            yield _document(dict(zip(wanted, cells, strict=True)), keys, None, row)
        except InputError as error:
            on_error(error)


def _from_items(data: Iterable[object], keys: Keys, on_error: OnError) -> Iterator[Document]:
    for number, item in enumerate(data, start=1):
        try:
            if isinstance(item, Document):
                yield item if item.line else item._replace(line=number)
            elif isinstance(item, Mapping):
                yield _document(item, keys, None, number)
            elif isinstance(item, tuple | list) and len(item) == 2:
                yield _document({"text": item[0], "label": item[1]}, Keys(), None, number)
            else:
                raise InputError(
                    f"a document is a mapping or a pair of text and labels, not {shown(item)}",
                    kind="bad-documents",
                    line=number,
                )
        except InputError as error:
            on_error(error)


def _document(record: Record, keys: Keys, file: str | None, line: int) -> Document:
    """The document of a record, or an `InputError` that names its place."""
    text_key, label_key, id_key = keys.find(record)
    try:
        if text_key is None or _is_missing(record[text_key]):
            raise InputError(
                f"the document has no text; its keys are {_listed(record)}",
                kind="no-text",
                remedy=f"The text is looked for under {', '.join(TEXT_KEYS)}; name another key with --text-key.",
            )
        labels: tuple[str, ...] = ()
        if label_key is not None and not _is_missing(record[label_key]):
            labels = label_names(record[label_key])
        elif keys.labelled:
            raise InputError(
                f"the document has no label; its keys are {_listed(record)}",
                kind="no-label",
                remedy=f"Labels are looked for under {', '.join(LABEL_KEYS)}; name another key with --label-key. "
                "A document that belongs nowhere has an empty list.",
            )
        id = None if id_key is None or _is_missing(record[id_key]) else str(record[id_key])
        return Document(_text(record[text_key]), labels, id, file, line)
    except InputError as error:
        error.file, error.line = file, line
        raise


def label_names(value: object) -> tuple[str, ...]:
    """The names in a label cell: text, a number, or a list of these. Paths and `A|B` are left to `LabelReader`."""
    value = _plain(value)
    if isinstance(value, str):
        return _names_in_text(value)
    if isinstance(value, list | tuple | set | frozenset):
        return tuple([label_name(_plain(name)) for name in value])
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (label_name(value),)
    raise InputError(
        f"labels must be text or a list of texts, not {shown(value)}",
        kind="bad-label",
        remedy='Write "label": ["A", "B"], or "label": "A|B".',
    )


def _names_in_text(text: str) -> tuple[str, ...]:
    """One name, or the names of a list that a spreadsheet or data frame turned into text."""
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        for parse in (json.loads, ast.literal_eval):
            try:
                names = parse(text)
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
            if isinstance(names, list) and all(isinstance(name, str) for name in names):
                return tuple([label_name(name) for name in names])
    return (label_name(text),) if text else ()


def _text(value: object) -> str:
    """The text of a document: as it is, or words joined by blanks."""
    value = _plain(value)
    if isinstance(value, list | tuple):
        value = " ".join([str(word) for word in value])
    elif isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    elif not isinstance(value, str):
        raise InputError(f"the text must be text or a list of words, not {shown(value)}", kind="no-text")
    return value if value.isascii() else _whole_characters(value)


def _whole_characters(text: str) -> str:
    """Half characters, which JSON escapes can smuggle in, become the replacement character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _plain(value: object) -> object:
    """NumPy, Arrow and polars values as plain Python."""
    if isinstance(value, str | list):
        return value
    for method in ("as_py", "to_list", "tolist"):
        if hasattr(value, method):
            return getattr(value, method)()
    return value


def _is_missing(value: object) -> bool:
    """`None`, and the ways data frames say it: NaN and NA."""
    if value is None:
        return True
    return (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")


def _first(names: set[str], candidates: tuple[str, ...]) -> str | None:
    return next((name for name in candidates if name in names), None)


def _listed(names: Iterable[object], most: int = 8) -> str:
    every = [str(name) for name in names]
    return ", ".join(every[:most]) + (", ..." if len(every) > most else "") or "none"
