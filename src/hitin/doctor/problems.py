"""What can be wrong with a taxonomy and its documents: each kind counted, its first ten places kept."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from hitin.errors import HitinError, InputError, counted, printable

FIRST = 10


class Severity(IntEnum):
    """How bad it is; the value of the worst becomes the exit code, a warning's being 0."""

    WARNING = 0
    WRONG = 1
    """Training would go wrong."""
    UNREADABLE = 2
    """The input cannot be read as it stands."""


class Example(NamedTuple):
    """One place where a problem shows."""

    place: str
    detail: str


class Kind(NamedTuple):
    severity: Severity
    one: str
    several: str
    remedy: str = ""


KINDS: dict[str, Kind] = {
    "unknown-label": Kind(
        Severity.WRONG,
        "label that the taxonomy does not have",
        "labels that the taxonomy does not have",
        "Correct the spelling, or add them to the taxonomy.",
    ),
    "empty-split": Kind(
        Severity.WRONG, "file without a document", "files without a document", "Give a file with documents."
    ),
    "nothing-to-learn": Kind(
        Severity.WRONG,
        "training file in which no document has both a text and a label",
        "training files in which no document has both a text and a label",
        "Is the right column read?",
    ),
    "leak": Kind(
        Severity.WRONG,
        "text that stands in an earlier file too",
        "texts that stand in an earlier file too",
        "Scores on them say nothing: keep each text in one split.",
    ),
    "unlabelled": Kind(
        Severity.WARNING,
        "document with an empty list of labels",
        "documents with an empty list of labels",
        "They teach that no label applies.",
    ),
    "empty-text": Kind(
        Severity.WARNING,
        "document with an empty text",
        "documents with an empty text",
        "Remove them, or find their text.",
    ),
    "duplicate-text": Kind(
        Severity.WARNING,
        "document whose text came before in the same split",
        "documents whose text came before in the same split",
        "Keep one of each, with all its labels.",
    ),
    "missing-ancestors": Kind(
        Severity.WARNING,
        "document that names a label without all its ancestors",
        "documents that name a label without all its ancestors",
        "They are completed when read.",
    ),
    "encoding": Kind(
        Severity.WARNING,
        "text or name with signs of a wrong encoding",
        "texts and names with signs of a wrong encoding",
        "They were once read in another encoding than they were written in: export them again as UTF-8.",
    ),
    "label-without-documents": Kind(
        Severity.WARNING,
        "label that no document has",
        "labels that no document has",
        "They cannot be learnt: add documents or drop them.",
    ),
    "label-only-in-other-splits": Kind(
        Severity.WARNING,
        "label of other splits that no training document has",
        "labels of other splits that no training document has",
        "They can only be missed: move some of their documents to training.",
    ),
    "rare-label": Kind(
        Severity.WARNING,
        "label with few training documents",
        "labels with few training documents",
        "Expect low scores there, or merge them upwards.",
    ),
    "look-alike-labels": Kind(
        Severity.WARNING,
        "label that differs from another only in case, blanks or punctuation",
        "labels that differ only in case, blanks or punctuation",
        "Are they meant to be one?",
    ),
    "misspelt-label": Kind(
        Severity.WARNING,
        "label with few documents that is nearly called like its sibling",
        "labels with few documents that are nearly called like their siblings",
        "If one is the other misspelt, correct it in the documents and in the taxonomy.",
    ),
    "homonym": Kind(
        Severity.WARNING,
        "name that stands under several parents",
        "names that stand under several parents",
        "See the taxonomy's table for what was done; --homonyms changes it.",
    ),
    "duplicate-edge": Kind(
        Severity.WARNING, "edge that is given twice", "edges that are given twice", "Each counts once; nothing to do."
    ),
    "flat-taxonomy": Kind(
        Severity.WARNING,
        "taxonomy without any parent",
        "taxonomies without any parent",
        "If labels were meant to stand under others: is the separator right (tabs, not blanks)? --separator names it.",
    ),
    "path-at-top": Kind(
        Severity.WARNING,
        "label at the top that looks like a path from another one there",
        "labels at the top that look like paths from others there",
        "If they are, put them under these labels: paths were written with several marks.",
    ),
    "broken-json": Kind(Severity.UNREADABLE, "line of broken JSON", "lines of broken JSON"),
    "no-text": Kind(Severity.UNREADABLE, "document without a text", "documents without a text"),
    "no-label": Kind(Severity.UNREADABLE, "document without a label", "documents without a label"),
    "bad-label": Kind(
        Severity.UNREADABLE,
        "document whose label is neither text nor list",
        "documents whose label is neither text nor list",
    ),
    "bad-row": Kind(Severity.UNREADABLE, "row that does not fit the header", "rows that do not fit the header"),
    "not-utf-8": Kind(Severity.UNREADABLE, "line that is not UTF-8", "lines that are not UTF-8"),
}
_UNREADABLE_FILE = Kind(Severity.UNREADABLE, "file that cannot be read", "files that cannot be read")


@dataclass
class Problem:
    """All occurrences of one kind of problem."""

    kind: str
    severity: Severity
    one: str
    several: str
    remedy: str
    count: int = 0
    places: int = 0
    """How many places there are; one may stand for several occurrences."""
    examples: list[Example] = field(default_factory=list)
    """The first of them."""

    @property
    def title(self) -> str:
        """What is wrong, and how often."""
        return counted(self.count, self.one, self.several)


class Problems:
    """Problems by kind, the worst first and otherwise in the order they were met."""

    def __init__(self) -> None:
        self._by_kind: dict[str, Problem] = {}

    def __iter__(self) -> Iterator[Problem]:
        return iter(sorted(self._by_kind.values(), key=lambda problem: -problem.severity))

    def add(self, kind: str, place: str = "", detail: str = "", *, count: int = 1, places: int = 1) -> None:
        """Count an occurrence, or several; the place is kept while it is among the first."""
        problem = self._problem(kind)
        problem.count += count
        problem.places += places
        if place and len(problem.examples) < FIRST:
            problem.examples.append(Example(printable(place, most=4096), printable(detail)))

    def add_error(self, error: HitinError, file: str | None = None) -> None:
        """A record or file that could not be read. Its remedy is said once, and again where it is another."""
        if not isinstance(error, InputError):
            error = InputError(str(error), kind="missing-extra", file=file)
        problem = self._problem(error.kind)
        remedy = printable(error.remedy or "", most=400)
        problem.remedy = problem.remedy or remedy
        other = f" {remedy}" if remedy and remedy != problem.remedy else ""
        self.add(error.kind, error.place or "the input", error.message + other)

    def wants_more(self, kind: str) -> bool:
        """Whether another place of this kind would be kept."""
        problem = self._by_kind.get(kind)
        return problem is None or len(problem.examples) < FIRST

    def _problem(self, kind: str) -> Problem:
        return self._by_kind.setdefault(kind, Problem(kind, *KINDS.get(kind, _UNREADABLE_FILE)))
