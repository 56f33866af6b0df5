"""A trained model for use, with what the command line says about its decisions."""

from dataclasses import dataclass
from pathlib import Path

from hitin.commands.console import say
from hitin.decisions import Decisions, Policy
from hitin.decisions.policies import WITH_THRESHOLDS
from hitin.errors import InputError
from hitin.estimator import HierarchicalTextClassifier
from hitin.model_folder import TRAINING
from hitin.neural import NeuralModel
from hitin.training.checkpoint import load_tensors
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
        found = decisions.uncalibrated() if self.uncalibrated else decisions
        policy = self.policy
        if self.threshold is not None and policy is None and found.policy not in WITH_THRESHOLDS:
            say(f"the policy {found.policy} has no threshold: --policy consistent is taken")
            policy = "consistent"
        return found.with_options(policy=policy, threshold=self.threshold, k=self.k, stop=self.stop)


def load_classifier(
    folder: str, deciding: Deciding | None = None, *, device: str = "auto", best: str | None = None
) -> HierarchicalTextClassifier:
    """The model of a folder; `best` takes the weights of the epoch that was best by micro or macro instead."""
    classifier = HierarchicalTextClassifier.load(folder, device=device)
    if best is not None:
        _take_weights(classifier, best_path(Path(folder) / TRAINING, best))
        if best != SELECT and classifier.decisions_.tuned:
            say("decisions were tuned for the model's own weights, not for those of --best")
    classifier.decisions_ = (deciding or Deciding()).changed(classifier.decisions_)
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
        model.network.fill(load_tensors(path)[0])
    except RuntimeError as error:
        raise InputError(
            "these are the weights of another model", kind="damaged-model", file=str(path), remedy="Leave out --best."
        ) from error
