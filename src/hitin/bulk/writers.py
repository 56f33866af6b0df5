"""Answers as a file: lines of JSON, or Parquet. Some at a time, so that memory does not grow with the file."""

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hitin.answering import as_lines
from hitin.bulk.request import Request
from hitin.cells import whole_characters
from hitin.compression import of_path, open_compressed
from hitin.extras import need

Record = dict[str, Any]

_ROWS, _BYTES = 1 << 14, 1 << 25  # of a row group of Parquet, at most


class Writer(ABC):
    """A file of answers that is being written."""

    @abstractmethod
    def write(self, records: list[Record]) -> None: ...

    @abstractmethod
    def close(self) -> None:
        """Write what is left."""


@contextmanager
def writing(path: Path, name: str, request: Request) -> Iterator[Writer]:
    """A writer to `path` of what `name` asks for by its suffix. Where the block ends well, the disk has all of it."""
    writer = ParquetWriter(path, request) if name.endswith(".parquet") else LinesWriter(path, name)
    try:
        yield writer
    except BaseException:
        with suppress(OSError):  # of a full disk, which is told already
            writer.close()
        raise
    writer.close()
    with path.open("rb") as file:
        os.fsync(file.fileno())


class LinesWriter(Writer):
    """A line of JSON for each document, compressed as the name says."""

    def __init__(self, path: Path, name: str) -> None:
        compression = of_path(name)
        stream = open_compressed(compression, path, "wb") if compression else path.open("wb")
        self._text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n")

    def write(self, records: list[Record]) -> None:
        self._text.write(as_lines(records))

    def close(self) -> None:
        self._text.close()


class ParquetWriter(Writer):
    """A row for each document, with the same columns whatever the documents.

    Probabilities are maps from label to number, so that SQL says `scores['Login']`: a struct would have a field for
    each of the labels.
    """

    def __init__(self, path: Path, request: Request) -> None:
        parquet = need("pyarrow.parquet", extra="parquet", purpose="A Parquet file")
        self._arrow = need("pyarrow", extra="parquet", purpose="A Parquet file")
        self.schema = self._schema(request)
        self._file = parquet.ParquetWriter(path, self.schema, compression="zstd")
        self._waiting: list[Any] = []

    def write(self, records: list[Record]) -> None:
        columns = [
            self._arrow.array([_cell(record.get(field.name)) for record in records], type=field.type)
            for field in self.schema
        ]
        self._waiting.append(self._arrow.record_batch(columns, schema=self.schema))
        if sum(batch.num_rows for batch in self._waiting) >= _ROWS or sum(b.nbytes for b in self._waiting) >= _BYTES:
            self._flush()

    def close(self) -> None:
        if self._waiting:
            self._flush()
        self._file.close()

    def _flush(self) -> None:
        table = self._arrow.Table.from_batches(self._waiting, schema=self.schema)
        self._waiting = []
        self._file.write_table(table, row_group_size=len(table))

    def _schema(self, request: Request) -> Any:
        arrow = self._arrow
        names, scores = arrow.list_(arrow.string()), arrow.map_(arrow.string(), arrow.float64())
        fields = [("id", arrow.string())]
        fields += [("text", arrow.string())] if request.with_text else []
        fields += [("labels", names), ("paths", names), ("scores", scores), ("unsure", scores)]
        fields += [("top", scores)] if request.top else []
        return arrow.schema(fields)


def _cell(value: object) -> object:
    """As Arrow takes it: maps as pairs, text without half characters."""
    if isinstance(value, dict):
        return list(value.items())
    return whole_characters(value) if isinstance(value, str) else value
