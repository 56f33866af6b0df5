"""The words of a text, and what of them a model reads: the way from the shares of tokens to those of words."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Span = tuple[int, int]
"""From a character up to, not with, another."""
_JOINERS = "\u200c\u200d"  # stand inside a word; the last between the signs of one emoji
_TONES = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"  # of the skin, after the sign of a person


class Word(NamedTuple):
    """A word of a text, or a sign that the model reads, and what it says for a label; below 0: against it."""

    start: int
    """Its first character in the text, counted as Python does."""
    end: int
    text: str
    weight: float


@dataclass(frozen=True)
class Reading:
    """What a model reads of a text."""

    text: str
    tokens: tuple[tuple[Span, ...], ...]
    """Of each token, or feature, the places in the text that it is made of, which have equal shares in it. None: it
    stands for nothing in the text, as the first and last token of a transformer do."""

    @cached_property
    def is_of_text(self) -> NDArray[np.bool_]:
        """(tokens,): which of them stand for something in the text."""
        owners = np.zeros(len(self.tokens), dtype=np.bool_)
        owners[self._shares[0]] = True
        return owners

    def words(self, weights: NDArray[Any]) -> list[Word]:
        """From the weights of the tokens to those of the words. The weight of a token that has none is lost."""
        tokens, places, shares = self._shares
        found = np.zeros(len(self.spans))
        np.add.at(found, places, np.asarray(weights, dtype=np.float64)[tokens] * shares)
        read = set(places.tolist())
        told = [
            number for number, (start, _) in enumerate(self.spans) if number in read or _is_letter(self.text[start])
        ]
        return [Word(*self.spans[n], self.text[slice(*self.spans[n])], float(found[n])) for n in told]

    @cached_property
    def spans(self) -> list[Span]:
        """The words and signs, up to the last that is read."""
        end = max((end for spans in self.tokens for _, end in spans), default=0)
        return [span for span in spans_of(self.text) if span[0] < end]

    @cached_property
    def _shares(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Tokens, words and the share of the token that is the word's."""
        starts, ends = (np.array([span[side] for span in self.spans], dtype=np.int64) for side in (0, 1))
        rows = []
        for token, spans in enumerate(self.tokens):
            parts = [part for span in spans for part in _overlaps(span, starts, ends)]
            whole = sum(share for _, share in parts)
            rows += [(token, word, share / whole) for word, share in parts]
        tokens, words, shares = zip(*rows, strict=True) if rows else ((), (), ())
        return np.array(tokens, dtype=np.int64), np.array(words, dtype=np.int64), np.array(shares, dtype=np.float64)


def spans_of(text: str) -> Iterator[Span]:
    """Runs of letters and digits, and signs, each by itself; with what is written over them or belongs to them."""
    start = end = 0
    for place, char in enumerate(text):
        if char.isspace():
            continue
        if place != end or not _goes_on(text[start:end], char):
            if end > start:
                yield start, end
            start = place
        end = place + 1
    if end > start:
        yield start, end


def _goes_on(before: str, char: str) -> bool:
    """Whether a character belongs to the word or sign that ends before it."""
    if not before:
        return False
    if unicodedata.category(char)[0] == "M" or char in _JOINERS or char in _TONES:
        return True
    if _is_letter(char):
        return _is_letter(before[0])
    return not _is_letter(before[0]) and before[-1] == _JOINERS[-1]


def _is_letter(char: str) -> bool:
    return char.isalnum() or char == "_"


def _overlaps(span: Span, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Sequence[tuple[int, float]]:
    """The words that a span touches, each with its share: the part of the span's letters that it has."""
    first = int(np.searchsorted(ends, span[0], side="right"))
    last = int(np.searchsorted(starts, span[1], side="left"))
    common = [(word, min(span[1], ends[word]) - max(span[0], starts[word])) for word in range(first, last)]
    whole = sum(length for _, length in common)
    return [(word, length / whole) for word, length in common]
