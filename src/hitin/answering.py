"""Texts in, an answer to each, in order and some at a time: of a single stream, and of every shard of a folder."""

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hitin.ahead import Workers
from hitin.answers import Answers
from hitin.compression import format_suffix
from hitin.documents import Document, Keys, documents_in
from hitin.errors import InputError
from hitin.files import STANDARD_INPUT, FileProgress, Source, check_there, is_folder
from hitin.live_input import LiveInput
from hitin.model import documents_at_once
from hitin.taxonomy import Taxonomy
from hitin.writing import check_not_read, check_writable

_DOCUMENTS = 2048  # of a file that are scored together: enough for batches of equal lengths
_LIVE_DOCUMENTS = 256  # of standard input, whose answers are waited for
_CHARACTERS = 1 << 22  # of documents that are scored together
_PATIENCE = 0.5  # seconds: reading may wait for a person or another program
TEXT_SUFFIX = ".txt"
_TABLES = (".csv", ".tsv", ".tab", ".parquet", ".xlsx", ".xls")


def check_answers_file(path: str, files: Iterable[str]) -> None:
    """Refuse a file that answers to a single stream cannot be written to, or are not looked for in, before the work.

    Missing files of documents are told first: a folder of answers is right for a folder whose name was misspelt.
    """
    for file in files:
        if file != STANDARD_INPUT:
            check_there(file)
    if is_folder(path):
        raise InputError(
            "this is a folder, and the answers are one file",
            kind="directory",
            file=path,
            remedy=f"Name a file, such as {Path(path) / 'answers.jsonl'}.",
        )
    suffix = format_suffix(path)
    if suffix in _TABLES:
        remedy = "Call it .jsonl."
        if suffix == ".parquet":
            remedy += " For Parquet, name a folder: --out FOLDER --engine local --to parquet."
        raise InputError(f"answers are lines of JSON, not {suffix}", kind="bad-option", file=path, remedy=remedy)
    check_writable(path)
    check_not_read(path, files)


def answer_lines(chunks: Iterable[list[Document]], answers: Answers, encoding: str = "utf-8") -> Generator[str]:
    """The answers to each chunk as lines of JSON, in this encoding or else in ASCII."""
    with closing(answer_records(chunks, answers)) as answered:
        for records in answered:
            yield as_lines(records, encoding)


def answer_records(chunks: Iterable[list[Document]], answers: Answers) -> Generator[list[dict[str, Any]]]:
    """The answers to each chunk. While some documents are answered, the next are scored, and those after them read."""
    model = answers.classifier.model_
    with Workers() as workers:
        read = ((chunk, model.prepared([document.text for document in chunk])) for chunk in chunks)
        ready = workers.ahead(read, patience=_PATIENCE)
        scored = workers.ahead((chunk, answers.scores(each, workers.check)) for chunk, each in ready)
        for chunk, scores in scored:
            yield answers.of(chunk, scores)


def as_lines(records: Iterable[dict[str, Any]], encoding: str = "utf-8") -> str:
    """A line of JSON for each record, in this encoding or else in ASCII."""
    return "".join(_line(record, encoding) + "\n" for record in records)


def _line(record: dict[str, Any], encoding: str) -> str:
    line = json.dumps(record, ensure_ascii=False)
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        return json.dumps(record)
    return line


@dataclass(frozen=True)
class Texts:
    """Where texts come from: files, or standard input as it comes."""

    taxonomy: Taxonomy
    format: str = "auto"
    """One of the formats of documents, or `text`: a text a line."""
    text_key: str | None = None
    encoding: str | None = None

    def chunks(self, files: Iterable[str], progress: FileProgress | None = None) -> Iterator[list[Document]]:
        """Documents, as many together as can be had without waiting. What is wrong is raised after what was right."""
        for file in files:
            yield from self._live_chunks() if file == STANDARD_INPUT else self._file_chunks(file, progress)

    def _live_chunks(self) -> Iterator[list[Document]]:
        with LiveInput(encoding=self.encoding) as source:
            yield from self._chunks(self._documents(source), _LIVE_DOCUMENTS, source.is_waiting)

    def _file_chunks(self, file: str, progress: FileProgress | None) -> Iterator[list[Document]]:
        with Source(file, encoding=self.encoding) as source:
            for chunk in self._chunks(self._documents(source), _DOCUMENTS):
                if progress:
                    progress(source.name, source.position, source.size)
                yield chunk

    def _chunks(
        self, documents: Iterator[Document], most: int, is_waiting: Callable[[], bool] = lambda: False
    ) -> Iterator[list[Document]]:
        chunk: list[Document] = []
        characters, most = 0, documents_at_once(self.taxonomy, most)
        try:
            for document in documents:
                chunk.append(document)
                characters += len(document.text)
                if len(chunk) == most or characters >= _CHARACTERS or is_waiting():
                    yield chunk
                    chunk, characters = [], 0
        except InputError:
            if chunk:
                yield chunk
            raise
        if chunk:
            yield chunk

    def _documents(self, source: Source) -> Iterator[Document]:
        if self._format(source) == "text":
            return _text_lines(source)
        format: Any = self._format(source)
        return documents_in(source, Keys(self.text_key, labelled=False, reads_labels=False), format=format)

    def _format(self, source: Source) -> str:
        if self.format != "auto":
            return self.format
        if isinstance(source, LiveInput) and not source.head.startswith(b"PAR1"):
            return "jsonl" if source.first_line.lstrip().startswith("{") else "text"
        return "text" if source.suffix == TEXT_SUFFIX else "auto"


def _text_lines(source: Source) -> Iterator[Document]:
    """Each line is a text, an empty one too, so that answers and lines agree."""
    for line in source.lines():
        yield Document(line.rstrip("\r\n"), file=source.name, line=source.line)
