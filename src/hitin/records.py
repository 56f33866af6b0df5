"""Document files to records: JSON lines, CSV, TSV and Parquet, one mapping a document with its line."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from hitin.errors import InputError, OnError, counted, raise_error, shown
from hitin.extras import need
from hitin.files import Source
from hitin.tables import csv_rows, delimiter_of, tsv_rows

RecordFormat = Literal["auto", "jsonl", "csv", "tsv", "parquet"]

Record = Mapping[str, object]
Columns = Callable[[Sequence[str]], Sequence[str]]
"""Which columns of a table are wanted; raises an `InputError` when one that is needed is not there."""

SUFFIXES: dict[str, RecordFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
}
_OBJECT_A_LINE = 'Write one whole object a line: {"text": "...", "label": ["..."]}'


def read_records(
    source: Source, *, columns: Columns, format: RecordFormat = "auto", on_error: OnError = raise_error
) -> Iterator[tuple[int, Record]]:
    """Records with the line each starts on (the row, in Parquet). A bad record goes to `on_error` and is left out."""
    if format == "auto":
        format = recognise(source)
    if format == "jsonl":
        return _json_lines(source, on_error)
    if format == "parquet":
        return _parquet_rows(source, columns)
    if format in ("csv", "tsv"):
        return _table_rows(source, columns, format, on_error)
    raise InputError(
        f"there is no document format {shown(format)}",
        kind="bad-option",
        remedy="Choose one of jsonl, csv, tsv, parquet.",
    )


def recognise(source: Source) -> RecordFormat:
    """The format of opened documents, by the first bytes and the suffix."""
    if source.head.startswith(b"PAR1"):
        return "parquet"
    first = source.first_line.lstrip()
    if first.startswith("{"):
        return "jsonl"
    named = SUFFIXES.get(source.suffix)
    if named == "parquet":
        raise source.error("this is not a Parquet file", kind="unreadable", remedy="Is the suffix right?")
    if first.startswith("["):
        return "jsonl"
    return named or ("tsv" if "\t" in first else "csv")


def _json_lines(source: Source, on_error: OnError) -> Iterator[tuple[int, Record]]:
    if source.first_line.lstrip().startswith("["):
        raise source.error(
            "the file is one JSON array; one object a line is expected",
            kind="broken-json",
            line=1,
            remedy="Convert it, for example with: jq -c '.[]' FILE > documents.jsonl",
        )
    for text in source.lines(on_error):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            problem = f"the JSON is broken: {error.msg} at column {error.colno}"
        except (ValueError, RecursionError) as error:  # a number of thousands of digits, brackets without end
            problem = f"the JSON is broken: {error}"
        else:
            if isinstance(record, dict):
                yield source.line, record
                continue
            problem = "the line is JSON but not an object"
        on_error(source.error(problem, kind="broken-json", line=source.line, remedy=_OBJECT_A_LINE))


def _table_rows(
    source: Source, columns: Columns, format: RecordFormat, on_error: OnError
) -> Iterator[tuple[int, Record]]:
    """Rows of a CSV or TSV under a header."""
    delimiter = "\t" if format == "tsv" else _delimiter(source, columns)
    rows = tsv_rows(source, on_error) if delimiter == "\t" else csv_rows(source, delimiter, on_error)
    header: list[str] = []
    wanted: list[tuple[int, str]] = []
    for line, row in rows:
        if not header:
            header = [cell.strip() for cell in row]
            try:
                wanted = [(header.index(name), name) for name in columns(header)]
            except InputError as error:
                error.line = line
                error.remedy = f"The first row names the columns. {error.remedy}"
                raise
        elif len(row) == len(header) or (len(row) > len(header) and not any(row[len(header) :])):
            yield line, {name: row[at] for at, name in wanted}
        else:
            on_error(_ragged(source, line, row, header, delimiter))


def _delimiter(source: Source, columns: Columns) -> str:
    def fits(header: list[str]) -> bool:
        try:
            return bool(columns([cell.strip().strip('"') for cell in header]))
        except InputError:
            return False

    return delimiter_of([source.first_line], fits=fits)


def _ragged(source: Source, line: int, row: list[str], header: list[str], delimiter: str) -> InputError:
    lines = source.line - line + 1
    mark = "a tab" if delimiter == "\t" else repr(delimiter)
    return source.error(
        f"the row has {counted(len(row), 'column')} where the header has {len(header)}"
        + (f" (it runs over {lines} lines)" if lines > 1 and delimiter != "\t" else ""),
        kind="bad-row",
        line=line,
        remedy=f"Put cells that hold {mark} or a line end in double quotes, and write a double quote in them twice.",
    )


def _parquet_rows(source: Source, columns: Columns) -> Iterator[tuple[int, Record]]:
    """Rows of the wanted columns, a batch at a time. Parquet is read from its end, so pipes are copied first."""
    parquet = need("pyarrow.parquet", extra="parquet", purpose="A Parquet file")
    arrow = need("pyarrow", extra="parquet", purpose="A Parquet file")
    row = 0
    try:
        with source.seekable_file() as file, parquet.ParquetFile(file) as table:
            wanted = list(columns(table.schema_arrow.names))
            for batch in table.iter_batches(batch_size=1024, columns=wanted):
                for record in batch.to_pylist():
                    row += 1
                    source.line = row
                    yield row, record
    except (arrow.ArrowException, OSError, UnicodeDecodeError) as error:
        raise source.error(
            f"the Parquet file is damaged after row {row} ({str(error).splitlines()[0]})",
            kind="unreadable",
            remedy="Write or copy it again.",
        ) from error
