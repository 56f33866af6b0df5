"""Documents: a text and the names of its labels, from files, data frames, data sets or plain Python."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from hitin.cells import labels_of, plain, text_of
from hitin.errors import InputError, OnError, listed, place, raise_error, shown
from hitin.files import FileProgress, Source
from hitin.records import Record, RecordFormat, read_records

TEXT_KEYS = ("text", "token", "doc_token")
LABEL_KEYS = ("label", "labels", "doc_label")
ID_KEYS = ("id", "doc_id")
_SHOW_EVERY = 512  # documents


class Document(NamedTuple):
    """A text, the labels it was given (ancestors may be missing), and where it stands."""

    text: str
    labels: tuple[str, ...] = ()
    id: str | None = None
    file: str | None = None
    line: int | None = None

    @property
    def place(self) -> str:
        return place(self.file, self.line)


def as_line(document: Document) -> str:
    """A line of JSON that reads back as the document."""
    name = {} if document.id is None else {"id": document.id}
    return json.dumps({**name, "text": text_of(document.text), "label": document.labels}, ensure_ascii=False) + "\n"


def print_of(words: Iterable[str]) -> int:
    """64 bits of a text, of its words: two different ones among a million agree with a probability below 1e-7."""
    return int.from_bytes(blake2b(" ".join(words).encode(), digest_size=8).digest(), "little")


@dataclass(frozen=True)
class Keys:
    """Which keys or columns hold the text, the labels and the id; the usual names when not given."""

    text: str | None = None
    label: str | None = None
    labelled: bool = True
    """Whether a document must have a label key."""
    reads_labels: bool = True
    """Whether labels that are there are looked at."""

    @property
    def text_names(self) -> tuple[str, ...]:
        return (self.text,) if self.text else TEXT_KEYS

    @property
    def label_names(self) -> tuple[str, ...]:
        if not self.reads_labels:
            return ()
        return (self.label,) if self.label else LABEL_KEYS

    def columns(self, available: Sequence[str]) -> list[str]:
        """The wanted columns of a table, or an error that names those it has."""
        text, label = _first(available, self.text_names), _first(available, self.label_names)
        if text is None:
            raise _no_column("text", self.text_names, available)
        if label is None and self.labelled:
            raise _no_column("label", self.label_names, available)
        wanted = [name for name in (text, label, _first(available, ID_KEYS)) if name is not None]
        for name in wanted:
            if list(available).count(name) > 1:
                raise InputError(
                    f"two columns are called {shown(name)}", kind="bad-row", remedy="Give each a name of its own."
                )
        return wanted


def _no_column(what: str, names: tuple[str, ...], available: Sequence[str]) -> InputError:
    return InputError(
        f"no column is called {' or '.join(repr(name) for name in names)}; there are: {listed(list(available))}",
        kind=f"no-{what}",
        remedy=f"Say which column to take with --{what}-key.",
    )


def read_documents(
    data: object,
    *,
    text_key: str | None = None,
    label_key: str | None = None,
    labelled: bool = True,
    format: RecordFormat = "auto",
    encoding: str | None = None,
    name: str | None = None,
    on_error: OnError = raise_error,
) -> Iterator[Document]:
    """Stream documents from a file, a data frame (pandas, polars, Arrow), a Hugging Face data set or an iterable.

    An iterable holds mappings, `Document`s or `(text, labels)` pairs. Bad documents go to `on_error`, which
    raises unless told otherwise. `labelled=False` lets documents come without a label key. `name` stands for
    the file in the places of documents that come from none.
    """
    keys = Keys(text_key, label_key, labelled)
    if isinstance(data, str | Path):
        return _from_file(data, keys, format, encoding, on_error)
    if isinstance(data, Mapping):
        raise InputError(
            f"one set of documents is expected, not a mapping of {listed([str(key) for key in data])}",
            kind="bad-documents",
            remedy="Pick a split of it, for example data['train'].",
        )
    if is_table(data) and hasattr(data, "collect"):
        raise InputError(
            f"a {type(data).__name__} has no rows yet",
            kind="bad-documents",
            remedy="Collect it into a data frame first.",
        )
    if is_table(data):
        return _from_table(data, keys, name, on_error)
    if isinstance(data, Iterable):
        return _from_items(data, keys, name, on_error)
    raise InputError(f"documents cannot be read from {shown(data)}", kind="bad-documents")


def is_table(data: object) -> bool:
    """Whether this is a data frame or data set. Its type is asked: a lazy frame's columns may cost much."""
    return hasattr(type(data), "column_names") or hasattr(type(data), "columns")


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


