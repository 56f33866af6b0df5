"""The labels of a document, as people write them, to the numbers of a taxonomy, ancestors included."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property
from heapq import nlargest
from itertools import pairwise
from typing import NamedTuple

from hitin.cells import names_in_list
from hitin.errors import InputError, shown
from hitin.names import PATH_SEPARATOR, ROOT, SEPARATORS, composed, folded, label_name
from hitin.taxonomy import Taxonomy

DELIMITER = "|"
OTHER_DELIMITERS = (";", ",", "\n")
"""What people also write between several labels; names may hold these, so that they part nothing by themselves."""

OTHER_SEPARATORS = ("/", "\\", "::", ":", ".")
"""The same between the names of a path."""

_CACHE = 200_000  # names, and label numbers, remembered at most
_COMPARED = 200_000  # labels that a misspelling is compared with
_STEPS = 20  # of a path that is looked at for misspellings


def names_in(label: str, delimiter: str = DELIMITER) -> list[str] | None:
    """The names in a text that holds several: a list that became text, or `A|B`; `None` where it is one name."""
    pieces = names_in_list(label)
    return label.split(delimiter) if pieces is None and delimiter in label else pieces


def check_delimiter(delimiter: str) -> None:
    if not delimiter:
        raise InputError("what stands between labels is empty", kind="bad-option", remedy="Leave it out, or name one.")


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
    """Understands a name, `A|B`, `['A', 'B']`, and the paths `A > B > C` and `A--B--C`.

    What is a label as it stands is not split.

    `separators` may stand between the names of a path; `root` is the artificial root, which names no label.
    """

    def __init__(
        self,
        taxonomy: Taxonomy,
        *,
        delimiter: str = DELIMITER,
        separators: Sequence[str] = SEPARATORS,
        root: str | None = ROOT,
    ) -> None:
        check_delimiter(delimiter)
        if not all(separators):
            raise InputError("the separator of paths is empty", kind="bad-option", remedy="Leave it out, or name one.")
        self.taxonomy = taxonomy
        self._delimiter = delimiter
        self._separators = separators
        self._root = composed(root) if root is not None and root not in taxonomy else None
        self._known: dict[str, tuple[int, ...]] = {}
        self._sets: dict[frozenset[int], LabelSet] = {}
        self._remembered = 0

    def read(self, labels: str | Iterable[object]) -> LabelSet:
        """The numbers of the labels and of all their ancestors."""
        if isinstance(labels, Mapping | bytes):  # which would be read as all of its keys, or as numbers
            raise InputError(
                f"the labels of a document are {shown(labels)}",
                kind="bad-labels",
                remedy="Give a name, or a list of names.",
            )
        given: set[int] = set()
        unknown: list[str] = []
        for label in (labels,) if isinstance(labels, str) else labels:
            given.update(self._numbers(label if isinstance(label, str) else label_name(label), unknown))
        found = self._closed(frozenset(given))
        return found._replace(unknown=tuple(unknown)) if unknown else found

    def _numbers(self, label: str, unknown: list[str]) -> tuple[int, ...]:
        """Numbers that a label stands for; what is not known goes to `unknown`."""
        found = self._known.get(label)
        if found is not None:
            return found
        label = composed(label.strip())
        found = self._look_up(label)
        if found is None:
            pieces = names_in(label, self._delimiter)
            if pieces is None:
                unknown.append(label)
                return ()
            names = [piece.strip() for piece in pieces]
            return tuple(number for name in names if name for number in self._numbers(name, unknown))
        if len(self._known) < _CACHE:
            self._known[label] = found
        return found

    def _look_up(self, label: str) -> tuple[int, ...] | None:
        if label in self.taxonomy:
            return self._called(label)
        if label == self._root:
            return ()
        for separator in self._separators:
            if separator in label:
                found = self._path([name.strip() for name in label.split(separator)])
                if found is not None:
                    return found
        return None

    def _called(self, label: str) -> tuple[int, ...]:
        """The label of a name. A name that is its path names those above it, too."""
        number = self.taxonomy.index(label)
        if PATH_SEPARATOR in label:
            closed, names = self.taxonomy.closure([number]), set(label.split(PATH_SEPARATOR))
            if all(self.taxonomy.labels[each].rsplit(PATH_SEPARATOR, 1)[-1] in names for each in closed):
                return closed
        return (number,)

    def _path(self, names: list[str]) -> tuple[int, ...] | None:
        """A path whose label is called by it, or whose names are labels, each above the next."""
        if len(names) > 1 and names[0] == self._root:
            names = names[1:]
        whole = PATH_SEPARATOR.join(names)
        if whole in self.taxonomy:
            return self._called(whole)
        if not all(name in self.taxonomy for name in names):
            return None
        numbers = tuple(self.taxonomy.index(name) for name in names)
        is_path = all(upper in self.taxonomy.ancestors(lower) for upper, lower in pairwise(numbers))
        return numbers if is_path else None

    def _closed(self, given: frozenset[int]) -> LabelSet:
        labels = self._sets.get(given)
        if labels is None:
            ids = self.taxonomy.closure(given)
            labels = LabelSet(ids, given, self.taxonomy.deepest(ids))
            self._remembered += len(ids) + len(given) + 8
            if self._remembered < 8 * _CACHE:
                self._sets[given] = labels
        return labels

    def nearest(self, label: str) -> str | None:
        """The label that is spelt most like this one, if any is close. Of very many only case and blanks count.

        Several labels with another mark in between, such as `A; B`, are written as they are read: `A|B`.
        """
        if several := self._several(label):
            return several
        if path := self._near_path(label):
            return path
        wanted = folded(label)
        if wanted in self._by_spelling:
            return self._by_spelling[wanted]
        if len(self._by_spelling) > _COMPARED or len(wanted) > 200:
            return None
        pairs = {wanted[at : at + 2] for at in range(len(wanted) - 1)} or {wanted}

        def shared(spelling: str) -> float:
            return sum(pair in spelling for pair in pairs) / max(len(wanted), len(spelling))

        best = nlargest(20, self._by_spelling, key=shared)
        likeness, spelling = max((SequenceMatcher(None, wanted, spelling).ratio(), spelling) for spelling in best)
        return self._by_spelling[spelling] if likeness >= 0.6 else None

    def _near_path(self, label: str) -> str | None:
        """A path with a misspelt name in it, rightly spelt."""
        for separator in self._separators:
            names = [name.strip() for name in label.split(separator)]
            if 1 < len(names) < _STEPS:
                near = [name if name in self.taxonomy else self.nearest(name) for name in names]
                if self._path([name or "" for name in near]):
                    return PATH_SEPARATOR.join(name or "" for name in near)
        return None

    def _several(self, label: str) -> str | None:
        mark = self._other_delimiter(label)
        return self._delimiter.join(name.strip() for name in label.split(mark)) if mark else None

    def _other_delimiter(self, label: str) -> str | None:
        for mark in (DELIMITER, *OTHER_DELIMITERS):
            names = [name.strip() for name in label.split(mark)]
            if len(names) > 1 and all(map(self._look_up, names)):
                return mark
        return None

    def option_for(self, label: str) -> str | None:
        """The option of the command line with which an unknown label is read, such as `--separator /`."""
        if mark := self._other_delimiter(label):
            typed = mark.replace("\n", "\\n")
            return f"--label-delimiter {shlex.quote(typed)}"
        for mark in OTHER_SEPARATORS:
            if mark in label and self._path([name.strip() for name in label.split(mark)]):
                return f"--separator {shlex.quote(mark)}"
        return None

    @cached_property
    def _by_spelling(self) -> dict[str, str]:
        """Labels by their folded names, and by the last of a path where that is no other label's."""
        spellings = {folded(label): label for label in reversed(self.taxonomy.labels)}
        for label in self.taxonomy.labels:
            if PATH_SEPARATOR in label:
                spellings.setdefault(folded(label.rsplit(PATH_SEPARATOR, 1)[-1]), label)
        return spellings


def unknown_label(
    reader: LabelReader,
    label: str,
    what: str = "the label",
    *,
    file: str | None = None,
    line: int | None = None,
    remedy: str = "Add it to the taxonomy, or correct the document.",
) -> InputError:
    """A label that the taxonomy does not have, with the nearest that it has."""
    near = reader.nearest(label)
    return InputError(
        f"{what} {shown(label)} is not in the taxonomy",
        kind="unknown-label",
        file=file,
        line=line,
        remedy=f"Did you mean {shown(near)}? {remedy}" if near else remedy,
    )
