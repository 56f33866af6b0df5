"""WOS-46985: abstracts of papers with their domain > area, from the official distribution, in the paper's splits.

Known of the table without having it: its number of rows, and how many belong to each domain, as the set's own
description says; and the order in which its labels first come, taken to be that of the published taxonomy, since the
public program that prepares it (of HiAGM's line) writes labels down as the rows come. The splits are of row numbers, so
that this order is what they rest upon; being second hand, it is remarked upon, and no reason to say no.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from hitin.datasets.files import DataFiles, in_splits, write_data
from hitin.datasets.splits import wos_rows
from hitin.datasets.table1 import Comparison
from hitin.datasets.wos_table import Row, find_table, is_spoilt, read_rows
from hitin.documents import Document
from hitin.errors import InputError, counted, listed, shown
from hitin.taxonomy import Taxonomy

ROWS = 46_985
DOMAINS = {
    "CS": 6_514,
    "Medical": 14_625,
    "Civil": 4_237,
    "ECE": 5_483,
    "biochemistry": 5_687,
    "MAE": 3_297,
    "Psychology": 7_142,
}
"""Rows of each domain, in the order in which they first come."""
ORDER = "f5b2200d80d6b246"
"""Of the labels in the order in which they first come, see `order_of`."""
LONGEST_CELL = 32_767
"""Characters that a cell of a spreadsheet may hold."""
_FEW = 20  # one row in so many

Label = tuple[str, str]
"""A domain and an area in it."""


@dataclass(frozen=True)
class Wos:
    """The labels, the documents in the order of the table, and what a person should know of them."""

    taxonomy: Taxonomy
    documents: tuple[Document, ...]
    domains: Counter[str]
    """Documents of each domain."""
    order: str
    """Equal for tables whose labels first come in the same order."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def wos(path: str | Path, *, encoding: str | None = None) -> Wos:
    """Read the folder of the distribution, its spreadsheet, or that as text in columns."""
    table = find_table(path)
    rows = list(read_rows(table, encoding=encoding))
    if not rows:
        raise InputError("the table has no rows", kind="no-documents", file=str(table), remedy="Download it again.")
    _check_domains(rows, str(table))
    labels = [(row.domain, area) for row, area in zip(rows, merged_areas(rows), strict=True)]
    names = distinct_names(labels)
    documents = tuple(
        Document(row.abstract, (label[0], names[label]), str(number))
        for number, (row, label) in enumerate(zip(rows, labels, strict=True), start=1)
    )
    domains, order = Counter(row.domain for row in rows), order_of(labels)
    notes = (*_merged(rows, labels), *_renamed(names))
    numbered = dict(enumerate(rows, start=1))
    warnings = (*_wrong_cells(numbered), *_other_codes(numbered), *_unlike_wos(domains, order))
    taxonomy = Taxonomy.from_paths(dict.fromkeys(document.labels for document in documents))
    return Wos(taxonomy, documents, domains, order, notes, warnings)


def write_wos(folder: str | Path, found: Wos) -> DataFiles:
    """Write the taxonomy and the splits of HiAGM and those that follow it."""
    train, val, test = ([found.documents[row] for row in rows] for rows in wos_rows(len(found.documents)))
    return write_data(folder, found.taxonomy, in_splits(train=train, val=val, test=test))


def compare_with_wos(found: Wos) -> tuple[Comparison, ...]:
    """What the set's own description says of the table, beside what was found."""
    return tuple(
        Comparison(f"rows of {name}", f"{rows:,}", f"{found.domains[name]:,}") for name, rows in DOMAINS.items()
    )


def merged_areas(rows: Sequence[Row]) -> list[str]:
    """The area of each row: of the names that its code has had so far, the one that most rows of the domain have.

    So does the public program, from which the paper's labels are. A name that comes before the more frequent one of its
    code stays in these first rows: Electrical generator, which makes 134 areas of the table's 133 codes.
    """
    counts = Counter((row.domain, row.area) for row in rows)
    most: dict[str, str] = {}
    areas = []
    for row in rows:
        known = most.setdefault(row.code, row.area)
        if counts[row.domain, row.area] > counts[row.domain, known]:
            most[row.code] = row.area
        areas.append(most[row.code])
    return areas


