"""Where words stand: from what a model reads back to the text as it was written, whatever is written there."""

import unicodedata
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin.bags import Bags, Shape, plain
from hitin.encoders.tfidf import Tfidf, TfidfSettings
from hitin.explain.alignment import aligned
from hitin.explain.reading import read_as_bag, read_as_terms
from hitin.explain.words import Reading, spans_of
from hitin.tokens import UNKNOWN, encode, places_of_tokens, subword_tokenizer, word_tokenizer

TEXTS = [
    "",
    "  \n ",
    "plain words, and a comma",
    "cafe\u0301 CAF\u00c9",
    "the \ufb01sh \u2460 \u33a1 \u00bd",
    "\U0001f469\u200d\U0001f680 \U0001f44d\U0001f3fd flies",
    "half \ud800 a character\udc00s",
    "\u0391\u03a3 \u0130stanbul \u1e9e",
    "\u1112\u1161\u11ab\uae00 \u0939\u093f\u0928\u094d\u0926\u0940",
    "\u0301begins with a mark",
    "a" * 200 + " end",
]
ANY_TEXT = st.text(st.characters(), max_size=30)  # halves of characters too


def words_of(text: str) -> list[str]:
    return [text[start:end] for start, end in spans_of(text)]


def test_words_are_runs_of_letters_and_signs_stand_alone() -> None:
    assert words_of("Don't stop_it: 3.5 kg!") == ["Don", "'", "t", "stop_it", ":", "3", ".", "5", "kg", "!"]


def test_marks_belong_to_what_they_are_written_over() -> None:
    assert words_of("cafe\u0301 au lait") == ["cafe\u0301", "au", "lait"]
    assert words_of("\u0939\u093f\u0928\u094d\u0926\u0940 x") == ["\u0939\u093f\u0928\u094d\u0926\u0940", "x"]
    astronaut, thumb = "\U0001f469\u200d\U0001f680", "\U0001f44d\U0001f3fd"
    assert words_of(f"{astronaut}{thumb}!") == [astronaut, thumb, "!"]


@given(ANY_TEXT)
def test_words_are_in_order_without_overlap_and_hold_all_but_blanks(text: str) -> None:
    spans = list(spans_of(text))
    assert all(left[1] <= right[0] for left, right in pairwise(spans))
    assert "".join(words_of(text)) == "".join(char for char in text if not char.isspace())


def test_a_token_is_shared_by_the_words_that_it_covers() -> None:
    reading = Reading("ab cd!", (((0, 2),), ((0, 5),), (), ((5, 6),)))
    assert [(word.text, word.weight) for word in reading.words(np.array([1.0, 4.0, 7.0, 8.0]))] == [
        ("ab", 3.0),
        ("cd", 2.0),
        ("!", 8.0),
    ]
    assert reading.is_of_text.tolist() == [True, True, False, True]


def test_what_is_made_of_several_places_is_shared_equally() -> None:
    reading = Reading("a b a", (((0, 1), (2, 3), (4, 5)), ((0, 1), (4, 5))))
    assert [word.weight for word in reading.words(np.array([3.0, 4.0]))] == [3.0, 1.0, 3.0]


def test_words_after_the_last_that_is_read_are_left_out() -> None:
    reading = Reading("one, two, three", (((0, 3),), ((5, 8),)))
    assert [word.text for word in reading.words(np.ones(2))] == ["one", "two"]


@given(ANY_TEXT)
def test_each_character_of_a_plain_text_comes_from_where_it_was_written(text: str) -> None:
    made = plain(text.encode("utf-8", "replace").decode())
    written = text.encode("utf-8", "replace").decode()
    alignment = aligned(written, made, plain, composes=True)
    spans = [alignment.origin(place, place + 1) for place in range(len(made))]
    assert spans == sorted(spans)
    for span in set(spans):
        if span != (0, len(written)):  # all became all
            whole = "".join(made[place] for place, each in enumerate(spans) if each == span)
            assert unicodedata.normalize("NFKC", written[slice(*span)]).lower().replace("σ", "ς") == whole.replace(
                "σ", "ς"
            )


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("learn", [word_tokenizer, subword_tokenizer])
def test_the_tokens_with_places_are_those_that_the_model_reads(learn: object, text: str) -> None:
    tokenizer = learn(["plain words the fish flies cafe", *TEXTS], size=60, min_count=1)  # type: ignore[operator]
    for most in (1, 3, 50):
        numbers, places = places_of_tokens(tokenizer, text, most)
        assert numbers == encode(tokenizer, [text], most)[0].tolist()
        assert len(places) == len(numbers)
        assert all(0 <= start <= end <= len(text) for start, end in places)


