"""What `hitin tune` does: choose decisions on documents, show the table, write them into the model."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from hitin.decisions import DecisionSettings, Row, Tuned
from hitin.errors import InputError, counted
from hitin.estimator import HierarchicalTextClassifier
from hitin.export.card import export_card
from hitin.export.model import OnnxModel
from hitin.files import FileProgress
from hitin.inputs import Documents, check_labelled
from hitin.labelled import Reading, read_labelled
from hitin.model_card import model_card
from hitin.model_folder import CARD, DECISIONS, fingerprint_of
from hitin.validation_scores import load_validation
from hitin.watcher import Watcher
from hitin.writing import write_text


def read_documents(
    classifier: HierarchicalTextClassifier,
    files: Sequence[str],
    reading: Reading,
    progress: FileProgress | None = None,
) -> Documents | None:
    """The documents to tune on; `None` for those whose scores the model keeps."""
    if not files:
        return None
    found = read_labelled(files, reading, reading.labels(classifier.taxonomy_), progress)
    check_labelled(len(found.texts), any(found.labels), "validation", files)
    return found


def tune_model(
    classifier: HierarchicalTextClassifier,
    documents: Documents | None,
    settings: DecisionSettings,
    folder: str,
    watcher: Watcher,
) -> Tuned:
    """Choose the decisions anew."""
    if documents is None:
        if isinstance(classifier.model_, OnnxModel):
            raise InputError(
                "an exported model keeps no scores of validation documents",
                kind="missing-file",
                file=folder,
                remedy="Name a file of labelled documents to tune on.",
            )
        path = Path(folder)
        scores = load_validation(path, classifier.taxonomy_, fingerprint_of(path))
        return classifier.tune_scores(scores, settings, watcher)
    return classifier.tune_documents(documents, settings, watcher)


def decisions_file(folder: str) -> Path:
    return Path(folder) / DECISIONS


def save_decisions(classifier: HierarchicalTextClassifier, folder: str) -> None:
    """Write them into the model, and its card anew."""
    write_text(decisions_file(folder), [classifier.decisions_.to_json()])
    write_text(Path(folder) / CARD, [_card(classifier)])


def _card(classifier: HierarchicalTextClassifier) -> str:
    model = classifier.model_
    if isinstance(model, OnnxModel):
        return export_card(classifier.taxonomy_, model.run, classifier.decisions_, int8=model.int8)
    return model_card(classifier)


def warnings_of(tuned: Tuned) -> Iterator[str]:
    """What a person should know of the choice."""
    if not tuned.reached:
        yield (
            f"no way to decide has a precision of {tuned.goal.precision:g} on these documents; the most precise is "
            f"chosen, with {tuned.chosen.precision:.4f}"
        )
    if not tuned.folds and len(tuned.rows) > 2:
        yield (
            f"{counted(tuned.documents, 'document is', 'documents are')} too few to hold some of them out: "
            "chosen is what does best on those it was tuned on"
        )


def tuning_tables(tuned: Tuned) -> list[Table | Text]:
    """What each way to decide gave, and which was chosen."""
    title = f"{counted(tuned.documents, 'document')}, tuned for {tuned.goal.describe()}"
    table = Table(title=title, title_justify="left", box=None, padding=(0, 2, 0, 0))
    table.add_column("policy")
    table.add_column("thresholds")
    for name in (*_scores_shown(tuned).values(), *_of_goal(tuned)):
        table.add_column(name, justify="right")
    table.add_column("")
    for row in tuned.rows:
        table.add_row(*_cells(tuned, row), style="bold" if row.chosen else "")
    for column in table.columns:  # of short words, which are not broken however narrow the terminal
        column.width = max(len(str(cell)) for cell in (column.header, *column.cells))
    chosen = Text(f"chosen: {tuned.decisions.describe()}")
    return [table, chosen, *_calibration_lines(tuned)]


def _scores_shown(tuned: Tuned) -> dict[str, str]:
    """Those that tell most for the goal: all of them would be too wide for a terminal. JSON has them all."""
    if tuned.goal.precision is not None:
        return {"micro_f1": "micro-F1", "precision": "precision", "recall": "recall"}
    if tuned.goal.metric == "hierarchical":
        return {"micro_f1": "micro-F1", "hierarchical_f1": "hierarchical F1"}
    return {"micro_f1": "micro-F1", "macro_f1": "macro-F1"}


def _of_goal(tuned: Tuned) -> list[str]:
    """The columns of what was tuned for: none for a wished precision, whose recall is a column already."""
    if tuned.goal.precision is not None:
        return []
    return ["tuned", "held out"] if tuned.folds else ["tuned"]


def _cells(tuned: Tuned, row: Row) -> list[str]:
    of_goal = (row.value, row.held_out)[: len(_of_goal(tuned))]
    scores = (*(getattr(row, name) for name in _scores_shown(tuned)), *of_goal)
    marks = ["chosen"] if row.chosen else []
    if not row.reached:
        marks.append(f"below {tuned.goal.precision:g}")
    return [row.name, row.thresholds, *(f"{score:.4f}" for score in scores), ", ".join(marks)]


def _calibration_lines(tuned: Tuned) -> list[Table | Text]:
    losses = tuned.calibration_losses
    if not losses:
        return []
    told = ", ".join(f"{kind} {loss:.5f}" for kind, loss in losses.items())
    return [Text(f"log loss by calibration, on documents it was not fitted on: {told}")]