def documents_of(
    files: Iterable[str], keys: Keys, *, encoding: str | None = None, progress: FileProgress | None = None
) -> Iterator[Document]:
    """Stream the documents of files, one after the other, and show how far it has come."""
    for file in files:
        with Source(file, encoding=encoding) as source:
            for number, document in enumerate(documents_in(source, keys)):
                if progress and number % _SHOW_EVERY == 0:
                    progress(source.name, source.position, source.size)
                yield document


def _from_file(
    path: str | Path, keys: Keys, format: RecordFormat, encoding: str | None, on_error: OnError
) -> Iterator[Document]:
    with Source(path, encoding=encoding) as source:
        yield from documents_in(source, keys, format=format, on_error=on_error)


def _from_table(data: Any, keys: Keys, name: str | None, on_error: OnError) -> Iterator[Document]:
    """Columns by name: the one access that data frames and data sets have in common."""
    columns = list(data.column_names if hasattr(data, "column_names") else data.columns)
    wanted = keys.columns([str(column) for column in columns])
    by_name = {str(column): column for column in columns}
    cells = [_column(data, by_name[column]) for column in wanted]
    for row, values in enumerate(zip(*cells, strict=True), start=1):
        try:
            yield _document(dict(zip(wanted, values, strict=True)), keys, name, row)
        except InputError as error:
            on_error(error)


def _column(data: Any, column: Any) -> Iterable[object]:
    """The values of a column; a data set that numbers its classes is asked for their names."""
    values = data[column]
    features = getattr(data, "features", None)
    feature = features.get(column) if isinstance(features, Mapping) else None
    feature = getattr(feature, "feature", feature)  # what a list is made of
    names = getattr(feature, "names", None)
    return values if names is None else (_class_names(value, names) for value in values)


def _class_names(value: object, names: list[str]) -> object:
    value = plain(value)
    if isinstance(value, list):
        return [_class_names(each, names) for each in value]
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value


def _from_items(data: Iterable[object], keys: Keys, name: str | None, on_error: OnError) -> Iterator[Document]:
    for number, item in enumerate(data, start=1):
        try:
            if isinstance(item, Document):
                yield _checked(item, name, number)
            elif isinstance(item, Mapping):
                yield _document(item, keys, name, number)
            elif isinstance(item, tuple | list) and len(item) == 2:
                yield _document({"text": item[0], "label": item[1]}, Keys(labelled=keys.labelled), name, number)
            else:
                raise InputError(
                    f"a document is a mapping or a pair of text and labels, not {shown(item)}",
                    kind="bad-documents",
                    file=name,
                    line=number,
                )
        except InputError as error:
            on_error(error)


def _checked(document: Document, name: str | None, number: int) -> Document:
    """A document that was made by hand, as it would have been read."""
    record = {"text": document.text, "label": document.labels, "id": document.id}
    file, line = (document.file, document.line) if document.line else (name, number)
    return _document(record, Keys(), file, line)


def _document(record: Record, keys: Keys, file: str | None, line: int) -> Document:
    """The document of a record, or an `InputError` that names its place."""
    try:
        text = _value(record, keys.text_names)
        if text is None:
            raise _missing(record, "text", keys.text_names)
        labels = _value(record, keys.label_names)
        if labels is None and keys.labelled:
            raise _missing(record, "label", keys.label_names)
        id = _value(record, ID_KEYS)
        return Document(
            text_of(text),
            () if labels is None else labels_of(labels),
            None if id is None else str(id),
            file,
            line,
        )
    except InputError as error:
        error.file, error.line = file, line
        raise


def _value(record: Record, names: tuple[str, ...]) -> object:
    """The value under the first of the names that is there, as plain Python; `None` for what is missing."""
    for name in names:
        if name in record:
            return plain(record[name])
    return None


def _missing(record: Record, what: str, names: tuple[str, ...]) -> InputError:
    found = _first(record, names)
    if found:
        problem = f"its {found!r} is null"
    else:
        keys, wanted = listed([str(key) for key in record]), " or ".join(repr(name) for name in names)
        problem = f"its keys are {keys}, none is {wanted}"
    remedy = f"Name the right key with --{what}-key."
    if what == "label":
        remedy += " A document that belongs nowhere has an empty list."
    return InputError(f"the document has no {what}: {problem}", kind=f"no-{what}", remedy=remedy)


def _first(available: Iterable[str], candidates: tuple[str, ...]) -> str | None:
    names = set(available)
    return next((name for name in candidates if name in names), None)
