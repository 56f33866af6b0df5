"""Texts to token numbers: the same everywhere, whatever people write; rows of different lengths as plain lists."""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from hitin.cells import text_of
from hitin.tokens import PAD, UNKNOWN, Ragged, encode, places_of_tokens, sound, subword_tokenizer, word_tokenizer

Learn = Callable[..., Tokenizer]
LEARNERS: list[Learn] = [word_tokenizer, subword_tokenizer]
ROWS = st.lists(st.lists(st.integers(0, 9), max_size=6), max_size=8)


@given(ROWS)
def test_ragged_rows_are_the_lists_they_were_made_of(rows: list[list[int]]) -> None:
    ragged = Ragged.of(rows)
    assert [ragged[row].tolist() for row in range(len(ragged))] == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert ragged.values.tolist() == [value for row in rows for value in row]


@given(ROWS, st.data())
def test_ragged_rows_are_chosen_padded_and_marked_as_lists_would_be(rows: list[list[int]], data: st.DataObject) -> None:
    ragged = Ragged.of(rows)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)) if rows else []
    places = np.array(chosen, dtype=np.int64)
    lists = [rows[row] for row in chosen]
    longest = max([1, *map(len, lists)])
    assert ragged.padded(places, 77).tolist() == [row + [77] * (longest - len(row)) for row in lists]
    marked = [[1.0 if value in row else 0.0 for value in range(10)] for row in lists]
    assert ragged.indicators(places, 10).tolist() == marked


def tokens(tokenizer: Tokenizer, text: str, max_length: int = 99) -> list[str | None]:
    return [tokenizer.id_to_token(number) for number in encode(tokenizer, [text], max_length)[0].tolist()]


def test_words_are_lower_case_without_punctuation_and_signs_stand_alone() -> None:
    tokenizer = word_tokenizer(
        ["Don't panic: e-mail the naïve café 😀😀 about C++ for 5 € ＡＢＣ"], size=99, min_count=1
    )
    assert tokens(tokenizer, "PANIC! 😀😀 (abc), «Café»") == ["panic", "😀", "😀", "abc", "café"]
    assert tokens(tokenizer, "c++ for 5€") == ["c", "+", "+", "for", "5", "€"]


def test_pieces_of_words_make_up_words_that_were_never_seen() -> None:
    texts = ["low lower lowest", "new newer newest 😀"] * 3
    tokenizer = subword_tokenizer(texts, size=40, min_count=2)
    assert tokens(tokenizer, "newest") == ["▁newest"]
    pieces = [piece or "" for piece in tokens(tokenizer, "slow 😀")]
    assert "[UNK]" not in pieces
    assert "".join(pieces) == "▁slow▁😀"


@pytest.mark.parametrize("learn", LEARNERS)
@pytest.mark.parametrize("text", ["", " \n\t", "?! ..."])
def test_a_text_without_words_is_one_unknown_token(text: str, learn: Learn) -> None:
    tokenizer = learn(["some words"], size=99, min_count=1)
    assert encode(tokenizer, [text, "some"], 9)[0].tolist() == [UNKNOWN]


@pytest.mark.parametrize("learn", LEARNERS)
def test_half_characters_are_the_replacement_character_as_in_texts_from_files(learn: Learn) -> None:
    tokenizer, other = (learn([f"some {half} words"] * 2, size=99, min_count=1) for half in ("\ud83d", "\ufffd"))
    assert tokenizer.get_vocab() == other.get_vocab()
    half, whole, none = (encode(tokenizer, [f"some {each} words"], 9)[0].tolist() for each in ("\ude00", "\ufffd", "?"))
    assert half == whole != none


@given(st.text("aé?😀\ufffd\ud83d\ude00\udfff", max_size=9))
def test_sound_texts_are_what_texts_from_files_are_and_as_long(text: str) -> None:
    assert sound(text) == text_of(text)
    assert len(sound(text)) == len(text)
    assert sound(text).encode().decode() == sound(text)


@pytest.mark.parametrize("learn", LEARNERS)
def test_texts_are_cut_at_the_end(learn: Learn) -> None:
    tokenizer = learn(["a b c d e"] * 2, size=99, min_count=1)
    whole = encode(tokenizer, ["a b c d e"], 99)[0].tolist()
    for length in (1, 3, 5, 9):
        assert encode(tokenizer, ["a b c d e"], length)[0].tolist() == whole[:length]
    assert encode(tokenizer, [" " * 10_000 + "a b"], 2)[0].tolist() == whole[:2]


