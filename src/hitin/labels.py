"""The labels of a document, as people write them, to the numbers of a taxonomy, ancestors included."""

from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest
from typing import NamedTuple

from hitin.taxonomy import PATH_SEPARATOR, ROOT, Taxonomy
from hitin.taxonomy_formats import SEPARATORS

DELIMITER = "|"
_CACHE = 200_000  # names, and ancestor numbers, remembered at most


class LabelSet(NamedTuple):
    """The labels of one document."""

    ids: tuple[int, ...]
    """Numbers in order, closed under ancestors."""
    given: frozenset[int]
    """Those that were named themselves."""
    deepest: tuple[int, ...]
    """Those that stand above none of the others: the ends of the paths."""
    unknown: tuple[str, ...] = ()
    """Names that the taxonomy does not have."""

    @property
    def is_complete(self) -> bool:
        """Whether every ancestor was named."""
        return len(self.given) == len(self.ids)


class LabelReader:
    """Understands a name, `A|B`, and the paths `A > B > C` and `A--B--C`. A name that is a label comes first."""

    def __init__(self, taxonomy: Taxonomy, *, delimiter: str = DELIMITER) -> None:
        self.taxonomy = taxonomy
        self.delimiter = delimiter
        self._known: dict[str, tuple[int, ...]] = {}
        self._sets: dict[frozenset[int], LabelSet] = {}
        self._remembered = 0

    def read(self, labels: Iterable[str]) -> LabelSet:
        """The numbers of the labels and of all their ancestors."""
        given: set[int] = set()
        unknown: list[str] = []
        for label in labels:
            given.update(self._numbers(label, unknown))
        found = self._closed(frozenset(given))
        return found._replace(unknown=tuple(unknown)) if unknown else found

    def _numbers(self, label: str, unknown: list[str]) -> tuple[int, ...]:
        """Numbers that a label stands for; what is not known goes to `unknown`."""
        found = self._known.get(label)
        if found is not None:
            return found
        found = self._look_up(label)
        if found is None and self.delimiter in label:
            pieces = [piece.strip() for piece in label.split(self.delimiter)]
            return tuple(number for piece in pieces if piece for number in self._numbers(piece, unknown))
        if found is None:
            unknown.append(label)
            return ()
        if len(self._known) < _CACHE:
            self._known[label] = found
        return found

    def _look_up(self, label: str) -> tuple[int, ...] | None:
        if label in self.taxonomy:
            return (self.taxonomy.index(label),)
        for separator in SEPARATORS:
            if separator in label:
                found = self._path([name.strip() for name in label.split(separator)])
                if found is not None:
                    return found
        return None

    def _path(self, names: list[str]) -> tuple[int, ...] | None:
        """A path whose label is called by it, or whose names are labels, each above the next."""
        if len(names) > 1 and names[0] == ROOT and ROOT not in self.taxonomy:
            names = names[1:]
        whole = PATH_SEPARATOR.join(names)
        if whole in self.taxonomy:
            return (self.taxonomy.index(whole),)
        if not all(name in self.taxonomy for name in names):
            return None
        numbers = tuple(self.taxonomy.index(name) for name in names)
        return numbers if set(numbers) <= set(self.taxonomy.closure(numbers[-1:])) else None

    def _closed(self, given: frozenset[int]) -> LabelSet:
        labels = self._sets.get(given)
        if labels is None:
            ids = self.taxonomy.closure(given)
            labels = LabelSet(ids, given, self.taxonomy.deepest(ids))
            self._remembered += len(ids) + len(given) + 8
            if self._remembered < 8 * _CACHE:
                self._sets[given] = labels
        return labels

    def nearest(self, label: str, most: int = 200_000) -> str | None:
        """The label that is spelt most like this one, if any is close."""
        wanted = _folded(label)
        pairs = {wanted[at : at + 2] for at in range(len(wanted) - 1)} or {wanted}

        def shared(candidate: str) -> float:
            folded = _folded(candidate)
            if wanted in (folded, _folded(candidate.rsplit(PATH_SEPARATOR, 1)[-1])):
                return 2.0
            return sum(pair in folded for pair in pairs) / max(len(wanted), len(folded), 1)

        best = nlargest(20, self.taxonomy.labels[:most], key=shared)
        score, close = max((_likeness(wanted, candidate), candidate) for candidate in best)
        return close if score >= 0.6 else None


def _folded(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum()) or name


def _likeness(wanted: str, candidate: str) -> float:
    names = (candidate, candidate.rsplit(PATH_SEPARATOR, 1)[-1])
    return max(SequenceMatcher(None, wanted, _folded(name)).ratio() for name in names)
