"""What `hitin train` does: read, check, train, and say what came of it."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import typer

from hitin import launching
from hitin.baselines import BaselineTask, check_baseline, settle_baselines
from hitin.commands.together import tells_the_end
from hitin.console import INTERRUPTED, command, say
from hitin.devices import accelerated, is_main_process, wait_for_all
from hitin.encoders import check_files
from hitin.encoders.names import BAG, TFIDF
from hitin.errors import InputError, counted, printable
from hitin.estimator import HierarchicalTextClassifier, Resume
from hitin.inputs import Documents, hold_out
from hitin.kills import end_unhurried
from hitin.labelled import Data
from hitin.launching import has_launcher
from hitin.memory import keep_freed_memory
from hitin.methods import METHODS, WholeMethod
from hitin.model_folder import MANIFEST, TRAINING, is_model
from hitin.model_kinds import kind_of
from hitin.model_place import check_place, training_in
from hitin.settings import Run
from hitin.training.agreement import check_same_task
from hitin.training.loop import CHECKPOINT, finish
from hitin.training.progress import SCORES_OF_EPOCHS, History
from hitin.watcher import Watcher
from hitin.writing import check_folder


@dataclass(frozen=True)
class Trained:
    """A trained model: where it is, and how it came about."""

    folder: str
    classifier: HierarchicalTextClassifier
    baselines: Mapping[str, HierarchicalTextClassifier] = field(default_factory=dict)

    @property
    def history(self) -> History:
        return self.classifier.history_

    def to_json(self) -> dict[str, object]:
        chosen = self.history.chosen
        return {
            "model": self.folder,
            "labels": len(self.classifier.taxonomy_),
            "documents": self.classifier.sizes_,
            "epochs": len(self.history.epochs),
            "best_epoch": int(chosen["epoch"]),
            "validation": {name: chosen[name] for name in SCORES_OF_EPOCHS if name in chosen},
            "decisions": self.classifier.decisions_.describe(),
            "tuned": _tuned_row(self.classifier),
            "baselines": {name: _tuned_row(baseline) for name, baseline in self.baselines.items()},
            "seconds": round(self.history.seconds, 3),
        }


_FEW = 50  # validation documents


@dataclass(frozen=True)
class Task:
    """A classifier to train, the settings of its run, and the folder it goes to."""

    classifier: HierarchicalTextClassifier
    run: Run
    out: str
    baselines: tuple[str, ...] = ()
    """Methods to train besides."""
    overwrite: bool = False
    """Whether a finished model may be replaced."""


def prepare(
    out: str, *, overwrite: bool, device: str, options: Mapping[str, object], baselines: Sequence[str] = ()
) -> Task:
    """What is to be trained, after all that can be wrong without a look at the data."""
    if is_main_process():  # the only one that writes, and perhaps the only one on this machine
        _check_out(Path(out), overwrite)
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    run = Run.of(**given)
    with accelerated(device, run.training):
        pass  # there is such a device, and it knows the precision
    for each in (run, *map(check_baseline, baselines)):
        kind_of(each).check_needs(each)
        check_files(each.encoder)
    if has_launcher() and isinstance(METHODS[run.method_name], WholeMethod):
        raise InputError(
            f"the method {run.method_name} is trained by one process",
            kind="bad-option",
            remedy="Leave out --launch, torchrun or accelerate.",
        )
    classifier = HierarchicalTextClassifier(device=device, **given)
    return Task(classifier, run, out, tuple(dict.fromkeys(baselines)), overwrite)


def _check_out(folder: Path, overwrite: bool) -> None:
    """A model can be written there, and takes the place of nothing else, nor of another model unless told so."""
    check_folder(folder, MANIFEST)
    check_place(folder)
    if is_model(folder) and not overwrite and not _ended_early(folder):
        if not (folder / TRAINING / CHECKPOINT).exists():  # a kill may have come when it had just been removed
            with training_in(folder):
                finish(folder / TRAINING)
        raise InputError(
            "the folder holds a finished model",
            kind="model-exists",
            file=str(folder),
            remedy="Choose another folder, or replace the model with --overwrite.",
        )


def _ended_early(folder: Path) -> bool:
    """Whether a kill came after the model was saved, but before what was only needed to go on was removed."""
    checkpoint = folder / TRAINING / CHECKPOINT
    return checkpoint.is_file() and checkpoint.stat().st_mtime <= (folder / MANIFEST).stat().st_mtime


def train_model(task: Task, data: Data, *, resume: Resume, watcher: Watcher) -> Trained:
    """Train, and write the model into its folder."""
    keep_freed_memory()
    train, val = _held_out(task.run, data, watcher) if data.val is None else (data.train, data.val)
    if val is not None and len(val.texts) < _FEW:
        watcher.note(_few(val, task.run))
    check_same_task(data.taxonomy, (train, val), [task.run.to_dict(), task.baselines])
    folder = Path(task.out)
    with training_in(folder):
        if is_main_process():  # another command may have finished its model there meanwhile
            _check_out(folder, task.overwrite)
        besides = BaselineTask(folder, task.run, data.taxonomy, train, val, task.classifier.device)
        baselines = {method: besides.train(method, watcher, resume=resume == "auto") for method in task.baselines}
        classifier = task.classifier.set_params(taxonomy=data.taxonomy)
        classifier.fit_documents(train, val, out=task.out, resume=resume, watcher=watcher)
        settle_baselines(folder, baselines)
    wait_for_all()
    return Trained(task.out, classifier, {name: each for name, each in baselines.items() if each is not None})


def _few(val: Documents, run: Run) -> str:
    """What to expect of few documents."""
    few = f"choices by {counted(len(val.texts), 'validation document')} are mostly chance"
    learns_more = run.encoder_name in (BAG, TFIDF)
    return few if learns_more else f"{few}; of few documents, --method linear or --encoder bag learns more"


def _held_out(run: Run, data: Data, watcher: Watcher) -> tuple[Documents, Documents | None]:
    """Training documents, and those of them that choose the best epoch, as the estimator would hold them out."""
    if not run.training.validation:
        return data.train, None
    train, val = hold_out(data.train, run.training.validation, run.training.seed)
    if val is None:
        watcher.note("there is no --val, and too few documents to hold some out: nothing can be chosen by them")
    else:
        share = f"{len(val.texts):,} of {len(data.train.texts):,} documents"
        verb = "is" if len(val.texts) == 1 else "are"
        watcher.note(f"there is no --val: {share} {verb} held out to choose epoch and decisions by")
    return train, val


def launch(processes: int, out: str, device: str) -> int:
    """Run this command in several processes; the exit code."""
    try:
        return launching.launch(processes, without_option(sys.argv[1:], "--launch"), device)
    except KeyboardInterrupt:
        leave(out)


def leave(out: str) -> NoReturn:
    """End after an interruption, with word of what is saved and how to go on."""
    end_unhurried()
    if not tells_the_end():
        raise typer.Exit(INTERRUPTED)
    state = next((Path(out) / TRAINING).rglob(CHECKPOINT), None)  # of the model, or of a baseline
    if state is None:
        raise KeyboardInterrupt
    say(f"stopped; the state is saved in {state}")
    again = repeat_command(sys.argv[1:])
    say(f"Go on with the same command on all machines: {again}" if has_launcher() else f"Go on with: {again}")
    raise typer.Exit(INTERRUPTED)


def repeat_command(arguments: Sequence[str]) -> str:
    """The command that goes on: the same, less what would begin anew."""
    return command(*without_option(arguments, "--resume"))


def without_option(arguments: Sequence[str], option: str) -> list[str]:
    """The words of a command, less an option and its value."""
    words = list(arguments)
    while option in words:
        at = words.index(option)
        del words[at : at + 2]
    return [word for word in words if not word.startswith(f"{option}=")]


def _tuned_row(classifier: HierarchicalTextClassifier) -> dict[str, Any] | None:
    """What the chosen decisions gave on the validation documents."""
    table = (classifier.decisions_.tuned or {}).get("table", ())
    return next((row for row in table if row["chosen"]), None)


def _decision_rows(trained: Trained) -> Iterator[tuple[str, str]]:
    """How labels are chosen now, and what that gives on the validation documents."""
    row = _tuned_row(trained.classifier)
    if row is None:
        return
    yield "decisions", trained.classifier.decisions_.describe()
    if not (trained.classifier.decisions_.tuned or {}).get("reached", True):
        yield "warning", "no way to decide has the wished precision on the validation documents"
    for name, scores in (("tuned", row), *((name, _tuned_row(each)) for name, each in trained.baselines.items())):
        if scores is not None:
            yield name, f"micro-F1 {scores['micro_f1']:.4f}, macro-F1 {scores['macro_f1']:.4f} on the same documents"


def show_trained(trained: Trained) -> str:
    """A few lines for people."""
    history, chosen = trained.history, trained.history.chosen
    scores = ", ".join(f"{words} {chosen[name]:.4f}" for name, words in SCORES_OF_EPOCHS.items() if name in chosen)
    kind = "best" if "select" in history.best else "last"
    epoch = (f"{kind} epoch", f"{chosen['epoch']:.0f} of {len(history.epochs)}")
    rows = [
        *([epoch] if "loss" in chosen else []),  # some methods have none
        ("validation", f"{scores}, each label above 0.5" if scores else "none"),
        *_decision_rows(trained),
        ("time", f"{history.seconds:,.1f} s of training"),
        ("model", trained.folder),
    ]
    lines = [f"  {name:<12}{printable(value, most=1000)}" for name, value in rows]
    if chosen.get("micro_f1") == 0 and not (_tuned_row(trained.classifier) or {}).get("micro_f1"):
        lines.append("No validation document was given a right label: more documents or epochs may help,")
        lines.append("and --top 3 shows the most probable labels all the same.")
    texts = command("predict", trained.folder)
    return "\n".join(["trained", *lines, "Next:", f'  echo "..." | {printable(texts, most=1000)}'])
