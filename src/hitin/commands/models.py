"""A trained model for use, with what the command line says about its decisions."""

from dataclasses import asdict, dataclass
from pathlib import Path

from hitin.decisions import Policy
from hitin.errors import InputError
from hitin.estimator import HierarchicalTextClassifier
from hitin.model_folder import TRAINING
from hitin.neural import NeuralModel
from hitin.training.checkpoint import load_tensors
from hitin.training.kept_weights import best_path


@dataclass(frozen=True)
class Deciding:
    """How labels are to be chosen, where the command line says otherwise than the model."""

    policy: Policy | None = None
    threshold: float | None = None
    k: int | None = None
    stop: float | None = None


def load_classifier(
    folder: str, deciding: Deciding | None = None, *, device: str = "auto", best: str | None = None
) -> HierarchicalTextClassifier:
    """The model of a folder; `best` takes the weights of the epoch that was best by micro or macro instead."""
    classifier = HierarchicalTextClassifier.load(folder, device=device)
    if best is not None:
        _take_weights(classifier, best_path(Path(folder) / TRAINING, best))
    classifier.decisions_ = classifier.decisions_.with_options(**asdict(deciding or Deciding()))
    return classifier


def _take_weights(classifier: HierarchicalTextClassifier, path: Path) -> None:
    model = classifier.model_
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
        model.network.load_state_dict(load_tensors(path)[0])
    except RuntimeError as error:
        raise InputError(
            "these are the weights of another model", kind="damaged-model", file=str(path), remedy="Leave out --best."
        ) from error
