"""arXiv: title and abstract of a paper to its categories, from the snapshot of arXiv's metadata (CC0).

The snapshot has millions of papers, a line each. It is read twice: to choose, of which twelve bytes a paper are kept,
and to write. Which papers are chosen, and which split each goes to, is told by a hash of its id alone, so that a later
snapshot changes little.
"""

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitin.cells import text_of
from hitin.compression import format_suffix
from hitin.datasets.arxiv_categories import archive_path, current, group_path, labels_of
from hitin.datasets.files import DataFiles, write_data
from hitin.documents import Document
from hitin.errors import InputError, counted, listed, shown
from hitin.files import STANDARD_INPUT, FileProgress, Source
from hitin.option_values import bad_option
from hitin.records import Record, read_records
from hitin.splitting import Split
from hitin.taxonomy import Taxonomy

Keys = NDArray[np.uint64]
Categories = tuple[str, ...]
KEYS = ("id", "title", "abstract", "categories")


@dataclass(frozen=True)
class ArxivSettings:
    """Which papers are taken, and with which labels."""

    single: bool = False
    """Only papers of one category, with archive > category; otherwise all, with group > (archive >) category."""
    documents: int = 46_985
    """How many, or 0 for all."""
    least: int = 20
    """Categories that fewer of the chosen papers have are no labels."""

    def __post_init__(self) -> None:
        if self.documents < 0:
            raise bad_option(f"documents is {self.documents}", "It is how many are to be taken, or 0 for all.")
        if self.least < 1:
            raise bad_option(f"least is {self.least}", "It is at least 1.")

    @property
    def path_of(self) -> Callable[[str], tuple[str, ...]]:
        return archive_path if self.single else group_path

    def takes(self, categories: Categories) -> bool:
        """Whether papers of these categories may be chosen; a single one must say more than an archive."""
        return not self.single or (len(categories) == 1 and len(archive_path(categories[0])) == 2)


class Paper(NamedTuple):
    """What is read of a paper."""

    id: str
    title: str
    abstract: str
    categories: Categories

    @property
    def text(self) -> str:
        """`Title. Abstract`, with one blank between words: lines are broken anywhere in the snapshot."""
        title, abstract = " ".join(self.title.split()), " ".join(self.abstract.split())
        return f"{title}{'' if title.endswith(('.', '?', '!')) else '.'} {abstract}".strip()


@dataclass
class Census:
    """Of each paper that may be chosen, in the order of the snapshot: the hash of its id, and its categories."""

    keys: "array[int]" = field(default_factory=lambda: array("Q"))
    kinds: "array[int]" = field(default_factory=lambda: array("i"))
    """Numbers of combinations of categories."""
    combinations: dict[Categories, int] = field(default_factory=dict)

    def add(self, paper: Paper) -> None:
        self.keys.append(key_of(paper.id))
        self.kinds.append(self.combinations.setdefault(paper.categories, len(self.combinations)))


@dataclass(frozen=True)
class Chosen:
    """The hashes of the chosen papers, ascending, and the categories that are labels."""

    keys: Keys
    categories: frozenset[str]


def write_arxiv(
    folder: str | Path, dump: str | Path, settings: ArxivSettings, progress: FileProgress | None = None
) -> DataFiles:
    """Choose among the papers of a snapshot, and write the taxonomy and the splits."""
    if str(dump) == STANDARD_INPUT or Path(dump).is_fifo():
        raise bad_option("the snapshot is read twice, which standard input or a pipe cannot be", "Give a file.")
    census = Census()
    for paper in read_papers(dump, progress):
        if settings.takes(paper.categories):
            census.add(paper)
    chosen = choose(census, settings)
    if not len(chosen.keys):
        papers_seen, are_enough = counted(len(census.keys), "paper"), 0 < settings.documents < len(census.keys)
        of_them = f"the {settings.documents:,} that are wanted" if are_enough else "them"
        raise InputError(
            f"{papers_seen} may be chosen, and no category is given to {settings.least:,} of {of_them}",
            kind="no-documents",
            file=str(dump),
            remedy="Let --documents be higher, or --least lower."
            if are_enough
            else "Is this the whole snapshot? Otherwise let --least be lower.",
        )
    taxonomy = Taxonomy.from_paths(sorted(map(settings.path_of, chosen.categories)))
    papers = (paper for paper in read_papers(dump, progress) if settings.takes(paper.categories))
    return write_data(folder, taxonomy, _documents(papers, chosen, settings))


