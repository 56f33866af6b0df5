"""The cleaning of English texts that the paper follows, HiAGM's, as steps of a tokenizer.

Symbols become blanks, contractions are split, small letters; then the words, without stop words and those of one
character. The steps are written into `tokenizer.json`, so that whoever reads texts by it cleans them alike.
"""

from typing import Any, Literal

from tokenizers import Regex, normalizers, pre_tokenizers

Clean = Literal["", "hiagm"]

_STOP_WORDS = """
i me my myself we our ours ourselves you you're you've you'll you'd your yours yourself yourselves he him his
himself she she's her hers herself it it's its itself they them their theirs themselves what which who whom this
that that'll these those am is are was were be been being have has had having do does did doing a an the and but if
or because as until while of at by for with about against between into through during before after above below to
from up down in out on off over under again further then once here there when where why how all any both each few
more most other some such no nor not only own same so than too very s t can will just don don't should should've
now d ll m o re ve y ain aren aren't couldn couldn't didn didn't doesn doesn't hadn hadn't hasn hasn't haven
haven't isn isn't ma mightn mightn't mustn mustn't needn needn't shan shan't shouldn shouldn't wasn wasn't weren
weren't won won't wouldn wouldn't
"""
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""The 179 English stop words of NLTK, as they were when the paper was written."""

_LONGEST = 64
"""Characters of a word; what comes after them is cut off."""
_OTHER = r"[^A-Za-z0-9(),!?']"
# The sign that begins a contraction is replaced by itself after a blank: what is written over one character is known
# to stand for it, where of a longer piece only its end would be known.
_AFTER_SIGN = r"'(?=s|ve|re|d|ll)"  # it's, we've, they're, he'd, we'll
_NOT = r"n(?='t)"  # don't


def cleaned() -> Any:
    """The normalizer: kept are ASCII letters, digits and ( ) , ! ? '. Contractions are split where they are written in
    small letters, before all letters are made small: of DON'T it is the stop word that is seen."""
    return normalizers.Sequence(
        [
            normalizers.Replace(Regex(_OTHER), " "),
            normalizers.Replace(Regex(_AFTER_SIGN), " '"),
            normalizers.Replace(Regex(_NOT), " n"),
            normalizers.Lowercase(),
        ]
    )


def words_that_tell() -> Any:
    """The pre-tokenizer: words of at least two characters that are no stop words. Brackets and signs, which would be
    words of one character, only part others."""
    letter = "[a-z0-9']"
    stop_words = "|".join(sorted(STOP_WORDS))
    words = rf"(?<!{letter})(?!(?:{stop_words})(?!{letter})){letter}{{2,{_LONGEST}}}"
    return pre_tokenizers.Split(Regex(words), behavior="removed", invert=True)
