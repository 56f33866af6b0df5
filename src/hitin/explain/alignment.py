"""From a text as a model reads it back to the text as it was written: which characters became which."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator

from hitin.explain.words import Span


class Alignment:
    """Where each character of a text that was made from another comes from."""

    def __init__(self, parts: Iterable[tuple[Span, int]], length: int, whole: int) -> None:
        """`parts` are pieces of the `whole` characters that were written, each with how many it became; `length` is
        how many became of all. Where that is another number, no more is known than that all became all."""
        origins = [span for span, count in parts for _ in range(count)]
        self._origins = origins if len(origins) == length else [(0, whole)] * length

    def origin(self, start: int, end: int) -> Span:
        """What was written where these characters now are."""
        spans = self._origins[start:end]
        return min(first for first, _ in spans), max(last for _, last in spans)


def aligned(text: str, made: str, make: Callable[[str], str], *, composes: bool) -> Alignment:
    """The alignment of a text with what `make` made of it. With `composes`, characters that follow one another may
    have become one."""
    spans = _clusters(text) if composes else ((place, place + 1) for place in range(len(text)))
    return Alignment(((span, len(make(text[slice(*span)]))) for span in spans), len(made), len(text))


def _clusters(text: str) -> Iterator[Span]:
    """Pieces of a text that NFKC changes one by one."""
    start = 0
    for place in range(1, len(text)):
        if not _follows(text[start:place], text[place]):
            yield start, place
            start = place
    if text:
        yield start, len(text)


def _follows(before: str, char: str) -> bool:
    """Whether a character changes with those before it."""
    if char.isascii():
        return False
    if unicodedata.combining(char):
        return True
    return _nfkc(before + char) != _nfkc(before) + _nfkc(char)


def _nfkc(text: str) -> str:
    return unicodedata.normalize("NFKC", text)
