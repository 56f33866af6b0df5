"""A trained model for use, with what the command line says about its decisions."""

from dataclasses import replace
from pathlib import Path

from hitin.decisions import Policy
from hitin.errors import InputError
from hitin.estimator import HierarchicalTextClassifier
from hitin.model_folder import TRAINING
from hitin.training.checkpoint import load_tensors
from hitin.training.kept_weights import best_path


def load_classifier(
    folder: str,
    *,
    device: str = "auto",
    policy: Policy | None = None,
    threshold: float | None = None,
    best: str | None = None,
) -> HierarchicalTextClassifier:
    """The model of a folder; `best` takes the weights of the epoch that was best by micro or macro instead."""
    classifier = HierarchicalTextClassifier.load(folder, device=device)
    if best is not None:
        _take_weights(classifier, best_path(Path(folder) / TRAINING, best))
    if policy is not None:
        classifier.decisions_ = replace(classifier.decisions_, policy=policy)
    if threshold is not None:
        classifier.decisions_ = replace(classifier.decisions_, threshold=threshold)
    return classifier


def _take_weights(classifier: HierarchicalTextClassifier, path: Path) -> None:
    if not path.is_file():
        raise InputError(
            "the weights of that epoch are not here",
            kind="missing-file",
            file=str(path),
            remedy="They are there after a training with validation documents. Leave out --best.",
        )
    network = classifier.model_.network
    try:
        network.load_state_dict(load_tensors(path)[0])
    except RuntimeError as error:
        raise InputError(
            "these are the weights of another model", kind="damaged-model", file=str(path), remedy="Leave out --best."
        ) from error
