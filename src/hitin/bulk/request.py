"""What is asked of every shard: which model, how it decides, what is told."""

from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from hitin.answering import Texts
from hitin.answers import Answers
from hitin.bulk.shards import AnswerFormat
from hitin.estimator import HierarchicalTextClassifier
from hitin.export.folder import PLAIN, SMALL
from hitin.export.model import OnnxModel
from hitin.loading import Deciding, load_classifier
from hitin.model_folder import fingerprint_of


@dataclass(frozen=True)
class Request:
    """As the options of `hitin predict`."""

    model: str
    """The folder."""
    deciding: Deciding = field(default_factory=Deciding)
    """How labels are chosen, where not as the model has it."""
    top: int = 0
    all_scores: bool = False
    with_text: bool = False
    deepest: bool = False
    format: str = "auto"
    """Of the documents; also `text`: a text a line."""
    text_key: str | None = None
    encoding: str | None = None
    to: AnswerFormat = "auto"
    runtime: str = "auto"
    device: str = "auto"

    def load(self, *, device: str | None = None) -> Answers:
        """The model, ready to answer."""
        classifier = load_classifier(self.model, self.deciding, device=device or self.device, runtime=self.runtime)
        return Answers(classifier, self.top, self.all_scores, self.with_text, self.deepest)

    def texts(self, answers: Answers) -> Texts:
        return Texts(answers.taxonomy, self.format, self.text_key, self.encoding)

    def identity(self, answers: Answers) -> dict[str, Any]:
        """Equal for what gives the same answers, in plain values. Where it is computed makes no difference."""
        classifier = answers.classifier
        told = ("top", "all_scores", "with_text", "deepest", "format", "text_key", "encoding", "to")
        return {
            "model": _fingerprint(self.model, classifier),
            "runtime": _runtime(classifier),
            "decisions": sha256(classifier.decisions_.to_json().encode()).hexdigest(),
            "options": {name: value for name, value in asdict(self).items() if name in told},
        }

    def absolute(self) -> "Request":
        """The same for a process that stands in another folder."""
        return replace(self, model=str(Path(self.model).absolute()))


def _fingerprint(folder: str, classifier: HierarchicalTextClassifier) -> str:
    model = classifier.model_
    return model.made_from if isinstance(model, OnnxModel) else fingerprint_of(Path(folder))


def _runtime(classifier: HierarchicalTextClassifier) -> str:
    model = classifier.model_
    return (SMALL if model.int8 else PLAIN) if isinstance(model, OnnxModel) else "torch"
