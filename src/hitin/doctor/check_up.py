"""`check`: reads a taxonomy and its documents and says what stands in the way of training."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hitin.doctor.problems import Problem, Problems, Severity
from hitin.doctor.splits import Split
from hitin.documents import Document, Keys, documents_in, read_documents
from hitin.errors import InputError
from hitin.files import Source
from hitin.labels import LabelReader
from hitin.taxonomy import PATH_SEPARATOR, ROOT, Taxonomy
from hitin.taxonomy_formats import Format, Homonyms, Reading, read_taxonomy

Progress = Callable[[str, int, int], None]
"""Called now and then with a file's name, the bytes read and its size."""

_PERCENTILES = (5, 50, 95, 99)


@dataclass
class TaxonomyFacts:
    """Counts of a taxonomy; `levels` from the top, `homonym_policy` where the format has homonyms."""

    file: str
    format: str
    encoding: str
    labels: int
    depth: int
    levels: list[int]
    leaves_by_level: list[int]
    leaves: int
    edges: int
    several_parents: int
    mean_children: float
    max_children: int
    homonym_policy: str | None
    homonyms: int


@dataclass
class SplitFacts:
    """Counts of one file of documents; labels are counted with their ancestors."""

    file: str
    documents: int
    mean_labels: float
    mean_labels_by_level: list[float]
    labels_used: int
    several_paths: float
    """The share of documents whose labels end in more than one place."""
    words: dict[str, float]
    duplicates: int = 0
    leaks: dict[str, int] = field(default_factory=dict)
    """How many of its texts each earlier file has."""


@dataclass
class CheckUp:
    """The doctor's findings. `exit_code`: 0 fit, 1 training would be wrong, 2 something cannot be read."""

    taxonomy: TaxonomyFacts
    splits: list[SplitFacts]
    problems: list[Problem]

    @property
    def exit_code(self) -> int:
        return int(max((problem.severity for problem in self.problems), default=Severity.WARNING))

    def to_json(self) -> dict[str, object]:
        """Plain values for `json.dumps`."""
        return {
            "exit_code": self.exit_code,
            "taxonomy": asdict(self.taxonomy),
            "splits": [asdict(split) for split in self.splits],
            "problems": [problem_to_json(problem) for problem in self.problems],
        }


def problem_to_json(problem: Problem) -> dict[str, object]:
    return {
        "kind": problem.kind,
        "severity": problem.severity.name.lower(),
        "title": problem.title,
        "remedy": problem.remedy,
        "count": problem.count,
        "examples": [example._asdict() for example in problem.examples],
    }


def check(
    taxonomy: str | Path | Taxonomy,
    documents: Iterable[str | Path] | Mapping[str, object] = (),
    *,
    format: Format = "auto",
    separator: str | None = None,
    root: str = ROOT,
    homonyms: Homonyms = "merge",
    encoding: str | None = None,
    text_key: str | None = None,
    label_key: str | None = None,
    rare: int = 10,
    progress: Progress | None = None,
) -> CheckUp:
    """Examine a taxonomy and files of documents, or a mapping of names to whatever `read_documents` takes.

    The training split is the first whose name holds "train", or else the first. Documents are streamed: of
    each only its length and a fingerprint are kept. A taxonomy that cannot be read raises `InputError`; bad
    documents are reported.
    """
    reading = (
        Reading(taxonomy, "", "", "", None, None, [], [])
        if isinstance(taxonomy, Taxonomy)
        else read_taxonomy(
            taxonomy, format=format, separator=separator, root=root, homonyms=homonyms, encoding=encoding
        )
    )
    problems = Problems()
    _examine_taxonomy(reading, problems)
    labels = LabelReader(reading.taxonomy)
    splits = []
    for name, data in (
        documents.items() if isinstance(documents, Mapping) else [(str(path), path) for path in documents]
    ):
        split = Split(name, labels, problems)
        try:
            _read(split, data, Keys(text_key, label_key), encoding, problems, progress)
        except InputError as error:
            problems.add_error(error)
        splits.append(split)
    _examine_labels(reading, splits, labels, problems, rare)
    facts = [_split_facts(split, reading.taxonomy) for split in splits]
    _examine_repetitions(splits, facts, problems)
    return CheckUp(_taxonomy_facts(reading), facts, list(problems))


def _read(
    split: Split,
    data: object,
    keys: Keys,
    encoding: str | None,
    problems: Problems,
    progress: Progress | None,
) -> None:
    on_error = problems.add_error
    if not isinstance(data, str | Path):
        split.read(read_documents(data, text_key=keys.text, label_key=keys.label, on_error=on_error))
        return
    with Source(data, encoding=encoding) as source:
        documents = documents_in(source, keys, on_error=on_error)
        split.read(_followed(documents, source, progress) if progress else documents)


def _followed(documents: Iterator[Document], source: Source, progress: Progress) -> Iterator[Document]:
    for number, document in enumerate(documents):
        if number % 2048 == 0:
            progress(source.name, source.position, source.size)
        yield document


