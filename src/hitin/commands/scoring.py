"""What `hitin evaluate` does: score a model on labelled documents, some at a time, and show what came of it."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from hitin import evaluation
from hitin.baselines import baseline_folders
from hitin.errors import InputError, printable
from hitin.estimator import HierarchicalTextClassifier
from hitin.evaluation import Evaluation
from hitin.files import FileProgress
from hitin.labelled import Reading, labelled_documents
from hitin.metrics import Difference, Scores
from hitin.report import About, BaselineScores, ReportBuilder

_OTHER_LABELS = "A model is scored on labels of the taxonomy that it was trained with: is it the right model?"
_SHOWN = {
    "micro_f1": "micro-F1",
    "macro_f1": "macro-F1",
    "macro_f1_present": "macro-F1, labels with documents",
    "precision": "precision",
    "recall": "recall",
    "samples_f1": "samples-F1",
    "exact_match": "exact match",
    "hierarchical_precision": "hierarchical precision",
    "hierarchical_recall": "hierarchical recall",
    "hierarchical_f1": "hierarchical F1",
    "path_consistency": "path consistency",
}


@dataclass(frozen=True)
class Scored:
    """A classifier with what it scored."""

    classifier: HierarchicalTextClassifier
    evaluation: Evaluation
    report: ReportBuilder | None = None

    @property
    def scores(self) -> Scores:
        return self.evaluation.scores

    def to_json(self) -> dict[str, Any]:
        found = self.evaluation
        return {
            "decisions": self.classifier.decisions_.summary(),
            **found.scores.to_json(),
            "calibration_error": found.reliability.ece(),
            "baselines": [each.to_json() for each in self._baselines()],
        }

    def write_report(self, path: str, model: str, files: Sequence[str]) -> list[Path]:
        """The page, and what stands beside it."""
        if self.report is None:
            raise ValueError("nothing was collected for a report")
        run = self.classifier.model_.run
        about = About(
            model=model,
            method=run.method_name,
            encoder=run.encoder_name,
            decisions=self.classifier.decisions_.describe(),
            files=tuple(files),
        )
        report = self.report.finish(
            self.scores, about=about, reliability=self.evaluation.reliability.to_json(), baselines=self._baselines()
        )
        return report.write(path)

    def _baselines(self) -> list[BaselineScores]:
        return [
            BaselineScores(name, against.scores, against.differences)
            for name, against in self.evaluation.baselines.items()
        ]


def load_baselines(
    model: str, others: Sequence[str], *, device: str = "auto", own: bool = True
) -> dict[str, HierarchicalTextClassifier]:
    """The models to score beside one, by name: those that were trained with it, and others."""
    found = {}
    for name, folder in baseline_folders(Path(model)) if own else ():
        try:
            found[name] = HierarchicalTextClassifier.load(folder, device=device)
        except InputError as error:
            remedy = "Leave out the model's baselines with --no-baseline, or copy the model again."
            raise InputError(error.message, kind=error.kind, file=error.file, remedy=remedy) from error
    folders = _named_folders(others, found)
    return found | {name: HierarchicalTextClassifier.load(folder, device=device) for name, folder in folders.items()}


def _named_folders(folders: Iterable[str], taken: Iterable[str]) -> dict[str, Path]:
    """Folders by a short name; those whose short names are the same, or are taken, by their whole path."""
    short = {Path(folder).absolute(): (folder, printable(folder, most=60)) for folder in folders}
    names = Counter([*taken, *(name for _, name in short.values())])
    return {
        name if names[name] == 1 else printable(str(whole), most=len(str(whole))): Path(folder)
        for whole, (folder, name) in short.items()
    }


def evaluate_files(
    classifier: HierarchicalTextClassifier,
    files: Sequence[str],
    reading: Reading,
    progress: FileProgress | None = None,
    *,
    baselines: Mapping[str, HierarchicalTextClassifier] | None = None,
    wants_report: bool = False,
) -> Scored:
    """Scores over all documents of the files; no more than some thousands of them are held."""
    labels = reading.labels(classifier.taxonomy_)
    found = labelled_documents(files, reading, labels, progress, _OTHER_LABELS)
    report = ReportBuilder(classifier.taxonomy_, train_counts=classifier.label_counts) if wants_report else None
    scored = evaluation.evaluate(
        classifier,
        ((document, label_set.ids) for document, label_set in found),
        baselines=baselines,
        seen=report.add if report else None,
        files=files,
    )
    return Scored(classifier, scored, report)


def score_tables(found: Scored, title: str) -> list[Table | Text]:
    """The scores over all, beside those of the baselines, and by level."""
    scores, baselines = found.scores, found.evaluation.baselines
    whole = Table(title=Text(printable(title, most=400), style="bold"), title_justify="left", show_header=True)
    whole.add_column("", style="bold")
    for name in ("score", "95 % interval"):
        whole.add_column(name, justify="right")
    for name in baselines:
        whole.add_column(Text(name), justify="right")
        whole.add_column("difference", justify="right")
    rows = {name: words for name, words in _SHOWN.items() if name in scores.by_name()}
    rows |= {f"precision_at_{count}": f"precision at {count}" for count in scores.precision_at}
    for name, words in rows.items():
        whole.add_row(words, *_cells(found, name))
    facts = {
        "calibration error": f"{found.evaluation.reliability.ece():.4f}",
        "documents": f"{scores.documents:,}",
        "labels": f"{scores.labels:,}",
        "labels a document": f"{scores.labels_given:.2f}",
    }
    whole.add_section()
    for words, value in facts.items():
        whole.add_row(words, value)
    decisions = Text(f"decisions: {found.classifier.decisions_.describe()}")
    return [whole, decisions, level_table(scores)]


def _cells(found: Scored, name: str) -> list[str]:
    scores = found.scores
    ends = scores.intervals.get(name)  # a single document has none
    cells = [f"{scores.by_name()[name]:.4f}", f"{ends[0]:.4f} - {ends[1]:.4f}" if ends else "none"]
    for against in found.evaluation.baselines.values():
        difference = against.differences[name]
        cells += [f"{against.scores.by_name()[name]:.4f}", _shown_difference(difference)]
    return cells


def _shown_difference(difference: Difference) -> str:
    """With a question mark where other documents might turn it round."""
    if difference.low == difference.estimate == difference.high == 0:
        return "="
    return f"{difference.estimate:+.4f}{'' if difference.clear else ' ?'}"


def level_table(scores: Scores) -> Table:
    table = Table()
    for name in ("level", "labels", "micro-F1", "macro-F1", "precision", "recall"):
        table.add_column(name, justify="right")
    for level in scores.levels:
        values = (level.micro_f1, level.macro_f1, level.precision, level.recall)
        table.add_row(str(level.level), f"{level.labels:,}", *(f"{value:.4f}" for value in values))
    return table
