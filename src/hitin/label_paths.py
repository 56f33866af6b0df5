"""A taxonomy out of the labels of documents, where these are paths such as `Device > Battery`."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from hitin.documents import Document
from hitin.errors import InputError, shown
from hitin.labels import DELIMITER, OTHER_DELIMITERS, check_delimiter, names_in
from hitin.names import PATH_SEPARATOR, ROOT, SEPARATORS, composed, path_below
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.builder import Homonyms, TaxonomyBuilder

_SPACED = re.compile(r"\s>|(?<![-=])>\s")  # people do not always write both blanks of PATH_SEPARATOR

BY_HAND = (
    "a line for each parent, with its children after it and tabs in between; or a CSV with the columns parent and child"
)
"""How a taxonomy is written that is in no documents."""


class Place(NamedTuple):
    """Where a label was met first."""

    file: str | None = None
    line: int | None = None


def taxonomy_of(documents: Iterable[Document], *, separator: str | None = None, root: str | None = ROOT) -> Taxonomy:
    """The tree that the labels of documents make up, where these are paths."""
    paths = LabelPaths(separator=separator, root=root)
    for document in documents:
        paths.add(document.labels, document.file, document.line)
    return paths.taxonomy()


class LabelPaths:
    """Collects the labels of documents, then makes a taxonomy of them.

    What stands between the names is the same for all: what `separator` says, or the first of the usual marks that
    occurs; but then another of these may follow a label at the top. `delimiter` stands between several labels of a
    document. `root` is the artificial root, which may begin a path.
    """

    def __init__(self, *, separator: str | None = None, delimiter: str = DELIMITER, root: str | None = ROOT) -> None:
        check_delimiter(delimiter)
        if separator == "":
            raise InputError("the separator of paths is empty", kind="bad-option", remedy="Leave it out, or name one.")
        self._separator = separator
        self._delimiter = delimiter
        self._root = root if root is None else composed(root)
        self._places: dict[str, Place] = {}
        self._first: Place | None = None  # of all documents
        self._known_paths: list[tuple[str, ...]] = []  # none after a label is added: they must be found again
        self._other_marks: dict[str, tuple[str, ...]] = {}

    def add(self, labels: Iterable[str], file: str | None = None, line: int | None = None) -> None:
        """The labels of one document."""
        self._first = self._first or Place(file, line)
        for label in labels:
            for name in map(str.strip, self._names(composed(label))):
                if name and composed(name) not in self._places:
                    self._places[composed(name)] = Place(file, line)
                    self._known_paths = []

    def _names(self, label: str) -> list[str]:
        """The labels in a text: several, as `LabelReader` knows them, unless the mark is that of paths."""
        if label in self._places or self._separator == self._delimiter:
            return [label]
        return names_in(label, self._delimiter) or [label]

    def homonyms(self) -> list[str]:
        """Names that stand in several places of the tree, in the order they were met."""
        above: dict[str, set[tuple[str, ...]]] = {}
        for path in self._paths():
            for at, name in enumerate(path):
                above.setdefault(name, set()).add(path[:at])
        return [name for name, places in above.items() if len(places) > 1]

    def run_together(self) -> list[str]:
        """Paths that look like several, such as `A > B, C > D`, which begins at the top again after the comma."""
        paths = self._paths()
        tops = {path[0] for path in paths}
        return [PATH_SEPARATOR.join(path) for path in paths if any(_ends_in(name, tops) for name in path[1:-1])]

    def other_marks(self) -> dict[str, tuple[str, ...]]:
        """Labels that have another mark than the rest, and the paths that they are read as."""
        self._paths()
        return self._other_marks

    def policy(self) -> Homonyms:
        """What a name in several places is, unless it is said: several labels, called by their paths."""
        return "separate" if self.homonyms() else "merge"

    def taxonomy(self, homonyms: Homonyms | None = None) -> Taxonomy:
        """The tree of all paths."""
        builder = TaxonomyBuilder(homonyms=homonyms or self.policy(), root=self._root)
        for path in self._paths():
            builder.add_path(list(path))
        return builder.build()

    def _paths(self) -> list[tuple[str, ...]]:
        """`_find_paths`, once for all questions: of 46,969 labels they take a quarter of a second."""
        self._known_paths = self._known_paths or self._find_paths()
        return self._known_paths

    def _find_paths(self) -> list[tuple[str, ...]]:
        """All paths from the top down; a single name that a longer path has is short for a label in that one."""
        separator = self._separator or next((mark for mark in SEPARATORS if self._occurs(mark)), PATH_SEPARATOR)
        paths = [self._path(label, separator) for label in self._places]
        if all(len(path) == 1 for path in paths):
            raise _no_path(*next(iter(self._places.items()))) if self._places else _no_label(self._first)
        self._other_marks = {} if self._separator else _with_other_marks(_not_short(paths), self._root)
        return _not_short(self._other_marks.get(path[0], path) if len(path) == 1 else path for path in paths)

    def _occurs(self, mark: str) -> bool:
        return any(mark in label for label in self._places)

    def _path(self, label: str, separator: str) -> tuple[str, ...]:
        is_guess = self._separator is None and separator == PATH_SEPARATOR
        names = [name.strip() for name in (_SPACED.split(label) if is_guess else label.split(separator))]
        if not all(names):
            raise InputError(
                f"a name in the path is empty: {shown(label)}",
                kind="bad-label",
                file=self._places[label].file,
                line=self._places[label].line,
                remedy=f"Names are separated by {separator.strip() or separator!r}: delete the one too many, or name "
                "another mark with --separator.",
            )
        return tuple(names[1:] if len(names) > 1 and names[0] == self._root else names)


def _not_short(paths: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Each path once, less single names that a longer one has."""
    once = list(dict.fromkeys(paths))
    inner = {name for path in once if len(path) > 1 for name in path}
    return [path for path in once if path and (len(path) > 1 or path[0] not in inner)]


def _with_other_marks(paths: list[tuple[str, ...]], root: str | None) -> dict[str, tuple[str, ...]]:
    """Single names that are paths below a label at the top, by another mark."""
    tops = {path[0] for path in paths}
    found = {path[0]: path_below(tops, path[0], root) for path in paths if len(path) == 1}
    return {name: path for name, path in found.items() if path}


def _ends_in(name: str, tops: set[str]) -> bool:
    """Whether a label of the top stands at the end of a name, after a mark that people write between labels."""
    return any(
        char in OTHER_DELIMITERS and name[at:].strip() in tops
        for at, char in enumerate(name, start=1)
        if at < len(name)
    )


def _no_label(first: Place | None) -> InputError:
    """There is nothing to make a taxonomy of."""
    file = first.file if first else None
    remedy = "Name the right column with --label-key."
    return InputError("no document has a label", kind="no-labels", file=file, remedy=remedy)


def _no_path(label: str, place: Place) -> InputError:
    """No label says what it stands under."""
    return InputError(
        f"no label is a path, so which stands under which is not known; the first is {shown(label)}",
        kind="no-paths",
        file=place.file,
        line=place.line,
        remedy=(
            "Write labels as paths, such as Device > Battery (--separator names another mark than >), or write the "
            f"taxonomy yourself: {BY_HAND}."
        ),
    )
