"""The files of one split, read once in bounded memory: counts, lengths and a fingerprint of each text."""

from array import array
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from hitin.doctor.mojibake import trouble_in
from hitin.doctor.problems import Problems
from hitin.documents import Document, print_of
from hitin.errors import place
from hitin.labels import LabelReader, LabelSet

_DISTINCT_UNKNOWN = 10_000  # different unknown labels that are told apart


class Split:
    """Everything the doctor keeps of a split: a few numbers a document and a few a label."""

    def __init__(self, name: str, labels: LabelReader, problems: Problems) -> None:
        self.name = name
        self.unknown: Counter[str] = Counter()
        self.unknown_places: dict[str, str] = {}
        self.unknown_beyond = 0
        """Unknown labels after so many different ones that they are only counted."""
        self.is_whole = False
        """Whether all its files were read to their end."""
        self.documents = 0
        self.learnable = 0
        self.several_paths = 0
        self._labels = labels
        self._problems = problems
        self._counts = [0] * len(labels.taxonomy)
        self._words = array("I")
        self._prints = array("Q")
        self._lines = array("Q")
        self._files: list[tuple[int, str]] = []

    def read(self, documents: Iterable[Document], file: str) -> None:
        """Take in the documents of one file."""
        self.is_whole = False
        self._files.append((len(self._lines), file))
        for document in documents:
            labels = self._labels.read(document.labels)
            self.documents += 1
            self.learnable += self._note_text(document) and bool(labels.ids)
            self._note_labels(document, labels)
        self.is_whole = True

    def place(self, at: int) -> str:
        """The place of a text by its position among those that are not empty."""
        file = self._files[bisect_right(self._files, at, key=lambda start_and_file: start_and_file[0]) - 1][1]
        return place(file, self._lines[at])

    def _note_text(self, document: Document) -> bool:
        words = document.text.split()
        self._words.append(len(words))
        if not words:
            self._add("empty-text", document)
            return False
        trouble = trouble_in(document.text)
        if trouble:
            self._add("encoding", document, ascii(trouble))
        self._prints.append(print_of(words))
        self._lines.append(document.line or 0)
        return True

    def _note_labels(self, document: Document, labels: LabelSet) -> None:
        for label in labels.ids:
            self._counts[label] += 1
        self.several_paths += len(labels.deepest) > 1
        if not labels.is_complete:
            self._add("missing-ancestors", document, self._missing(labels))
        for name in labels.unknown:
            if name in self.unknown or len(self.unknown) < _DISTINCT_UNKNOWN:
                self.unknown[name] += 1
                self.unknown_places.setdefault(name, document.place)
            else:
                self.unknown_beyond += 1
        if not labels.ids and not labels.unknown:
            self._add("unlabelled", document)

    def _add(self, kind: str, document: Document, detail: str = "") -> None:
        self._problems.add(kind, document.place if self._problems.wants_more(kind) else "", detail)

    def _missing(self, labels: LabelSet) -> str:
        names = [self._labels.taxonomy.labels[label] for label in labels.ids if label not in labels.given]
        return ", ".join(names[:3])

    @property
    def label_counts(self) -> NDArray[np.int64]:
        """The number of documents of each label."""
        return np.array(self._counts, dtype=np.int64)

    @property
    def mean_labels(self) -> float:
        return sum(self._counts) / self.documents if self.documents else 0.0

    @property
    def words(self) -> NDArray[np.uint32]:
        """The number of words of each document."""
        return np.array(self._words, dtype=np.uint32)

    @property
    def prints(self) -> NDArray[np.uint64]:
        """The fingerprint of each text that is not empty."""
        return np.array(self._prints, dtype=np.uint64)
