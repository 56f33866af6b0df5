"""What `hitin evaluate` does: score a model on labelled documents, some at a time."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from hitin.commands.console import FileProgress
from hitin.commands.labelled import Reading, labelled_documents
from hitin.decisions import Decisions
from hitin.estimator import HierarchicalTextClassifier
from hitin.metrics import Scores

_OTHER_LABELS = "A model is scored on labels of the taxonomy that it was trained with: is it the right model?"


def evaluate_files(
    classifier: HierarchicalTextClassifier,
    files: Iterable[str],
    reading: Reading,
    progress: FileProgress | None = None,
) -> Scores:
    """Scores over all documents of the files; no more than some thousands of them are held."""
    labels = reading.labels(classifier.taxonomy_)
    found = labelled_documents(files, reading, labels, progress, _OTHER_LABELS)
    return classifier.evaluate_pairs((document.text, label_set.ids) for document, label_set in found)


def score_tables(scores: Scores, decisions: Decisions, title: str) -> list[Table]:
    """The scores over all, and by level."""
    whole = Table(title=Text(title, style="bold"), title_justify="left", show_header=False)
    whole.add_column(style="bold")
    whole.add_column(justify="right")
    for name, value in (
        ("micro-F1", scores.micro_f1),
        ("macro-F1", scores.macro_f1),
        ("precision", scores.precision),
        ("recall", scores.recall),
    ):
        whole.add_row(name, f"{value:.4f}")
    whole.add_row("documents", f"{scores.documents:,}")
    whole.add_row("labels", f"{scores.labels:,}")
    whole.add_row("decisions", f"{decisions.policy}, threshold {decisions.threshold:g}")
    return [whole, level_table(scores)]


def level_table(scores: Scores) -> Table:
    table = Table()
    for name in ("level", "labels", "micro-F1", "macro-F1"):
        table.add_column(name, justify="right")
    for level in scores.levels:
        table.add_row(str(level.level), f"{level.labels:,}", f"{level.micro_f1:.4f}", f"{level.macro_f1:.4f}")
    return table
