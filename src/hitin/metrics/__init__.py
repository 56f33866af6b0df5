"""How good decisions are: scores over all documents, by level, along paths, and how sure one can be of them."""

from hitin.metrics.counts import Counts, label_f1, macro_f1, micro_f1, micro_precision, micro_recall
from hitin.metrics.scores import Difference, LevelScores, Scores
from hitin.metrics.tally import Tally, differences

__all__ = [
    "Counts",
    "Difference",
    "LevelScores",
    "Scores",
    "Tally",
    "differences",
    "label_f1",
    "macro_f1",
    "micro_f1",
    "micro_precision",
    "micro_recall",
]
