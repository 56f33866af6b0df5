"""Document files to records: JSON lines, CSV, TSV and Parquet, one mapping a document with its line."""

import csv
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from hitin.errors import InputError, OnError, raise_error
from hitin.extras import need
from hitin.files import LINE_LIMIT, Source

RecordFormat = Literal["auto", "jsonl", "csv", "tsv", "parquet"]
FORMATS = ("jsonl", "csv", "tsv", "parquet")

Record = Mapping[str, object]
Columns = Callable[[Sequence[str]], Sequence[str]]
"""Which columns of a table are wanted; raises an `InputError` when one that is needed is not there."""

_SUFFIXES: dict[str, RecordFormat] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
}


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
    raise InputError(f"there is no document format {format!r}", remedy=f"Choose one of {', '.join(FORMATS)}.")


def recognise(source: Source) -> RecordFormat:
    """The format of opened documents, by the first bytes and the suffix."""
    if source.head.startswith(b"PAR1"):
        return "parquet"
    first = next((line for line in source.head_lines() if line.strip()), "").lstrip()
    if first.startswith("{"):
        return "jsonl"
    named = _SUFFIXES.get(source.format_suffix)
    if named == "parquet":
        raise source.error("this is not a Parquet file", kind="unreadable", remedy="Is the suffix right?")
    return named or ("tsv" if "\t" in first else "csv")


def _json_lines(source: Source, on_error: OnError) -> Iterator[tuple[int, Record]]:
    for text in source.lines(on_error):
        if not text.strip():
            continue
        try:
            record = json.loads(text)
        except (ValueError, RecursionError) as error:
            if source.line == 1 and re.match(r"\s*\[\s*[{\n]?", text):
                raise _array(source) from error
            on_error(_broken(source, error))
            continue
        if isinstance(record, dict):
            yield source.line, record
        elif source.line == 1 and isinstance(record, list):
            raise _array(source)
        else:
            on_error(
                source.error(
                    "the line is JSON but not an object",
                    kind="broken-json",
                    line=source.line,
                    remedy='Write one object a line: {"text": "...", "label": ["..."]}',
                )
            )


def _array(source: Source) -> InputError:
    return source.error(
        "the file is one JSON array; one object a line is expected",
        kind="broken-json",
        line=1,
        remedy=f"Convert it, for example with: jq -c '.[]' {source.name} > documents.jsonl",
    )


def _broken(source: Source, error: Exception) -> InputError:
    detail = f"{error.msg} at column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
    return source.error(
        f"the JSON is broken: {detail}",
        kind="broken-json",
        line=source.line,
        remedy='Each line is one whole object: {"text": "...", "label": ["..."]}',
    )


def _table_rows(
    source: Source, columns: Columns, format: RecordFormat, on_error: OnError
) -> Iterator[tuple[int, Record]]:
    """Rows of a CSV or TSV with a header."""
    delimiter = "\t" if format == "tsv" else _delimiter(source)
    header: list[str] = []
    wanted: list[tuple[int, str]] = []
    for line, row in csv_rows(source, delimiter, on_error):
        if not header:
            header = [cell.strip() for cell in row]
            wanted = [(header.index(name), name) for name in columns(header)]
        elif len(row) != len(header):
            on_error(_ragged(source, line, row, header, delimiter))
        else:
            yield line, {name: row[at] for at, name in wanted}


def csv_rows(source: Source, delimiter: str, on_error: OnError = raise_error) -> Iterator[tuple[int, list[str]]]:
    """Rows that are not blank, quoted as spreadsheets and data frames do it, each with the line it starts on."""
    csv.field_size_limit(max(csv.field_size_limit(), LINE_LIMIT))
    reader = csv.reader(source.lines(on_error), delimiter=delimiter, skipinitialspace=delimiter != "\t", strict=True)
    while True:
        start = source.line + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            on_error(
                source.error(
                    f"the row cannot be read ({error})",
                    kind="ragged-row",
                    line=start,
                    remedy="Is a double quote left open? A double quote inside a quoted cell is written twice.",
                )
            )
        else:
            if any(cell.strip() for cell in row):
                yield start, row


def _delimiter(source: Source) -> str:
    first = next((line for line in source.head_lines() if line.strip()), "")
    return max(",;\t", key=first.count)


def _ragged(source: Source, line: int, row: list[str], header: list[str], delimiter: str) -> InputError:
    lines = source.line - line + 1
    return source.error(
        f"the row has {len(row)} columns where the header has {len(header)}"
        + (f" (it runs over {lines} lines)" if lines > 1 else ""),
        kind="ragged-row",
        line=line,
        remedy=f"Put cells that hold {'a tab' if delimiter == chr(9) else delimiter!r} or a line end in double "
        "quotes, and write a double quote inside them twice.",
    )


def _parquet_rows(source: Source, columns: Columns) -> Iterator[tuple[int, Record]]:
    parquet = need("pyarrow.parquet", extra="parquet", purpose="A Parquet file")
    arrow = need("pyarrow", extra="parquet", purpose="A Parquet file")
    row = 0
    try:
        with parquet.ParquetFile(source.name) as file:
            wanted = list(columns(file.schema_arrow.names))
            for batch in file.iter_batches(batch_size=1024, columns=wanted):
                for record in batch.to_pylist():
                    row += 1
                    source.line = row
                    yield row, record
    except (arrow.ArrowException, OSError) as error:
        raise source.error(
            f"the Parquet file is damaged ({str(error).splitlines()[0]})",
            kind="unreadable",
            line=row or None,
            remedy="Write or copy it again.",
        ) from error
