"""Texts as bags of words, runs of words and pieces of words: which of them a text has, in no order."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Self

import numpy as np
from numpy.typing import NDArray

from hitin.tokens import PAD, SPECIAL, UNKNOWN, Ragged, counted, sound

_WORD = re.compile(r"\w+")
_LONGEST = 64  # characters of a word that are looked at
_WORDS_KEPT = 1 << 17  # whose pieces are remembered
_PIECE = "#"  # begins the name of a piece, so that it is never taken for a word


@dataclass(frozen=True)
class Shape:
    """What counts as a feature of a text."""

    runs: int
    """Runs of up to so many words."""
    pieces: tuple[int, int]
    """The shortest and the longest piece of a word, in characters, its ends marked; (0, 0): none."""

    def features(self, text: str, most: int) -> Iterator[str]:
        """The features of the first words of a text, some of them several times."""
        words = self.words(text, most)
        pieces = (_pieces_of(word, *self.pieces) for word in dict.fromkeys(words))
        return chain(words, self.runs_of(words), chain.from_iterable(pieces))

    def words(self, text: str, most: int) -> list[str]:
        """The first words of a text."""
        return [found.group()[:_LONGEST] for found in words_in(plain(beginning(text, most)), most)]

    def runs_of(self, words: list[str]) -> Iterator[str]:
        """Two words in a row, three, and so on."""
        for length in range(2, self.runs + 1):
            yield from map(" ".join, zip(*(words[start:] for start in range(length)), strict=False))


@dataclass(frozen=True)
class Bags:
    """The features that are known, each with its weight: the more, the fewer training documents have it."""

    shape: Shape
    terms: tuple[str, ...]
    """In the order of their numbers, which begin after the special tokens."""
    weights: tuple[float, ...]

    @classmethod
    def learnt(cls, texts: Sequence[str], shape: Shape, *, size: int, min_count: int, max_length: int) -> Self:
        """The features of most of these texts, the most frequent ones first."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(set(shape.features(text, max_length)))
        chosen = sorted((term for term, count in counts.items() if count >= min_count), key=lambda t: (-counts[t], t))
        terms = tuple(chosen[:size])
        weights = tuple(float(np.float32(np.log((1 + len(texts)) / (1 + counts[term])) + 1)) for term in terms)
        return cls(shape, terms, weights)

    def encode(self, texts: Iterable[str], max_length: int, advance: Callable[[int], None] | None = None) -> Ragged:
        """The numbers of each text's features; a text without any has the unknown one.

        `advance` is told now and then how many more texts are done.
        """
        return Ragged.of(counted((self._numbers(text, max_length) for text in texts), advance))

    def all_weights(self) -> NDArray[np.float32]:
        """Those of the special tokens too: padding has none."""
        special = np.ones(len(SPECIAL))
        special[PAD] = 0
        return np.concatenate([special, self.weights]).astype(np.float32)

    def get_vocab_size(self) -> int:
        return len(self.terms) + len(SPECIAL)

    def to_str(self) -> str:
        """JSON that `from_str` reads."""
        shape = {"runs": self.shape.runs, "pieces": list(self.shape.pieces)}
        return json.dumps({"bags": shape, "terms": self.terms, "weights": self.weights}, ensure_ascii=False)

    @classmethod
    def from_str(cls, text: str) -> Self:
        found = json.loads(text)
        shape = Shape(int(found["bags"]["runs"]), (int(found["bags"]["pieces"][0]), int(found["bags"]["pieces"][1])))
        terms, weights = tuple(map(str, found["terms"])), tuple(map(float, found["weights"]))
        if len(terms) != len(weights) or len(set(terms)) != len(terms):
            raise ValueError("its terms and their weights do not fit")
        return cls(shape, terms, weights)

    def _numbers(self, text: str, max_length: int) -> list[int]:
        known, words = self._places, self.shape.words(text, max_length)
        whole = [known[each] for each in chain(words, self.shape.runs_of(words)) if each in known]
        pieces = map(self._pieces.__getitem__, dict.fromkeys(words))
        return list(dict.fromkeys(chain(whole, *pieces))) or [UNKNOWN]

    def made_of(self, text: str, max_length: int) -> dict[int, list[int]]:
        """The numbers of a text's features, in their order, each with the words that it is made of, by their place.

        A word or run counts wherever it stands, a piece wherever a word that has it stands.
        """
        words = self.shape.words(text, max_length)
        made: dict[int, list[int]] = {number: [] for number in self._numbers(text, max_length)}
        for length in range(1, self.shape.runs + 1):
            for start in range(len(words) - length + 1):
                number = self._places.get(" ".join(words[start : start + length]))
                if number is not None:
                    made[number] += range(start, start + length)
        for place, word in enumerate(words):
            for number in dict.fromkeys(self._pieces[word]):
                made[number].append(place)
        return made

    @cached_property
    def _places(self) -> dict[str, int]:
        return {term: place for place, term in enumerate(self.terms, start=len(SPECIAL))}

    @cached_property
    def _pieces(self) -> "_Pieces":
        return _Pieces(self.shape, self._places)


class _Pieces(dict[str, tuple[int, ...]]):
    """The numbers of the pieces of words, as far as they are known; words are looked at once."""

    def __init__(self, shape: Shape, places: dict[str, int]) -> None:
        super().__init__()
        self.shape, self.places = shape, places

    def __missing__(self, word: str) -> tuple[int, ...]:
        if len(self) >= _WORDS_KEPT:
            self.clear()
        pieces = _pieces_of(word, *self.shape.pieces)
        self[word] = found = tuple(self.places[piece] for piece in pieces if piece in self.places)
        return found


def beginning(text: str, most: int) -> str:
    """What is looked at of a text for so many words."""
    return sound(text[: most * _LONGEST])


def plain(text: str) -> str:
    """In lower case, ligatures and the like spelt out."""
    return unicodedata.normalize("NFKC", text).lower()


def words_in(text: str, most: int) -> Iterator[re.Match[str]]:
    """The first words of a plain text."""
    return islice(_WORD.finditer(text), most)


@lru_cache(maxsize=_WORDS_KEPT)
def _pieces_of(word: str, shortest: int, longest: int) -> tuple[str, ...]:
    """`<gut>` of `gut` has, with 3 and 4, the pieces `<gu`, `gut`, `ut>`, `<gut` and `gut>`."""
    if not longest:
        return ()
    marked = f"<{word}>"
    return tuple(
        _PIECE + marked[start : start + length]
        for length in range(shortest, longest + 1)
        for start in range(len(marked) - length + 1)
    )
