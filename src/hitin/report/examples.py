"""The documents that a person should look at: the worst answers, and the most surprising true labels."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from hitin.errors import place

Floats = NDArray[np.floating]
Table = NDArray[np.bool_]

LONGEST_TEXT = 600  # characters of a document that are kept
MOST_LABELS = 40  # of each kind that are kept of a document
_SURE = 1e-6  # a probability nearer to 0 or 1 is taken for this, so that no log loss is infinite


class AnyDocument(Protocol):
    """A `hitin.documents.Document`, say."""

    @property
    def text(self) -> str: ...
    @property
    def id(self) -> str | None: ...
    @property
    def file(self) -> str | None: ...
    @property
    def line(self) -> int | None: ...


@dataclass(frozen=True)
class ReportDocument:
    """A text and where it stands."""

    text: str
    id: str | None = None
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Example:
    """A document with its answer: numbers of labels with their probabilities, in the order of the taxonomy."""

    document: ReportDocument
    cut: bool
    """Whether the text went on."""
    f1: float
    log_loss: float
    right: list[tuple[int, float]]
    wrong: list[tuple[int, float]]
    missed: list[tuple[int, float]]
    left_out: int
    """How many more labels there are than are kept."""
    surprise: tuple[int, float, bool]
    """The label that adds most to the log loss, its probability, and whether the document has it."""

    def to_json(self, labels: Sequence[str]) -> dict[str, Any]:
        """Plain values, labels by their names."""
        named = {
            kind: [{"label": labels[label], "probability": probability} for label, probability in given]
            for kind, given in (("right", self.right), ("wrong", self.wrong), ("missed", self.missed))
        }
        label, probability, true = self.surprise
        return {
            "text": self.document.text,
            "cut": self.cut,
            "id": self.document.id,
            "file": self.document.file,
            "line": self.document.line,
            "f1": self.f1,
            "log_loss": self.log_loss,
            **named,
            "labels_left_out": self.left_out,
            "surprise": {"label": labels[label], "probability": probability, "true": true},
        }


@dataclass
class Kept:
    """The `most` examples that come first: those of the lowest key, which is the same in whatever chunks they come."""

    most: int
    _found: list[tuple[tuple[float, ...], Example]] = field(default_factory=list)

    def add(self, keys: Sequence[tuple[float, ...]], examples: Sequence[Example]) -> None:
        self._found += zip(keys, examples, strict=True)
        self._found.sort(key=lambda pair: pair[0])
        del self._found[self.most :]

    @property
    def examples(self) -> list[Example]:
        return [example for _, example in self._found]


class Examples:
    """Keeps the worst and the most surprising documents of a stream, and no other."""

    def __init__(self, most: int) -> None:
        self.worst = Kept(most)
        self.surprising = Kept(most)
        self._seen = 0

    def add(self, documents: Sequence[AnyDocument], probabilities: Floats, given: Table, truth: Table) -> None:
        """Look at a chunk of documents, which should not be too large: some tables of its size are made."""
        f1 = document_f1(given, truth)
        confidence = np.where(given & ~truth, probabilities, 0).max(axis=1)
        losses = cell_losses(probabilities, truth)
        loss = losses.sum(axis=1)
        places = np.arange(self._seen, self._seen + len(documents))
        for kept, order, rows in (
            (self.worst, (places, -confidence, f1), np.flatnonzero(f1 < 1)),
            (self.surprising, (places, -loss), np.arange(len(documents))),
        ):
            first = rows[np.lexsort([key[rows] for key in order])][: kept.most]
            keys = [tuple(float(key[row]) for key in reversed(order)) for row in first]
            kept.add(
                keys,
                [
                    _example(documents[row], probabilities[row], given[row], truth[row], f1[row], losses[row])
                    for row in first
                ],
            )
        self._seen += len(documents)


def document_f1(given: Table, truth: Table) -> NDArray[np.float64]:
    """F1 of each document; 1 where it has no label and was given none.

    Samples-F1 counts such a document as 0, as scikit-learn does. But it is answered rightly, and the report must not
    show it among the worst.
    """
    size = given.sum(axis=1) + truth.sum(axis=1)
    return np.where(size > 0, 2 * (given & truth).sum(axis=1) / np.maximum(size, 1), 1.0)


def cell_losses(probabilities: Floats, truth: Table) -> NDArray[np.float64]:
    """How surprising each decision of the truth is: minus the logarithm of its probability."""
    of_truth = np.where(truth, probabilities, 1 - probabilities.astype(np.float64))
    return np.asarray(-np.log(np.clip(of_truth, _SURE, 1)), dtype=np.float64)


def _example(
    document: AnyDocument, probabilities: Floats, given: Table, truth: Table, f1: float, losses: Floats
) -> Example:
    right, wrong, missed = given & truth, given & ~truth, truth & ~given
    surprise = int(losses.argmax())
    shown = [_most_probable(labels, probabilities) for labels in (right, wrong, missed)]
    kept = ReportDocument(document.text[:LONGEST_TEXT], document.id, document.file, document.line)
    return Example(
        document=kept,
        cut=len(document.text) > LONGEST_TEXT,
        f1=float(f1),
        log_loss=float(losses.sum()),
        right=shown[0],
        wrong=shown[1],
        missed=shown[2],
        left_out=int((given | truth).sum()) - sum(map(len, shown)),
        surprise=(surprise, _rounded(probabilities[surprise]), bool(truth[surprise])),
    )


def _most_probable(labels: Table, probabilities: Floats) -> list[tuple[int, float]]:
    numbers = np.flatnonzero(labels)
    numbers = np.sort(numbers[np.argsort(-probabilities[numbers], kind="stable")[:MOST_LABELS]])
    return [(int(label), _rounded(probabilities[label])) for label in numbers]


def _rounded(probability: np.floating[Any]) -> float:
    return round(float(probability), 4)


def whereabouts(document: ReportDocument) -> str:
    """What to call a document: its id, or the file and line."""
    return document.id or place(document.file, document.line)
