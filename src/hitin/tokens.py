"""Texts to token numbers: tokenizers of words, of pieces of words, and of pretrained models; ragged arrays."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

from hitin.cells import whole_characters
from hitin.cleaning import Clean, cleaned, words_that_tell

T = TypeVar("T")

PAD = 0
UNKNOWN = 1
SPECIAL = ["[PAD]", "[UNK]"]
_CHARACTERS = 64
"""The longest word: a line of a million characters, which is no language, would keep a learner busy for hours. And what
is looked at of a text for each token that may stay."""
_WORDS = rf"\w{{1,{_CHARACTERS}}}|[^\w\s\p{{P}}]"  # words, and signs such as an emoji, but no punctuation
_AT_ONCE = 1024


@dataclass(frozen=True)
class Ragged:
    """Rows of different lengths, one after the other."""

    values: NDArray[np.int32]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Iterable[Sequence[int] | NDArray[np.int32]]) -> "Ragged":
        values, lengths = bytearray(), []  # one buffer that grows: rows by themselves would need the memory twice
        for row in rows:
            values += np.asarray(row, dtype=np.int32).tobytes()
            lengths.append(len(row))
        starts = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=starts[1:])
        return cls(np.frombuffer(values, dtype=np.int32), starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, row: int) -> NDArray[np.int32]:
        return self.values[self.starts[row] : self.starts[row + 1]]

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        """Of all rows, which are many: every batch asks for them."""
        return np.diff(self.starts)

    @cached_property
    def longest(self) -> int:
        return int(self.lengths.max(initial=0))

    def padded_lengths(self, multiple: int) -> NDArray[np.int64]:
        """The lengths up to a `multiple`, or up to the longest: what each row takes where it is the longest of some."""
        return np.minimum(-(-self.lengths // multiple) * multiple, self.longest)

    def padded(self, rows: NDArray[np.int64], padding: int = PAD, multiple: int = 1) -> NDArray[np.int64]:
        """(rows, longest of them): the values, and the padding after them.

        The length is a `multiple`, or that of the longest row that there is: more may be too much for what reads it.
        """
        lengths = self.lengths[rows]
        longest = max(int(lengths.max(initial=0)), 1)
        if multiple > 1:
            longest = max(longest, min(-(-longest // multiple) * multiple, self.longest))
        inside = np.arange(longest) < lengths[:, None]
        table = np.full(inside.shape, padding, dtype=np.int64)
        table[inside] = self._values_of(rows)
        return table

    def indicators(self, rows: NDArray[np.int64], width: int) -> NDArray[np.float32]:
        """(rows, width): 1 where a row names the column."""
        table = np.zeros((len(rows), width), dtype=np.float32)
        owners, values = self.pairs(rows)
        table[owners, values] = 1
        return table

    def pairs(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """(2, n): the place of a row among these, and each of its values."""
        owners = np.repeat(np.arange(len(rows)), self.lengths[rows])
        return np.stack([owners, self._values_of(rows)])

    def places_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the values of some rows stand, one row after the other."""
        lengths = self.lengths[rows]
        places: NDArray[np.int64] = np.arange(lengths.sum())
        return places + np.repeat(self.starts[rows] - np.cumsum(lengths) + lengths, lengths)

    def rows_by_value(self, count: int) -> "Ragged":
        """For each value below `count` the rows that have it."""
        owners = np.repeat(np.arange(len(self), dtype=np.int32), self.lengths)
        starts = np.zeros(count + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.values, minlength=count), out=starts[1:])
        return Ragged(owners[np.argsort(self.values, kind="stable")], starts)

    def _values_of(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        """The values of some rows, one after the other."""
        values: NDArray[np.int32] = self.values[self.places_of(rows)]
        return values


def word_tokenizer(texts: Iterable[str], *, size: int, min_count: int, clean: Clean = "") -> Tokenizer:
    """A tokenizer of whole words in lower case, its vocabulary from these texts. `clean` is how they are cleaned."""
    tokenizer = _words_of(models.WordLevel({}, unk_token=SPECIAL[UNKNOWN]))
    if clean:
        cleaning: Any = tokenizer
        cleaning.normalizer, cleaning.pre_tokenizer = cleaned(), words_that_tell()
    trainer = trainers.WordLevelTrainer(
        vocab_size=size + len(SPECIAL), min_frequency=min_count, special_tokens=SPECIAL, show_progress=False
    )
    tokenizer.train_from_iterator(map(sound, texts), trainer)
    return tokenizer


def subword_tokenizer(texts: Iterable[str], *, size: int, min_count: int) -> Tokenizer:
    """A tokenizer of pieces of words (byte pair encoding), learnt from these texts."""
    tokenizer = _words_of(models.BPE(unk_token=SPECIAL[UNKNOWN]))
    # A sign before each word tells its beginning. The library's own mark for the pieces that follow is no use: with
    # it, two trainings on the same texts give two vocabularies.
    beginning = pre_tokenizers.Metaspace(prepend_scheme="always", split=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([tokenizer.pre_tokenizer, beginning])
    trainer = trainers.BpeTrainer(
        vocab_size=size + len(SPECIAL), min_frequency=min_count, special_tokens=SPECIAL, show_progress=False
    )
    tokenizer.train_from_iterator(map(sound, texts), trainer)
    return tokenizer


def _words_of(model: Any) -> Tokenizer:
    tokenizer: Any = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(_WORDS), behavior="removed", invert=True)
    words: Tokenizer = tokenizer
    return words


def encode(
    tokenizer: Tokenizer, texts: Iterable[str], max_length: int, advance: Callable[[int], None] | None = None
) -> Ragged:
    """The token numbers of each text, cut at the end; a text without any is one unknown token.

    `advance` is told now and then how many more texts are done.
    """
    return Ragged.of(counted(_encoded(tokenizer, texts, max_length), advance))


def cut_at(tokenizer: Tokenizer, max_length: int) -> None:
    """Let it give no more tokens than these, and no padding. A text that says [PAD] or [SEP] means these letters."""
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    tokenizer.encode_special_tokens = True


def places_of_tokens(tokenizer: Tokenizer, text: str, max_length: int) -> tuple[list[int], list[tuple[int, int]]]:
    """The token numbers of a text, and of each where it stands there; nowhere, if nothing there stands for it."""
    cut_at(tokenizer, max_length)
    found, cut = tokenizer.encode(_shortened(text, max_length)), len(text) - len(text.lstrip())
    places = [(start + cut, end + cut) for start, end in found.offsets]
    return (found.ids, places) if found.ids else ([UNKNOWN], [(0, 0)])


def _encoded(tokenizer: Tokenizer, texts: Iterable[str], max_length: int) -> Iterator[list[int]]:
    cut_at(tokenizer, max_length)
    waiting = iter(texts)
    while chunk := list(islice(waiting, _AT_ONCE)):
        short = [_shortened(text, max_length) for text in chunk]
        for encoding in tokenizer.encode_batch_fast(short):
            yield encoding.ids or [UNKNOWN]


def counted(rows: Iterable[T], advance: Callable[[int], None] | None) -> Iterator[T]:
    """The rows, one by one; `advance` is told of some of them at a time."""
    number = 0
    for number, row in enumerate(rows, start=1):
        yield row
        if advance and number % _AT_ONCE == 0:
            advance(_AT_ONCE)
    if advance:
        advance(number % _AT_ONCE)


def _shortened(text: str, max_length: int) -> str:
    """What is looked at of a text for so many tokens."""
    return sound(text.lstrip()[: max_length * _CHARACTERS])


def sound(text: str) -> str:
    """Without halves of characters, which the library refuses; as texts from files are."""
    return whole_characters(text)