def test_tokens_stand_where_their_words_are() -> None:
    tokenizer = word_tokenizer(["fish and chips"], size=10, min_count=1)
    text = " \n  Fish, \U0001f41f and \ufb01sh CHIPS"
    _, places = places_of_tokens(tokenizer, text, 50)
    assert [text[start:end] for start, end in places] == ["Fish", "\U0001f41f", "and", "\ufb01sh", "CHIPS"]
    assert places_of_tokens(tokenizer, "...", 50) == ([UNKNOWN], [(0, 0)])


def bags(*texts: str) -> Bags:
    return Bags.learnt(texts, Shape(2, (3, 4)), size=1000, min_count=1, max_length=50)


@pytest.mark.parametrize("text", TEXTS)
def test_the_features_with_places_are_those_that_the_model_reads(text: str) -> None:
    known = bags(*TEXTS[2:6])
    for most in (1, 3, 50):
        numbers, reading = read_as_bag(known, text, most)
        assert numbers.tolist() == known.encode([text], most)[0].tolist()
        assert len(reading.tokens) == len(numbers)


@given(st.lists(st.sampled_from(["gut", "cold", "bone", "new"]), min_size=1, max_size=8))
def test_features_are_shared_by_the_words_that_they_are_made_of(words: list[str]) -> None:
    """Against a loop over features and words."""
    known = bags("gut cold", "cold bone gut", "gutter")
    text = " ".join(words)
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    numbers, reading = read_as_bag(known, text, 50)
    for number, spans in zip(numbers.tolist(), reading.tokens, strict=True):
        if number == UNKNOWN:
            assert spans == ()
            continue
        term = known.terms[number - 2]
        if term.startswith("#"):
            owners = [place for place, word in enumerate(words) if term[1:] in f"<{word}>"]
        else:
            parts = term.split()
            runs = [at for at in range(len(words)) if words[at : at + len(parts)] == parts]
            owners = [at + step for at in runs for step in range(len(parts))]
        assert sorted(spans) == sorted((int(starts[at]), int(starts[at]) + len(words[at])) for at in owners)


def test_a_feature_stands_where_it_was_written_before_letters_changed() -> None:
    _, reading = read_as_bag(bags("fish cafe\u0301"), "\ufb01sh CAFE\u0301 \u00bd", 50)
    assert {word.text for word in reading.words(np.ones(len(reading.tokens)))} >= {"\ufb01sh", "CAFE\u0301"}


def tfidf(*texts: str, **options: object) -> Tfidf:
    return Tfidf.learnt(TfidfSettings(min_df=1, **options), texts, "The test")[0]  # type: ignore[arg-type]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("options", [{}, {"strip_accents": False, "lower_case": False, "single_letters": False}])
def test_the_terms_with_places_are_the_columns_of_the_row(text: str, options: dict[str, object]) -> None:
    known = tfidf(*TEXTS[2:6], **options)
    columns, reading = read_as_terms(known, text)
    assert sorted(columns.tolist()) == sorted(known.rows([text]).indices.tolist())
    assert all(spans for spans in reading.tokens)


def test_terms_stand_where_they_were_written_with_their_accents() -> None:
    text = "Das CAF\u00c9 und das cafe\u0301"
    columns, reading = read_as_terms(tfidf("cafe und"), text)
    assert columns.tolist() == [0, 2, 1]  # cafe, und, cafe und
    assert [(word.text, word.weight) for word in reading.words(np.array([2.0, 1.0, 4.0]))] == [
        ("Das", 0.0),
        ("CAF\u00c9", 3.0),
        ("und", 3.0),
        ("das", 0.0),
        ("cafe\u0301", 1.0),
    ]