def choose(census: Census, settings: ArxivSettings) -> Chosen:
    """The papers whose hashes are the least, once categories are left out that too few of them have.

    To leave a category out lets other papers in, by which no category that was left out comes back.
    """
    keys, first = np.unique(np.frombuffer(census.keys, dtype=np.uint64), return_index=True)  # ascending, each id once
    kinds = np.frombuffer(census.kinds, dtype=np.int32)[first]
    combinations = list(census.combinations)
    kept = {category for categories in combinations for category in categories}
    while True:
        has_label = np.array([not kept.isdisjoint(categories) for categories in combinations], dtype=bool)
        rows = np.flatnonzero(has_label[kinds])[: settings.documents or None]
        counts: Counter[str] = Counter()
        for kind, papers in enumerate(np.bincount(kinds[rows], minlength=len(combinations)).tolist()):
            counts.update(dict.fromkeys(kept.intersection(combinations[kind]), papers))
        rare = {category for category in kept if counts[category] < settings.least}
        if not rare:
            return Chosen(keys[rows], frozenset(kept))
        kept -= rare


def _documents(papers: Iterable[Paper], chosen: Chosen, settings: ArxivSettings) -> Iterator[tuple[Split, Document]]:
    """The chosen papers, each once, in the order of the snapshot."""
    is_written = np.zeros(len(chosen.keys), dtype=bool)
    for paper in papers:
        key = np.uint64(key_of(paper.id))
        at = int(np.searchsorted(chosen.keys, key))
        if at == len(is_written) or chosen.keys[at] != key or is_written[at]:
            continue
        is_written[at] = True
        labels = labels_of(settings.path_of(each) for each in paper.categories if each in chosen.categories)
        yield split_of(paper.id), Document(paper.text, labels, paper.id)
    if not is_written.all():
        raise InputError("the snapshot changed while it was read", kind="unreadable", remedy="Run it again.")


def read_papers(dump: str | Path, progress: FileProgress | None = None) -> Iterator[Paper]:
    """The papers of a snapshot, one by one; what is wrong is told with its line. It may be in a zip, as on Kaggle."""
    with Source(dump, member=lambda names: _snapshot_in(names, str(dump))) as source:
        for line, record in read_records(source, columns=list, format="jsonl", on_error=_raise_bad_line):
            try:
                yield _paper(record)
            except InputError as error:
                error.file, error.line = source.name, line
                raise
            if progress and line % 1000 == 0:
                progress(source.name, source.position, source.size)


def _raise_bad_line(error: InputError) -> None:
    error.remedy = "Is the snapshot whole? Download it again, or take the line out."
    raise error


def _snapshot_in(names: list[str], file: str) -> str:
    """The file of a zip archive that is a snapshot."""
    found = [name for name in names if format_suffix(name) == ".json" and not name.startswith("__MACOSX/")]
    if len(found) == 1:
        return found[0]
    raise InputError(
        f"one .json should be in this zip archive, and there are {len(found)}; it holds: {listed(names)}",
        kind="missing-file",
        file=file,
        remedy="Unpack it, and give arxiv-metadata-oai-snapshot.json.",
    )


def _paper(record: Record) -> Paper:
    values = [record.get(key) for key in KEYS]
    if isinstance(values[3], list):  # as the snapshots of 2020 have it
        values[3] = " ".join(map(str, values[3]))
    for key, value in zip(KEYS, values, strict=True):
        if not isinstance(value, str):
            has = f"its {key!r} is {shown(value)}" if key in record else f"no {key!r}; its keys are {listed([*record])}"
            raise InputError(
                f"this is no paper of arXiv's metadata: {has}",
                kind="bad-row",
                remedy="Give arxiv-metadata-oai-snapshot.json, which has a paper a line.",
            )
    id, title, abstract, categories = map(text_of, values)
    if not categories.split():
        raise InputError(f"the paper {shown(id)} has no category", kind="bad-row", remedy="Take its line out.")
    return Paper(id, title, abstract, tuple(dict.fromkeys(map(current, categories.split()))))


def key_of(id: str) -> int:
    """Which papers are chosen: those for which this is least."""
    return int.from_bytes(_digest(id)[:8], "big")


def split_of(id: str) -> Split:
    """The split of a paper: 16 of 25 for training, 4 for validation, 5 for test, as in WOS."""
    share = int.from_bytes(_digest(id)[8:], "big") % 25
    return "test" if share < 5 else "val" if share < 9 else "train"


def _digest(id: str) -> bytes:
    return blake2b(id.encode(), digest_size=16).digest()