def _examine_taxonomy(reading: Reading, problems: Problems) -> None:
    taxonomy = reading.taxonomy
    for line, parent, child in reading.repeated:
        problems.add("duplicate-edge", f"{reading.file}:{line}", f"{parent}{PATH_SEPARATOR}{child}")
    for name in reading.homonyms:
        problems.add("homonym", reading.file, name)
    if taxonomy.depth == 1 and len(taxonomy) > 1:
        problems.add("flat-taxonomy", reading.file, f"{len(taxonomy):,} labels, all at the top")
    twins: defaultdict[str, list[str]] = defaultdict(list)
    for label in taxonomy.labels:
        twins["".join(char for char in label.casefold() if char.isalnum())].append(label)
    for key, names in twins.items():
        if key and len(names) > 1:
            problems.add("look-alike-labels", reading.file, " and ".join(repr(name) for name in names[:3]))


def _examine_labels(reading: Reading, splits: list[Split], labels: LabelReader, problems: Problems, rare: int) -> None:
    for split in splits:
        for unknown, count in split.unknown.items():
            detail = f"{unknown!r}, {count:,} times" if count > 1 else repr(unknown)
            if problems.wants_more("unknown-label") and (near := labels.nearest(unknown)):
                detail += f"; did you mean {near!r}?"
            problems.add("unknown-label", split.unknown_places[unknown], detail, count=count)
    if not splits:
        return
    train = next((split for split in splits if "train" in Path(split.name).name.lower()), splits[0])
    if not train.documents:
        return
    elsewhere = sum((split.label_counts for split in splits), np.zeros(len(reading.taxonomy), dtype=np.int64))
    counts = train.label_counts
    for label in np.argsort(counts, kind="stable")[: np.count_nonzero(counts < rare)].tolist():  # the rarest first
        name, count = reading.taxonomy.labels[label], int(counts[label])
        if count:
            problems.add("rare-label", train.name, f"{name!r}: {count}")
        elif elsewhere[label]:
            problems.add("label-only-in-other-splits", train.name, f"{name!r}: {elsewhere[label]} elsewhere")
        else:
            problems.add("label-without-documents", train.name, repr(name))


def _examine_repetitions(splits: list[Split], facts: list[SplitFacts], problems: Problems) -> None:
    """Texts that come twice in a split, and texts of a split that an earlier one has."""
    seen: list[tuple[Split, NDArray[np.uint64], NDArray[np.uint64]]] = []
    for split, its_facts in zip(splits, facts, strict=True):
        prints, lines = split.prints, split.lines
        distinct, first, inverse = np.unique(prints, return_index=True, return_inverse=True)
        again = np.flatnonzero(first[inverse] != np.arange(len(prints)))
        its_facts.duplicates = len(again)
        for at in again.tolist():
            problems.add("duplicate-text", _place(split, lines[at]), f"as line {lines[first[inverse[at]]]}")
        for earlier, their_prints, their_lines in seen:
            _, ours, theirs = np.intersect1d(distinct, their_prints, return_indices=True)
            if len(ours):
                its_facts.leaks[earlier.name] = len(ours)
            for mine, other in sorted(zip(lines[first[ours]].tolist(), their_lines[theirs].tolist(), strict=True)):
                problems.add("leak", _place(split, mine), f"as {_place(earlier, other)}")
        seen.append((split, distinct, lines[first]))


def _place(split: Split, line: int) -> str:
    return f"{split.name}:{line}"


def _taxonomy_facts(reading: Reading) -> TaxonomyFacts:
    taxonomy = reading.taxonomy
    inner = taxonomy.child_counts[taxonomy.child_counts > 0]
    leaves = np.bincount(taxonomy.levels[taxonomy.leaves], minlength=taxonomy.depth + 1)[1:]
    return TaxonomyFacts(
        file=reading.file,
        format=reading.format,
        encoding=reading.encoding,
        labels=len(taxonomy),
        depth=taxonomy.depth,
        levels=list(taxonomy.level_sizes),
        leaves_by_level=leaves.tolist(),
        leaves=len(taxonomy.leaves),
        edges=len(taxonomy.edges),
        several_parents=int((taxonomy.parent_counts > 1).sum()),
        mean_children=round(float(inner.mean()), 2) if len(inner) else 0.0,
        max_children=int(inner.max()) if len(inner) else 0,
        homonym_policy=reading.homonym_policy,
        homonyms=len(reading.homonyms),
    )


def _split_facts(split: Split, taxonomy: Taxonomy) -> SplitFacts:
    documents = max(split.documents, 1)
    by_level = np.bincount(taxonomy.levels, weights=split.label_counts, minlength=taxonomy.depth + 1)[1:]
    words = split.words
    lengths = np.percentile(words, _PERCENTILES) if len(words) else [0.0] * len(_PERCENTILES)
    return SplitFacts(
        file=split.name,
        documents=split.documents,
        mean_labels=round(split.mean_labels, 4),
        mean_labels_by_level=[round(float(total) / documents, 4) for total in by_level],
        labels_used=int((split.label_counts > 0).sum()),
        several_paths=round(split.several_paths / documents, 4),
        words={f"p{rank}": float(length) for rank, length in zip(_PERCENTILES, lengths, strict=True)}
        | {"max": float(words.max()) if len(words) else 0.0},
    )
