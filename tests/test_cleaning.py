"""The cleaning of the paper: as a plain loop does it, where it stands in the text, and in a model from end to end."""

import json
import string
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from hitin import HierarchicalTextClassifier, InputError, Taxonomy
from hitin.cleaning import STOP_WORDS
from hitin.encoders.textrcnn import TextRCNNSettings
from hitin.encoders.tokenizer_check import check_claims, check_own
from hitin.explain.reading import read_by_network
from hitin.neural import NeuralModel
from hitin.settings import Run as Settings
from hitin.tokens import encode, places_of_tokens, word_tokenizer
from tests.conftest import Run

KEPT = set(string.ascii_letters + string.digits + "(),!?'")
CONTRACTIONS = ("'s", "'ve", "n't", "'re", "'d", "'ll")
TEXTS = st.lists(
    st.sampled_from(
        [*CONTRACTIONS, *"(),!?'.`\"", "don't", "IT'S", "Theory", "the", "o'clock", " ", "\n", "7", "é", "😀"]
    )
    | st.text(max_size=8)
    | st.sampled_from(sorted(STOP_WORDS))
).map("".join)


def slowly_cleaned(text: str) -> list[str]:
    """The words of a text, one step after the other."""
    text = "".join(char if char in KEPT else " " for char in text)
    for contraction in CONTRACTIONS:
        text = text.replace(contraction, " " + contraction)
    for sign in "(),!?":
        text = text.replace(sign, f" {sign} ")
    words = text.lower().split()
    return [word[:64] for word in words if len(word) > 1 and word not in STOP_WORDS]


CLEANER = word_tokenizer([], size=1, min_count=1, clean="hiagm")


def cleaned(text: str) -> list[str]:
    made = CLEANER.normalizer.normalize_str(text)
    return [word for word, _ in CLEANER.pre_tokenizer.pre_tokenize_str(made)]


def test_words_of_an_abstract_are_those_that_the_paper_reads() -> None:
    text = "We don't know (yet), whether it's the theory's fault; DON'T ask! 42 naïve-looking e-mails, we'll see?"
    assert cleaned(text) == [
        *("n't", "know", "yet", "whether", "'s", "theory", "'s", "fault", "ask", "42", "na", "looking"),
        *("mails", "'ll", "see"),
    ]


@given(TEXTS)
@example("n'tn't 's''s'd'll")
@example("x" * 65 + " " + "n't" * 40)
@example("the" * 30)
@example("İstanbul K ſ ﬁ ² \x00 \u2019s")
def test_any_text_is_cleaned_as_the_plain_loop_does(text: str) -> None:
    assert cleaned(text) == slowly_cleaned(text)


@given(TEXTS)
@example("  (Don't) 😀 é's naïve theory's")
def test_each_word_stands_where_it_was_written(text: str) -> None:
    words = slowly_cleaned(text)
    if not words or "\ud800" <= max(text) <= "\udfff":
        return
    _, places = places_of_tokens(CLEANER, text, 99)
    assert [text[slice(*place)].lower() for place in places] == words[:99]


def test_there_are_179_stop_words() -> None:
    assert len(STOP_WORDS) == 179
    assert {"i", "the", "should've", "wouldn't", "ma"} <= STOP_WORDS
    assert STOP_WORDS.isdisjoint({"would", "could", "also", "'s", "n't", "one"})


def test_a_vocabulary_has_no_stop_words_and_what_has_no_words_is_unknown() -> None:
    tokenizer = word_tokenizer(["The theory of the theory, and a proof!"], size=9, min_count=1, clean="hiagm")
    assert set(tokenizer.get_vocab()) == {"[PAD]", "[UNK]", "theory", "proof"}
    assert encode(tokenizer, ["the of a !"], 9)[0].tolist() == [1]
    assert encode(tokenizer, ["the proof " * 3], 2)[0].tolist() == [tokenizer.token_to_id("proof")] * 2


@pytest.mark.parametrize("text", ["quick brown fox " * 70_000, "x" * 1_000_000, "n't" * 300_000, "'" * 1_000_000])
def test_a_text_of_a_million_characters_takes_little_time(text: str) -> None:
    start = time.process_time()
    tokenizer = word_tokenizer([text], size=99, min_count=1, clean="hiagm")
    encode(tokenizer, [text], 256)
    assert time.process_time() - start < 6


def test_its_tokenizer_is_admitted_and_one_that_was_changed_is_not() -> None:
    told = CLEANER.to_str()
    check_claims(told)
    check_own(Tokenizer.from_str(told))
    for old, new in (("wouldn't", "wouldn"), ("{2,64}", "{1,64}"), ("n(?='t)", "n(?='tt)")):
        assert old in told
        with pytest.raises(ValueError, match="cut texts"):
            check_own(Tokenizer.from_str(told.replace(old, new)))
    mixed = json.loads(told)
    mixed["normalizer"] = json.loads(word_tokenizer([], size=1, min_count=1).to_str())["normalizer"]
    with pytest.raises(ValueError, match="cut texts"):
        check_own(Tokenizer.from_str(json.dumps(mixed)))


def test_cleaning_is_of_words_and_of_one_kind(run: Run, tmp_path: Path) -> None:
    assert TextRCNNSettings().clean == ""
    cleaning = Settings.of(encoder="textrcnn", clean="hiagm")
    (tmp_path / "run.toml").write_text(cleaning.to_toml(), encoding="utf-8")
    assert Settings.of(preset=tmp_path / "run.toml") == cleaning
    with pytest.raises(InputError, match="leaves words out"):
        TextRCNNSettings(clean="hiagm", tokens="subword")
    files = ("examples/tickets/taxonomy.tsv", "examples/tickets/train.jsonl")
    refused = run("train", *files, "--encoder", "textrcnn", "--set", "clean=much", "--out", tmp_path / "model")
    assert refused.exit_code == 2
    assert "hiagm" in refused.stderr


def test_a_model_that_cleans_is_saved_and_explained_with_its_cleaning(tmp_path: Path) -> None:
    texts = ["the printer's jammed, isn't it?", "we've lost the parcel (again)"] * 4
    small: dict[str, Any] = {"embedding": 8, "hidden": 4, "filters": 4, "min_count": 1, "epochs": 1, "device": "cpu"}
    taxonomy = Taxonomy.from_paths([("device",), ("post",)])
    classifier = HierarchicalTextClassifier(taxonomy, encoder="textrcnn", clean="hiagm", **small)
    classifier.fit(texts, [["device"], ["post"]] * 4)
    classifier.save(tmp_path / "model")
    loaded = HierarchicalTextClassifier.load(tmp_path / "model")
    assert loaded.predict_proba(texts[:2]).tolist() == classifier.predict_proba(texts[:2]).tolist()
    assert (
        loaded.predict_proba(["THE PRINTER 's jammed"]).tolist() == loaded.predict_proba(["printer's !jammed"]).tolist()
    )
    assert isinstance(loaded.model_, NeuralModel)
    numbers, reading = read_by_network(loaded.model_, texts[0])
    assert len(numbers) == 4
    assert [[texts[0][slice(*place)] for place in places] for places in reading.tokens] == [
        ["printer"],
        ["'s"],
        ["jammed"],
        ["n't"],
    ]
