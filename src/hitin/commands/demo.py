"""The demo: ICD-10-CM written, HiTIN trained on it, scored, and asked for ten diagnoses in plain words."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from hitin.answers import path_of
from hitin.commands.scoring import Scored, evaluate_files, load_baselines, score_tables
from hitin.commands.training import Task, prepare, train_model
from hitin.console import command
from hitin.datasets.files import DataFiles
from hitin.datasets.icd10 import check_needs, write_icd10
from hitin.errors import InputError, counted, printable
from hitin.estimator import HierarchicalTextClassifier
from hitin.files import is_there
from hitin.labelled import Reading, read_data
from hitin.model_folder import CARD
from hitin.names import PATH_SEPARATOR
from hitin.taxonomy import Taxonomy
from hitin.watcher import Watcher
from hitin.writing import check_writable, write_text

PRESET = "icd10"
ABOUT = "about.txt"
DATA = "data"
MODEL = "model"
METRICS = "metrics.json"
REPORT = "report.html"
BASELINE = "linear"
_MARK = "This folder was made by `hitin demo`. The next one here replaces its files.\n"
PHRASES = (
    "sugar disease with kidney damage",
    "heart failure with swollen legs",
    "broken wrist after a fall on the ice",
    "high blood pressure",
    "asthma attack",
    "bleeding stomach ulcer",
    "severe depression, second episode",
    "whooping cough in a baby",
    "migraine with flashing lights",
    "bitten by a dog",
)


@dataclass(frozen=True)
class Guess:
    """What the model makes of a phrase."""

    phrase: str
    paths: tuple[str, ...]
    probabilities: tuple[float, ...]
    is_sure: bool
    """Whether the paths are given labels; otherwise the most probable one is shown."""


@dataclass(frozen=True)
class Demo:
    """What came of the demo."""

    data: DataFiles
    model: Path
    scored: Scored
    seconds: float
    """Of training."""
    guesses: tuple[Guess, ...]

    def to_json(self) -> dict[str, object]:
        return {**self.scored.to_json(), "seconds": round(self.seconds, 3)}


def run_demo(out: str | Path, watcher: Watcher, *, device: str = "auto", **options: object) -> Demo:
    """Write the data, train (or go on with an interrupted training), score, guess; all files stand in `out`."""
    folder = Path(out)
    check_needs()
    _check_place(folder)
    task = prepare(
        str(model_folder(folder)),
        overwrite=True,
        device=device,
        options={"preset": PRESET, **options},
        baselines=[BASELINE],
    )
    watcher.note("writing ICD-10-CM")
    write_text(folder / ABOUT, [_MARK])
    files = write_icd10(folder / DATA)
    classifier = _trained(task, files, watcher)
    baselines = load_baselines(str(model_folder(folder)), (), device=device)
    scored = evaluate_files(classifier, [str(files.test)], Reading(), baselines=baselines, wants_report=True)
    scored.write_report(str(folder / REPORT), str(model_folder(folder)), [str(files.test)])
    found = Demo(files, model_folder(folder), scored, classifier.history_.seconds, tuple(guesses(classifier)))
    write_text(folder / METRICS, [json.dumps(found.to_json(), indent=2) + "\n"])
    return found


def model_folder(out: str | Path) -> Path:
    return Path(out) / MODEL


def _check_place(folder: Path) -> None:
    """Refuse a folder that is no earlier demo's, for what a demo there would replace."""
    check_writable(folder / METRICS)
    if _is_mark(folder / ABOUT):
        return
    for path in (folder / name for name in (ABOUT, DATA, MODEL, METRICS, REPORT)):
        if is_there(path):
            raise InputError(
                "this belongs to no demo, and a demo in this folder would replace it",
                kind="file-exists",
                file=str(path),
                remedy="Choose another folder with --out, such as a new one.",
            )


def _is_mark(path: Path) -> bool:
    try:
        return path.is_file() and path.read_bytes() == _MARK.encode()
    except OSError:
        return False


def _trained(task: Task, files: DataFiles, watcher: Watcher) -> HierarchicalTextClassifier:
    data = read_data(str(files.taxonomy), [str(files.train)], [str(files.val)], Reading())
    try:
        return train_model(task, data, resume="auto", watcher=watcher).classifier
    except InputError as error:
        if error.kind not in ("other-run", "damaged-checkpoint"):
            raise
    watcher.note("what was begun here was another training: beginning anew")
    return train_model(task, data, resume="never", watcher=watcher).classifier


def guesses(classifier: HierarchicalTextClassifier, phrases: Sequence[str] = PHRASES) -> Iterator[Guess]:
    """The paths of each phrase; where no label is given, the most probable one."""
    taxonomy = classifier.taxonomy_
    for phrase, row, given, _ in zip(phrases, *classifier.scored(phrases), strict=True):
        ends = taxonomy.deepest(taxonomy.closure(np.flatnonzero(given).tolist()))
        shown = ends or (_likeliest(taxonomy, row),)
        paths = tuple(path_of(taxonomy, label) for label in shown)
        yield Guess(phrase, paths, tuple(float(row[label]) for label in shown), bool(ends))


def _likeliest(taxonomy: Taxonomy, probabilities: NDArray[np.float32]) -> int:
    """The leaf that one comes to from the top, by the most probable label at each step."""
    label, below = 0, taxonomy.roots
    while len(below):
        label = int(below[np.argmax(probabilities[below])])
        below = taxonomy.children(label)
    return label


def demo_tables(found: Demo) -> list[RenderableType]:
    """The scores on test documents, over all and by level, and the guesses."""
    title = f"On {counted(found.scored.scores.documents, 'test document')}"
    return [*score_tables(found.scored, title), guess_table(found.guesses)]


def guess_table(found: Iterable[Guess]) -> Table:
    """Each phrase with its paths and how probable their ends are."""
    table = Table()
    table.add_column("in plain words", max_width=24)
    table.add_column("chapter > block > category")
    table.add_column("probability", justify="right")
    for guess in found:
        phrases = [guess.phrase, *[""] * (len(guess.paths) - 1)]
        for phrase, path, probability in zip(phrases, guess.paths, guess.probabilities, strict=True):
            shown = f"{probability:.2f}" if probability >= 0.005 else "< 0.01"
            certainty = shown if guess.is_sure else f"{shown}\nunsure"
            table.add_row(Text(phrase), _steps(path), certainty, style="" if guess.is_sure else "dim")
        table.add_section()
    return table


def _steps(path: str) -> Text:
    """A path with a line for each label."""
    return Text(path.replace(PATH_SEPARATOR, "\n> "))


def show_next(found: Demo) -> str:
    """Where everything is, and what to try."""
    lines = [
        f"trained in {found.seconds:,.0f} s",
        f"  model    {found.model}",
        f"  card     {found.model / CARD}",
        f"  scores   {found.model.with_name(METRICS)}",
        f"  report   {found.model.with_name(REPORT)}",
        "Next:",
        f'  echo "{PHRASES[1]}" | {command("predict", found.model, "--top", 3)}',
        f"  {command('evaluate', found.model, found.data.test)}",
        f"  {command('serve', found.model, '--open')}",
    ]
    return "\n".join(printable(line, most=1000) for line in lines)
