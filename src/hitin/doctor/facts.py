"""What the doctor counts, as plain values for tables and programs."""

from dataclasses import asdict, dataclass, field

import numpy as np

from hitin.doctor.problems import Problem, Severity
from hitin.doctor.splits import Split
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.reading import Reading

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
    """Counts of one split; labels are counted with their ancestors."""

    name: str
    documents: int
    mean_labels: float
    mean_labels_by_level: list[float]
    labels_used: int
    several_paths: float
    """The share of documents whose labels end in more than one place."""
    words: dict[str, float]
    duplicates: int = 0
    leaks: dict[str, int] = field(default_factory=dict)
    """How many of its texts each earlier split has."""
    leaked: int = 0
    """How many of its texts some earlier split has."""


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
        **asdict(problem),
        "severity": problem.severity.name.lower(),
        "examples": [example._asdict() for example in problem.examples],
    }


def taxonomy_facts(reading: Reading) -> TaxonomyFacts:
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


def split_facts(split: Split, taxonomy: Taxonomy) -> SplitFacts:
    documents = max(split.documents, 1)
    counts, words = split.label_counts, split.words
    by_level = np.bincount(taxonomy.levels, weights=counts, minlength=taxonomy.depth + 1)[1:]
    lengths = np.percentile(words, _PERCENTILES) if len(words) else [0.0] * len(_PERCENTILES)
    return SplitFacts(
        name=split.name,
        documents=split.documents,
        mean_labels=round(split.mean_labels, 4),
        mean_labels_by_level=[round(float(total) / documents, 4) for total in by_level],
        labels_used=int((counts > 0).sum()),
        several_paths=round(split.several_paths / documents, 4),
        words={f"p{rank}": float(length) for rank, length in zip(_PERCENTILES, lengths, strict=True)}
        | {"max": float(words.max()) if len(words) else 0.0},
    )
