"""TF-IDF: a text as the weights of its words and runs of words, with scikit-learn (the extra `linear`)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from hitin.errors import InputError, first_line
from hitin.extras import need
from hitin.option_values import bad_option


@dataclass(frozen=True)
class TfidfSettings:
    ngrams: int = 2
    """Runs of up to so many words count as words."""
    min_df: int = 2
    """So many training documents must have a word."""
    max_features: int = 0
    """The most words, the most frequent ones; 0: all."""
    sublinear: bool = True
    """Whether a word that comes n times counts 1 + log n times."""
    lower_case: bool = True
    """Whether capitals are small letters."""
    strip_accents: bool = True
    """Whether é is e."""
    single_letters: bool = True
    """Whether a single letter or digit is a word."""

    def __post_init__(self) -> None:
        for name, least in (("ngrams", 1), ("min_df", 1), ("max_features", 0)):
            if getattr(self, name) < least:
                raise bad_option(f"{name} is {getattr(self, name)}", f"It is at least {least}.")

    @staticmethod
    def usual() -> dict[str, object]:
        """The defaults suit it."""
        return {}


class Tfidf:
    """From texts to rows of weights, each row of length 1, or empty where no word is known."""

    def __init__(self, vectorizer: Any) -> None:
        self._vectorizer = vectorizer

    @classmethod
    def learnt(cls, settings: TfidfSettings, texts: Iterable[str], purpose: str) -> tuple[Self, Any]:
        """The words of these texts; and the texts' rows, which come from the same reading."""
        vectorizer = _vectorizer(settings, purpose)
        try:
            rows = vectorizer.fit_transform(texts)
        except ValueError as error:  # no words at all, or all of them too rare
            raise InputError(
                f"the training documents have no words to learn from ({first_line(error)})",
                kind="no-words",
                remedy=f"A word counts when {settings.min_df} documents have it (min_df).",
            ) from error
        return cls(vectorizer), rows

    @classmethod
    def restored(cls, settings: TfidfSettings, terms: Sequence[str], idf: NDArray[np.float32], purpose: str) -> Self:
        vectorizer = _vectorizer(settings, purpose)
        vectorizer.vocabulary = {term: number for number, term in enumerate(terms)}
        vectorizer.idf_ = idf
        return cls(vectorizer)

    @property
    def terms(self) -> list[str]:
        """The words, in the order of the columns."""
        names: list[str] = self._vectorizer.get_feature_names_out().tolist()
        return names

    @property
    def idf(self) -> NDArray[np.float32]:
        """What each word weighs: more the fewer documents have it."""
        return np.asarray(self._vectorizer.idf_, dtype=np.float32)

    def rows(self, texts: Iterable[str]) -> Any:
        """(documents, words) in SciPy's compressed rows."""
        return self._vectorizer.transform(texts)

    def plain(self, text: str) -> str:
        """A text as its words are looked for: in lower case and without accents, where that is wanted."""
        return str(self._vectorizer.build_preprocessor()(text))

    def made_of(self, text: str) -> tuple[list[tuple[int, int]], dict[int, list[int]]]:
        """Where the words of a text stand once it is plain; and the columns of the words and runs of words that are
        known, each with the words that it is made of, by their place among them."""
        found = list(re.finditer(self._vectorizer.token_pattern, self.plain(text)))
        words, columns = [each.group() for each in found], self._columns
        made: dict[int, list[int]] = {}
        for length in range(1, self._vectorizer.ngram_range[1] + 1):
            for start in range(len(words) - length + 1):
                column = columns.get(" ".join(words[start : start + length]))
                if column is not None:
                    made.setdefault(column, []).extend(range(start, start + length))
        return [each.span() for each in found], made

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {term: column for column, term in enumerate(self.terms)}


def _vectorizer(settings: TfidfSettings, purpose: str) -> Any:
    return need("sklearn.feature_extraction.text", extra="linear", purpose=purpose).TfidfVectorizer(
        ngram_range=(1, settings.ngrams),
        min_df=settings.min_df,
        max_features=settings.max_features or None,
        sublinear_tf=settings.sublinear,
        lowercase=settings.lower_case,
        strip_accents="unicode" if settings.strip_accents else None,
        token_pattern=r"\b\w+\b" if settings.single_letters else r"\b\w\w+\b",
        dtype=np.float32,
    )
