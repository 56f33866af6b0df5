"""What `hitin predict` does: texts in, a line of JSON for each, in order and some at a time."""

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.ahead import Workers
from hitin.commands.console import FileProgress
from hitin.commands.standard_input import LiveInput
from hitin.decisions.policies import best_labels
from hitin.documents import Document, Keys, documents_in
from hitin.errors import InputError
from hitin.estimator import HierarchicalTextClassifier
from hitin.files import STANDARD_INPUT, Source
from hitin.model import documents_at_once
from hitin.names import PATH_SEPARATOR
from hitin.taxonomy import Taxonomy

_DOCUMENTS = 2048  # of a file that are scored together: enough for batches of equal lengths
_LIVE_DOCUMENTS = 256  # of standard input, whose answers are waited for
_CHARACTERS = 1 << 22  # of documents that are scored together
_PATIENCE = 0.5  # seconds: reading may wait for a person or another program
_TEXT_SUFFIX = ".txt"

Probabilities = NDArray[np.float32]
Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Answers:
    """What is told of each document."""

    classifier: HierarchicalTextClassifier
    top: int = 0
    """The most probable labels that are told besides, whether given or not."""
    all_scores: bool = False
    with_text: bool = False
    deepest: bool = False
    """Whether the ancestors of what is given are left out."""
    _paths: dict[int, str] = field(default_factory=dict)

    def of(self, documents: list[Document], logits: Logits) -> list[dict[str, Any]]:
        """A record for each document."""
        scored = self.classifier.decided(logits)
        return [self._record(*each) for each in zip(documents, *scored, strict=True)]

    @property
    def taxonomy(self) -> Taxonomy:
        return self.classifier.taxonomy_

    def _record(
        self, document: Document, probabilities: Probabilities, chosen: NDArray[np.bool_], stopped: NDArray[np.bool_]
    ) -> dict[str, Any]:
        labels = np.flatnonzero(chosen).tolist()  # labels are numbered from the top down
        ends = self.taxonomy.deepest(self.taxonomy.closure(labels))
        record: dict[str, Any] = {} if document.id is None else {"id": document.id}
        if self.with_text:
            record["text"] = document.text
        record["labels"] = [self.taxonomy.labels[label] for label in (ends if self.deepest else labels)]
        record["paths"] = [self._path(label) for label in ends]
        record["scores"] = self._scores(range(len(probabilities)) if self.all_scores else labels, probabilities)
        if stopped.any():
            record["unsure"] = self._scores(np.flatnonzero(stopped).tolist(), probabilities)
        if self.top:
            record["top"] = self._scores(best_labels(probabilities[None], self.top)[0].tolist(), probabilities)
        return record

    def _scores(self, labels: Iterable[int], probabilities: Probabilities) -> dict[str, float]:
        return {self.taxonomy.labels[label]: float(f"{probabilities[label]:.4g}") for label in labels}

    def _path(self, label: int) -> str:
        if label not in self._paths:
            self._paths[label] = path_of(self.taxonomy, label)
        return self._paths[label]


def path_of(taxonomy: Taxonomy, label: int) -> str:
    """`A > B > C`: from the top to a label, by the first parent where there are several."""
    numbers = [label]
    while len(parents := taxonomy.parents(numbers[-1])):
        numbers.append(int(parents[0]))
    path = ""
    for name in (taxonomy.labels[number] for number in reversed(numbers)):
        is_whole = not path or name.startswith(path + PATH_SEPARATOR)  # a label may be called by its whole path
        path = name if is_whole else path + PATH_SEPARATOR + name
    return path


def answer_lines(chunks: Iterable[list[Document]], answers: Answers, encoding: str = "utf-8") -> Generator[str]:
    """The answers to each chunk as lines of JSON, in this encoding or else in ASCII.

    While some documents are answered, the next are scored, and those after them read.
    """
    model = answers.classifier.model_
    with Workers() as workers:
        read = ((chunk, model.prepared([document.text for document in chunk])) for chunk in chunks)
        ready = workers.ahead(read, patience=_PATIENCE)
        scored = workers.ahead((chunk, model.prepared_logits(each, workers.check)) for chunk, each in ready)
        for chunk, logits in scored:
            yield "".join(_line(record, encoding) + "\n" for record in answers.of(chunk, logits))


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
        return documents_in(source, Keys(self.text_key, labelled=False), format=format)

    def _format(self, source: Source) -> str:
        if self.format != "auto":
            return self.format
        if isinstance(source, LiveInput) and not source.head.startswith(b"PAR1"):
            return "jsonl" if source.first_line.lstrip().startswith("{") else "text"
        return "text" if source.suffix == _TEXT_SUFFIX else "auto"


def _text_lines(source: Source) -> Iterator[Document]:
    """Each line is a text, an empty one too, so that answers and lines agree."""
    for line in source.lines():
        yield Document(line.rstrip("\r\n"), file=source.name, line=source.line)
