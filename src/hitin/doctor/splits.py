"""One file of documents, read once in bounded memory: counts, lengths and a fingerprint of each text."""

import re
from array import array
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from hitin.doctor.problems import Problems
from hitin.documents import Document
from hitin.labels import LabelReader, LabelSet

_DISTINCT_UNKNOWN = 10_000
# U+FFFD; UTF-8 read as Latin-1 or Windows-1252 ("Ã©", "â€™"); control characters of Latin-1
_MOJIBAKE = re.compile("\ufffd|[\u00c2\u00c3][\u0080-\u00bf]|\u00e2\u20ac|[\u0080-\u0084\u0086-\u009f]")


class Split:
    """Everything the doctor keeps of a file of documents: a few numbers a document and a few a label."""

    def __init__(self, name: str, labels: LabelReader, problems: Problems) -> None:
        self.name = name
        self.unknown: Counter[str] = Counter()
        self.unknown_places: dict[str, str] = {}
        self.documents = 0
        self.labelled = 0
        self.several_paths = 0
        self._label_total = 0
        self._labels = labels
        self._problems = problems
        self._counts = [0] * len(labels.taxonomy)
        self._words = array("I")
        self._prints = array("Q")
        self._lines = array("Q")

    def read(self, documents: Iterable[Document]) -> None:
        for document in documents:
            self.documents += 1
            self._note_text(document)
            self._note_labels(document, self._labels.read(document.labels))
        if not self.documents:
            self._problems.add("empty-split", self.name)

    def _note_text(self, document: Document) -> None:
        text = document.text
        words = text.split()
        self._words.append(len(words))
        if not words:
            self._add("empty-text", document)
            return
        if not text.isascii() and (found := _MOJIBAKE.search(text)):
            around = text[max(found.start() - 15, 0) : found.end() + 15]
            self._add("encoding", document, ascii(around))
        self._prints.append(_fingerprint(" ".join(words)))
        self._lines.append(document.line or 0)

    def _note_labels(self, document: Document, labels: LabelSet) -> None:
        for label in labels.ids:
            self._counts[label] += 1
        self._label_total += len(labels.ids)
        self.labelled += bool(labels.ids)
        self.several_paths += len(labels.deepest) > 1
        if not labels.is_complete:
            self._add("missing-ancestors", document, self._missing(labels))
        for name in labels.unknown:
            if len(self.unknown) < _DISTINCT_UNKNOWN or name in self.unknown:
                self.unknown[name] += 1
                self.unknown_places.setdefault(name, document.place)
        if not labels.ids and not labels.unknown:
            self._add("unlabelled", document)

    def _add(self, kind: str, document: Document, detail: str = "") -> None:
        self._problems.add(kind, document.place, detail)

    def _missing(self, labels: LabelSet) -> str:
        names = [self._labels.taxonomy.labels[label] for label in labels.ids if label not in labels.given]
        return ", ".join(names[:3])

    @property
    def label_counts(self) -> NDArray[np.int64]:
        """The number of documents of each label."""
        return np.array(self._counts, dtype=np.int64)

    @property
    def mean_labels(self) -> float:
        return self._label_total / self.documents if self.documents else 0.0

    @property
    def words(self) -> NDArray[np.uint32]:
        return np.array(self._words, dtype=np.uint32)

    @property
    def prints(self) -> NDArray[np.uint64]:
        """The fingerprint of each text that is not empty."""
        return np.array(self._prints, dtype=np.uint64)

    @property
    def lines(self) -> NDArray[np.uint64]:
        """The line of each text that is not empty."""
        return np.array(self._lines, dtype=np.uint64)


def _fingerprint(text: str) -> int:
    """64 bits of a text: two different texts among a million agree with a probability below 1e-7."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")
