"""What a model scores on some documents."""

import math
from dataclasses import asdict, dataclass, field

LEVEL_SCORES = ("micro_f1", "macro_f1", "precision", "recall")
DOCUMENT_SCORES = (
    "macro_f1_present",
    "samples_f1",
    "exact_match",
    "hierarchical_precision",
    "hierarchical_recall",
    "hierarchical_f1",
    "path_consistency",
    "labels_given",
)


@dataclass(frozen=True)
class LevelScores:
    """The scores of the labels on one level, 1 at the top."""

    level: int
    labels: int
    micro_f1: float
    macro_f1: float
    precision: float
    recall: float


@dataclass(frozen=True)
class Scores:
    """Scores of a model on some documents; from `Tally.scores`, with an interval for each.

    The sets that are compared are the labels a document was given and those it has.
    """

    micro_f1: float
    """Over all decisions, so that frequent labels count most."""
    macro_f1: float
    """The mean over all labels, where those without documents count zero, as in the paper."""
    precision: float
    """The share of given labels that are right."""
    recall: float
    """The share of true labels that were given."""
    documents: int
    labels: int
    levels: tuple[LevelScores, ...] = ()
    macro_f1_present: float = math.nan
    """The mean over labels that at least one document has."""
    samples_f1: float = math.nan
    """The mean over documents; zero for one that has no labels and was given none."""
    exact_match: float = math.nan
    """The share of documents with exactly the right labels."""
    hierarchical_precision: float = math.nan
    """Precision, recall and F1 over all decisions, once ancestors are added to the labels on both sides."""
    hierarchical_recall: float = math.nan
    hierarchical_f1: float = math.nan
    path_consistency: float = math.nan
    """The share of documents that were given no label without its ancestors."""
    labels_given: float = math.nan
    """The mean number of labels that a document was given."""
    precision_at: dict[int, float] = field(default_factory=dict)
    """For k labels, the share of true ones among the k most probable, where probabilities were known."""
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    """From where to where each score of `by_name` might as well be, had other documents been taken."""

    def by_name(self) -> dict[str, float]:
        """Every score that is known by a name of its own: `precision_at_5`, `level_2_micro_f1`."""
        found = {name: float(getattr(self, name)) for name in (*LEVEL_SCORES, *DOCUMENT_SCORES)}
        found |= {at_name(count): value for count, value in self.precision_at.items()}
        for level in self.levels:
            found |= {level_name(level.level, name): float(getattr(level, name)) for name in LEVEL_SCORES}
        return {name: value for name, value in found.items() if not math.isnan(value)}

    def to_json(self) -> dict[str, object]:
        """Plain values for `json.dumps`; what was not measured is left out."""
        plain = {name: value for name, value in asdict(self).items() if value == value}
        plain["levels"] = [asdict(level) for level in self.levels]
        plain["precision_at"] = {str(count): value for count, value in self.precision_at.items()}
        plain["intervals"] = {name: list(ends) for name, ends in self.intervals.items()}
        return plain


@dataclass(frozen=True)
class Difference:
    """By how much one model scores more than another on the same documents."""

    estimate: float
    low: float = math.nan
    """The ends of its interval are no numbers where a single document has none."""
    high: float = math.nan

    @property
    def clear(self) -> bool:
        """Whether the interval leaves out zero: other documents would hardly turn the order round."""
        return self.low > 0 or self.high < 0

    def to_json(self) -> dict[str, object]:
        """Plain values for `json.dumps`; without the ends of an interval that there is not."""
        return {name: value for name, value in asdict(self).items() if value == value} | {"clear": self.clear}


def at_name(count: int) -> str:
    """What the precision among that many labels is called."""
    return f"precision_at_{count}"


def level_name(level: int, score: str) -> str:
    """What a score of one level is called."""
    return f"level_{level}_{score}"
