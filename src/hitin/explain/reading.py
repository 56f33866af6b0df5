"""What each kind of model reads of a text, and where that stands in it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hitin.bags import Bags, beginning, plain, words_in
from hitin.encoders.tfidf import Tfidf, TfidfSettings
from hitin.explain.alignment import aligned
from hitin.explain.words import Reading, Span
from hitin.neural import NeuralModel
from hitin.tokens import places_of_tokens

Numbers = NDArray[np.int64]


def read_by_network(model: NeuralModel, text: str) -> tuple[Numbers, Reading]:
    """The numbers that the encoder reads, and where in the text what they stand for is."""
    assert not isinstance(model.run.encoder, TfidfSettings)
    max_length = model.run.encoder.max_length
    if isinstance(model.tokenizer, Bags):
        return read_as_bag(model.tokenizer, text, max_length)
    numbers, places = places_of_tokens(model.tokenizer, text, max_length)
    return np.array(numbers), Reading(text, tuple((place,) if place[0] < place[1] else () for place in places))


def read_as_bag(bags: Bags, text: str, max_length: int) -> tuple[Numbers, Reading]:
    """The features of a bag, each with the words that it is made of."""
    begun = beginning(text, max_length)
    seen = plain(begun)
    alignment = aligned(begun, seen, plain, composes=True)
    words = [alignment.origin(*found.span()) for found in words_in(seen, max_length)]
    made = bags.made_of(text, max_length)
    return np.array([*made]), Reading(text, tuple(_spans(words, owners) for owners in made.values()))


def read_as_terms(tfidf: Tfidf, text: str) -> tuple[Numbers, Reading]:
    """The words and runs of words of TF-IDF that are known, each with where it stands."""
    alignment = aligned(text, tfidf.plain(text), tfidf.plain, composes=False)
    places, made = tfidf.made_of(text)
    words = [alignment.origin(*place) for place in places]
    return np.array([*made], dtype=np.int64), Reading(text, tuple(_spans(words, owners) for owners in made.values()))


def _spans(words: Sequence[Span], places: Sequence[int]) -> tuple[Span, ...]:
    return tuple(words[place] for place in places)
