"""What is checked of the tokenizer of a saved model, which is a small program: what it makes of texts must be sane."""

import json
import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from tokenizers import Tokenizer

from hitin.bags import Bags
from hitin.tokens import UNKNOWN, subword_tokenizer, word_tokenizer

_LONGER = 64
"""How many times longer a normalizer may make a text. Most make it no longer."""
_GAPS = 100_000
_LONGEST_RUN = 100
"""Of words, or of characters in a piece of one; words are looked at up to their 64th."""
_NEED_UNKNOWN = ("WordLevel", "WordPiece")
"""Models that fail at the first unknown word where they have no token for it."""
_STEPS = ("normalizer", "pre_tokenizer", "post_processor")


def check_own(tokenizer: Tokenizer) -> None:
    """A `ValueError` unless it is one of those that hitin learns, which differ in their vocabulary alone."""
    told = json.loads(tokenizer.to_str())
    learners = (word_tokenizer, partial(word_tokenizer, clean="hiagm"), subword_tokenizer)
    ours = (json.loads(learn([], size=1, min_count=1).to_str()) for learn in learners)
    if not any(all(told[step] == our[step] for step in _STEPS) for our in ours):
        raise ValueError("it does not cut texts as those do that hitin learns")
    if tokenizer.token_to_id(str(told["model"].get("unk_token"))) != UNKNOWN:
        raise ValueError("its token of unknown words is not that of its vocabulary")
    check_numbers(tokenizer, tokenizer.get_vocab_size())


def check_bags(bags: Bags) -> None:
    """A `ValueError` where it takes ages to look for what no text has, or a weight is no number."""
    if not (1 <= bags.shape.runs <= _LONGEST_RUN and 0 <= bags.shape.pieces[0] <= bags.shape.pieces[1] <= _LONGEST_RUN):
        raise ValueError("its runs or pieces of words are too long")
    if not all(map(math.isfinite, bags.weights)):
        raise ValueError("some of its weights are no numbers")


def check_numbers(tokenizer: Tokenizer, known: int) -> None:
    """A `ValueError` where it gives numbers that an encoder of so many tokens does not know."""
    numbers = [*tokenizer.get_vocab().values(), *tokenizer.encode("a").ids]  # those around a text may be others
    if max(numbers, default=0) >= known:
        raise ValueError(f"it has tokens with numbers from {known:,} on")


def check_claims(text: str) -> None:
    """A `ValueError` for what would take all memory: to be asked before the library reads it.

    That of a vocabulary with a number of billions, where its list is wanted in order; and replacements that make a book
    of a word. And for what would fail at the first unknown word.
    """
    told = json.loads(text)
    vocabulary = told["model"].get("vocab") or ()
    numbers = vocabulary.values() if isinstance(vocabulary, dict) else range(len(vocabulary))
    if max(map(int, numbers), default=0) > _GAPS + 4 * len(vocabulary):
        raise ValueError("the numbers of its tokens are far above their count")
    if told["model"].get("type") in _NEED_UNKNOWN and told["model"].get("unk_token") not in vocabulary:
        raise ValueError("its token of unknown words is not in its vocabulary")
    replaced = (step for step in _parts(told.get("normalizer")) if step.get("type") == "Replace")
    if math.prod(max(1, len(str(step.get("content")))) for step in replaced) > _LONGER:
        raise ValueError(f"it may make a text more than {_LONGER} times longer")


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """All objects in a JSON value."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
            waiting += found.values()
        elif isinstance(found, list):
            waiting += found