def distinct_names(labels: Iterable[Label]) -> dict[Label, str]:
    """What each area is called: by its name, and its domain too where another area or a domain has that name."""
    known = list(dict.fromkeys(labels))
    domains = {domain for domain, _ in known}
    uses = Counter(area for _, area in known)
    names = {(domain, area): area for domain, area in known}
    for domain, area in known:
        if uses[area] > 1 or area in domains:
            names[domain, area] = f"{area} ({domain})"
    taken = Counter([*names.values(), *domains])
    for name in names.values():
        if taken[name] > 1:
            raise InputError(f"two labels would be called {shown(name)}", kind="bad-label", remedy="Rename an area.")
    return names


def order_of(labels: Iterable[Label]) -> str:
    """Short, and the same for tables whose domains, and the areas of each, first come in the same order."""
    first: dict[str, dict[str, None]] = {}
    for domain, area in labels:
        first.setdefault(domain, {}).setdefault(area)
    lines = "\n".join("\t".join((domain, *areas)) for domain, areas in first.items())
    return blake2b(lines.encode(), digest_size=8).hexdigest()


def _check_domains(rows: Iterable[Row], file: str) -> None:
    """Refuse a table of which columns were sorted or moved without the others: a code is in one domain."""
    first: dict[str, Row] = {}
    for row in rows:
        known = first.setdefault(row.code, row)
        if known.domain != row.domain:
            raise InputError(
                f"code {row.code} is of the domain {shown(row.domain)} here and of {shown(known.domain)} in "
                f"line {known.line:,}: the columns do not belong together",
                kind="bad-row",
                file=file,
                line=row.line,
                remedy="Was a column sorted or moved without the others? Download the table again.",
            )


def _merged(rows: Iterable[Row], labels: Iterable[Label]) -> list[str]:
    """Which names gave way to a more frequent one of the same code."""
    given = Counter((row.code, row.area, area) for row, (_, area) in zip(rows, labels, strict=True) if row.area != area)
    return [
        f"{area} is {taken} in {counted(count, 'row')} of code {code}, which has both names"
        for (code, area, taken), count in given.items()
    ]


def _renamed(names: dict[Label, str]) -> list[str]:
    return [f"the area {area} of {domain} is called {name}" for (domain, area), name in names.items() if area != name]


def _wrong_cells(rows: Mapping[int, Row]) -> list[str]:
    """Abstracts that are no texts any more. Their rows stay, for the splits go by the number of the row."""
    kinds: dict[str, Callable[[str], bool]] = {
        "no abstract": lambda abstract: not abstract.strip(),
        "an error of a spreadsheet program for an abstract": is_spoilt,
        "an abstract cut at the longest that a cell may be": lambda abstract: len(abstract) == LONGEST_CELL,
        "an abstract longer than a cell may be, perhaps several rows in one": lambda abstract: (
            len(abstract) > LONGEST_CELL
        ),
    }
    told = []
    for what, is_wrong in kinds.items():
        if found := [number for number, row in rows.items() if is_wrong(row.abstract)]:
            told.append(f"{_documents(found)} {'has' if len(found) == 1 else 'have'} {what}")
    return told


def _other_codes(rows: Mapping[int, Row]) -> list[str]:
    """Whether `Y` seems to belong to other rows. A few that differ are the table's own: its code 1-9 is said to have
    two."""
    counts: dict[int, Counter[str]] = {}
    for row in rows.values():
        counts.setdefault(row.y, Counter())[row.code] += 1
    usual = {y: codes.most_common(1)[0][0] for y, codes in counts.items()}
    odd = [number for number, row in rows.items() if row.code != usual[row.y]]
    if len(odd) * _FEW <= len(rows):
        return []
    return [f"{_documents(odd)}: Y1 and Y2 are others than in most rows of the same Y; is the column intact?"]


def _unlike_wos(domains: Counter[str], order: str) -> list[str]:
    """The first thing by which this is not the whole of WOS-46985 as it was published."""
    rows = domains.total()
    if rows != ROWS:
        return [
            f"{counted(rows, 'row')}, where WOS-46985 has {ROWS:,}: a part of it, or another set; so are the splits"
        ]
    if dict(domains) != DOMAINS:
        other = [name for name in {**DOMAINS, **domains} if domains[name] != DOMAINS.get(name, 0)]
        return [f"another number of rows than WOS-46985 has of {listed(other)}: the table was changed"]
    if order != ORDER:
        return [
            "the labels do not first come in the order of the published taxonomy: were the rows re-ordered, or the "
            "columns by themselves? The splits go by the rows, and would not be the paper's"
        ]
    return []


def _documents(numbers: Sequence[int]) -> str:
    """`document 5`, `documents 5, 7, 12, ...`: by the ids that they are written with."""
    return f"document{'s' * (len(numbers) > 1)} {listed(list(map(str, numbers)), 5)}"
