"""What `hitin evaluate` does: score a model on labelled documents, some at a time."""

from collections.abc import Iterable

import numpy as np
from rich.table import Table
from rich.text import Text

from hitin.commands.console import FileProgress
from hitin.commands.labelled import Reading, labelled_documents
from hitin.decisions import Decisions
from hitin.estimator import HierarchicalTextClassifier
from hitin.inputs import check_labelled, chunks
from hitin.metrics import Counts, Scores
from hitin.taxonomy import Taxonomy
from hitin.tokens import Ragged

_CELLS = 1 << 22  # probabilities held at once
_DOCUMENTS = 1024
_OTHER_LABELS = "A model is scored on labels of the taxonomy that it was trained with: is it the right model?"


def documents_at_once(taxonomy: Taxonomy, most: int = _DOCUMENTS) -> int:
    """How many documents are scored together: fewer where labels are very many."""
    return max(1, min(most, _CELLS // len(taxonomy)))


def evaluate_files(
    classifier: HierarchicalTextClassifier,
    files: Iterable[str],
    reading: Reading,
    progress: FileProgress | None = None,
) -> Scores:
    """Scores over all documents of the files; no more than some hundreds of them are held."""
    taxonomy = classifier.taxonomy_
    found = labelled_documents(files, reading, reading.labels(taxonomy), progress, _OTHER_LABELS)
    pairs = ((document.text, labels.ids) for document, labels in found)
    counts, documents = Counts.zero(len(taxonomy)), 0
    for chunk in chunks(pairs, documents_at_once(taxonomy)):
        probabilities = classifier.predict_proba([text for text, _ in chunk])
        chosen = classifier.decisions_.decide(probabilities, taxonomy)
        truth = Ragged.of([labels for _, labels in chunk]).indicators(np.arange(len(chunk)), len(taxonomy)) > 0
        counts += Counts.of(chosen, truth)
        documents += len(chunk)
    check_labelled(documents, bool(counts.actual.any()), "test")
    return Scores.of(counts, taxonomy, documents)


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
