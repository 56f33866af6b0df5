"""What a model scores on some documents."""

from dataclasses import asdict, dataclass

from hitin.metrics.counts import Counts, macro_f1, micro_f1, micro_precision, micro_recall
from hitin.taxonomy import Taxonomy


@dataclass(frozen=True)
class LevelScores:
    """The scores of the labels on one level, 1 at the top."""

    level: int
    labels: int
    micro_f1: float
    macro_f1: float


def by_level(counts: Counts, taxonomy: Taxonomy) -> list[LevelScores]:
    """Scores for each level, from the top."""
    if len(counts) != len(taxonomy):
        raise ValueError(f"these are counts of {len(counts)} labels, but the taxonomy has {len(taxonomy)}")
    found, start = [], 0
    for level, size in enumerate(taxonomy.level_sizes, start=1):
        part = counts[start : start + size]  # labels are numbered level by level
        found.append(LevelScores(level, size, micro_f1(part), macro_f1(part)))
        start += size
    return found


@dataclass(frozen=True)
class Scores:
    """Flat scores of a model on some documents. Precision and recall are over all decisions, as micro-F1 is."""

    micro_f1: float
    macro_f1: float
    precision: float
    recall: float
    documents: int
    labels: int
    levels: tuple[LevelScores, ...] = ()

    @classmethod
    def of(cls, counts: Counts, taxonomy: Taxonomy, documents: int) -> "Scores":
        return cls(
            micro_f1=micro_f1(counts),
            macro_f1=macro_f1(counts),
            precision=micro_precision(counts),
            recall=micro_recall(counts),
            documents=documents,
            labels=len(counts),
            levels=tuple(by_level(counts, taxonomy)),
        )

    def to_json(self) -> dict[str, object]:
        """Plain values for `json.dumps`."""
        return {**asdict(self), "levels": [asdict(level) for level in self.levels]}
