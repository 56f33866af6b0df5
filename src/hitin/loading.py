"""A trained model for use, with what the command line says about its decisions."""

from dataclasses import dataclass
from pathlib import Path

from hitin.console import command, say
from hitin.decisions import Decisions, Policy
from hitin.errors import InputError
from hitin.estimator import HierarchicalTextClassifier
from hitin.export.folder import PLAIN, SMALL, is_export, read_manifest, usual_folder
from hitin.export.model import OnnxModel
from hitin.model_folder import TRAINING, fingerprint_of
from hitin.neural import NeuralModel
from hitin.tensor_files import load_tensors
from hitin.training.kept_weights import best_path
from hitin.training.progress import SELECT


@dataclass(frozen=True)
class Deciding:
    """How labels are to be chosen, where the command line says otherwise than the model."""

    policy: Policy | None = None
    threshold: float | None = None
    k: int | None = None
    stop: float | None = None
    uncalibrated: bool = False
    """Whether the model's own probabilities are wanted."""

    def changed(self, decisions: Decisions) -> Decisions:
        """What the model has, with these changes."""
        before = decisions.uncalibrated() if self.uncalibrated else decisions
        found = before.with_options(policy=self.policy, threshold=self.threshold, k=self.k, stop=self.stop)
        if self.policy is None and found.policy != before.policy:
            say(f"the policy {before.policy} has no threshold: --policy {found.policy} is taken")
        return found


def load_classifier(
    folder: str,
    deciding: Deciding | None = None,
    *,
    device: str = "auto",
    best: str | None = None,
    runtime: str = "auto",
) -> HierarchicalTextClassifier:
    """The model of a folder; `best` takes the weights of the epoch that was best by micro or macro instead."""
    classifier = _loaded(Path(folder), device, runtime)
    if best is not None:
        _take_weights(classifier, best_path(Path(folder) / TRAINING, best))
        if best != SELECT and classifier.decisions_.tuned:
            say("decisions were tuned for the model's own weights, not for those of --best")
    classifier.decisions_ = (deciding or Deciding()).changed(classifier.decisions_)
    return classifier


def _loaded(folder: Path, device: str, runtime: str) -> HierarchicalTextClassifier:
    if is_export(folder):
        _check_runtime(folder, runtime)
    elif runtime in (PLAIN, SMALL):
        exported = usual_folder(folder, int8=runtime == SMALL)
        _check_export(folder, exported, runtime)
        return HierarchicalTextClassifier.load_export(exported, device=device, model_folder=folder)
    return HierarchicalTextClassifier.load(folder, device=device)


def _check_runtime(folder: Path, runtime: str) -> None:
    """An exported model can only be run as what it is."""
    is_small = read_manifest(folder).int8
    if runtime == "torch" or (runtime == SMALL) > is_small or (runtime == PLAIN and is_small):
        raise InputError(
            f"this is a model exported as {SMALL if is_small else PLAIN}, which --runtime {runtime} cannot be",
            kind="bad-option",
            file=str(folder),
            remedy="Leave out --runtime, or name the folder of the model that it was made from.",
        )


def _check_export(model: Path, exported: Path, runtime: str) -> None:
    """The export of a model must be there, and be of what the model is now."""
    now = fingerprint_of(model)
    again = command("export", model, "--to", "onnx", *(["--int8"] if runtime == SMALL else []))
    if not is_export(exported):
        raise InputError(
            f"the model has not been exported for --runtime {runtime}",
            kind="no-export",
            file=str(exported),
            remedy=f"Run: {again}",
        )
    found = read_manifest(exported)
    if found.int8 != (runtime == SMALL):
        raise InputError(
            f"what lies here was exported as {SMALL if found.int8 else PLAIN}, which --runtime {runtime} cannot be",
            kind="bad-option",
            file=str(exported),
            remedy=f"Run again: {again}",
        )
    if found.model != now:
        raise InputError(
            "this was exported from another model: the one in the folder has been trained since",
            kind="stale-export",
            file=str(exported),
            remedy=f"Run again: {again}",
        )


def _take_weights(classifier: HierarchicalTextClassifier, path: Path) -> None:
    model = classifier.model_
    if isinstance(model, OnnxModel):
        raise InputError(
            "an exported model has its own weights alone", kind="bad-option", remedy="Leave out --best, or --runtime."
        )
    if not isinstance(model, NeuralModel):
        raise InputError(
            f"the method {model.run.method_name} has no epochs", kind="bad-option", remedy="Leave out --best."
        )
    if not path.is_file():
        raise InputError(
            "the weights of that epoch are not here",
            kind="missing-file",
            file=str(path),
            remedy="They are there after a training with validation documents. Leave out --best.",
        )
    try:
        model.network.fill(load_tensors(path)[0])
    except RuntimeError as error:
        raise InputError(
            "these are the weights of another model", kind="damaged-model", file=str(path), remedy="Leave out --best."
        ) from error