@pytest.mark.parametrize("learn", LEARNERS)
def test_a_vocabulary_has_a_size_and_a_least_count(learn: Learn) -> None:
    texts = ["aa aa aa bb bb cc"]
    assert learn(texts, size=2, min_count=1).get_vocab_size() <= 2 + 2 + 4  # every letter, and the sign before a word
    assert tokens(word_tokenizer(texts, size=1, min_count=1), "aa bb cc") == ["aa", "[UNK]", "[UNK]"]
    assert tokens(word_tokenizer(texts, size=9, min_count=2), "aa bb cc") == ["aa", "bb", "[UNK]"]
    vocabulary = learn(texts, size=99, min_count=1)
    assert (vocabulary.token_to_id("[PAD]"), vocabulary.token_to_id("[UNK]")) == (PAD, UNKNOWN)


@pytest.mark.parametrize("learn", LEARNERS)
def test_the_names_of_special_tokens_are_letters_like_any_others(learn: Learn) -> None:
    vocabulary = learn(["[pad] [unk] pad unk [ ]"] * 3, size=99, min_count=1)
    assert encode(vocabulary, ["[PAD]"], 9)[0].tolist() == encode(vocabulary, ["[ pad ]"], 9)[0].tolist()
    assert PAD not in encode(vocabulary, ["a [PAD] b", "[PAD]"], 9).values
    assert PAD not in places_of_tokens(vocabulary, "[PAD]", 9)[0]


def test_lengths_of_all_rows_are_counted_once_for_all_batches() -> None:
    ragged = Ragged.of([[1, 2, 3], [4], [5, 6]])
    ragged.padded(np.array([0, 2]), multiple=2)
    assert ragged.lengths is ragged.lengths
    assert (ragged.lengths.tolist(), ragged.longest) == ([3, 1, 2], 3)
    for again in (pickle.loads(pickle.dumps(ragged)), replace(ragged)):
        assert again.lengths.tolist() == [3, 1, 2]
    assert replace(ragged, starts=ragged.starts[:2]).lengths.tolist() == [3]
    assert Ragged.of([]).longest == 0


@given(st.lists(st.integers(1, 40), min_size=1, max_size=9), st.integers(1, 9))
def test_padded_lengths_are_those_of_rows_that_are_padded_alone(lengths: list[int], multiple: int) -> None:
    ragged = Ragged.of([[7] * length for length in lengths])
    alone = [ragged.padded(np.array([row]), multiple=multiple).shape[1] for row in range(len(lengths))]
    assert ragged.padded_lengths(multiple).tolist() == alone


@example(["[PAD]"], 1)
@given(st.lists(st.text(max_size=30), max_size=6), st.integers(1, 5))
def test_any_text_has_from_one_token_to_the_most(texts: list[str], most: int) -> None:
    for tokenizer in TOKENIZERS:
        encoded = encode(tokenizer, texts, most)
        assert len(encoded) == len(texts)
        assert all(1 <= length <= most for length in encoded.lengths)
        assert all(0 < value < tokenizer.get_vocab_size() for value in encoded.values)


TOKENIZERS = [learn(["the quick brown fox", "jumps over the lazy dog"], size=40, min_count=1) for learn in LEARNERS]


@pytest.mark.parametrize("text", ["quick brown fox " * 70_000, "x" * 1_000_000, "😀" * 500_000, "\n" * 1_000_000 + "a"])
@pytest.mark.parametrize("learn", LEARNERS)
def test_a_text_of_a_million_characters_takes_no_time(text: str, learn: Learn) -> None:
    start = time.process_time()
    tokenizer = learn([text, text[:100]], size=1000, min_count=1)
    assert len(encode(tokenizer, [text], 256)[0]) in (1, 256)
    assert time.process_time() - start < 2


_SCRIPT = """
import random, sys
from hashlib import sha256
from hitin.tokens import encode, subword_tokenizer, word_tokenizer
chance = random.Random(0)
texts = [" ".join("".join(chance.choices("abcdé中", k=chance.randint(1, 6))) for _ in range(40)) for _ in range(300)]
for learn in (word_tokenizer, subword_tokenizer):
    tokenizer = learn(texts, size=400, min_count=2)
    for made in (tokenizer.to_str().encode(), encode(tokenizer, texts, 64).values.tobytes()):
        print(sha256(made).hexdigest())
"""


def test_tokenizers_are_the_same_in_every_process() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", _SCRIPT],
            env=os.environ | {"PYTHONHASHSEED": str(seed), "RAYON_NUM_THREADS": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed, threads in ((1, "1"), (2, "4"))
    ]
    assert len(said[0].split()) == 4
    assert said[0] == said[1]
