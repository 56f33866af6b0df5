"""Pretrained word vectors, and how much of a vocabulary they cover."""

import warnings
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hitin.encoders.vector_files import Kept, is_archive, read_archive, read_stream
from hitin.errors import InputError, InputWarning, listed

Matrix = NDArray[np.float32]


@dataclass(frozen=True, eq=False, repr=False)
class WordVectors:
    """Words, each once, and a vector for each."""

    words: tuple[str, ...]
    matrix: Matrix
    """A row for each word."""

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    def __repr__(self) -> str:
        return f"WordVectors({len(self):,} words, {self.width} numbers each)"

    @property
    def width(self) -> int:
        """How many numbers a vector has."""
        return int(self.matrix.shape[1])

    def matrix_for(self, words: Sequence[str]) -> tuple[Matrix, NDArray[np.bool_]]:
        """A row for each of these words, zeros where there is no vector; and which words have one."""
        rows = np.array([self._rows.get(word, -1) for word in words], dtype=np.int64)
        found = rows >= 0
        matrix = np.zeros((len(rows), self.width), dtype=np.float32)
        matrix[found] = self.matrix[rows[found]]
        return matrix, found

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {word: row for row, word in enumerate(self.words)}


@dataclass(frozen=True)
class Coverage:
    """How many words of a vocabulary have a vector, and how many of the running words."""

    words: int
    found: int
    tokens: int
    tokens_found: int

    def __str__(self) -> str:
        share, running = self.found / max(self.words, 1), self.tokens_found / max(self.tokens, 1)
        return (
            f"vectors for {self.found:,} of {self.words:,} words ({100 * share:.1f} %), "
            f"{100 * running:.1f} % of running words"
        )


def coverage(counts: Mapping[str, int], vectors: Container[str]) -> Coverage:
    """How much of a vocabulary has vectors; `counts` says how often each word occurs."""
    found = [count for word, count in counts.items() if word in vectors]
    return Coverage(len(counts), len(found), sum(counts.values()), sum(found))


def read_vectors(path: str | Path, wanted: Collection[str] | None = None) -> WordVectors:
    """Read GloVe text, word2vec text or binary, or an archive of `q`, `scale` and `words` (`.npz`).

    The format is recognised by what is in the file; all but archives may be compressed. Only words that are
    `wanted` are kept, and only their lines are looked at closely; a file that has none of them is refused. Of a word
    given twice the first vector counts.
    """
    kept = Kept(wanted)
    width = read_archive(path, kept) if is_archive(path) else read_stream(path, kept)
    if kept.wanted and not kept.rows:
        raise InputError(
            f"no word of the vocabulary has a vector in the file, whose first words are {listed(kept.first)}",
            kind="bad-vectors",
            file=str(path),
            remedy="Whole words in small letters are looked for: give vectors of such, in the language of the texts.",
        )
    for problem in kept.problems:
        warnings.warn(f"{path}: {problem}", InputWarning, stacklevel=2)
    return WordVectors(tuple(kept.rows), np.frombuffer(kept.numbers, dtype=np.float32).reshape(len(kept.rows), width))
