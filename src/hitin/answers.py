"""What is told of a document: its labels, the paths to them and how probable they are. Nothing of torch takes part."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hitin.decisions import Decisions
from hitin.decisions.policies import best_labels
from hitin.documents import Document
from hitin.names import PATH_SEPARATOR
from hitin.taxonomy import Taxonomy

if TYPE_CHECKING:
    from hitin.decisions.best import Found
    from hitin.estimator import HierarchicalTextClassifier, ScoredTexts
    from hitin.model import Advance

Probabilities = NDArray[np.float32]
Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Answers:
    """What is told of each document."""

    classifier: "HierarchicalTextClassifier"
    top: int = 0
    """The most probable labels that are told besides, whether given or not."""
    all_scores: bool = False
    with_text: bool = False
    deepest: bool = False
    """Whether the ancestors of what is given are left out."""
    decisions: Decisions | None = None
    """How labels are chosen, where not as the model has it."""
    digits: int = 4
    """Of probabilities, those that count."""
    _paths: dict[int, str] = field(default_factory=dict)

    def scores(self, prepared: Any, advance: "Advance | None" = None) -> "Logits | list[Found]":
        """What `of` is told of documents, from what the model has `prepared`: logits, or decisions on the best labels
        where very many others need not be known."""
        model = self.classifier.model_
        found = None
        if not (self.top or self.all_scores):
            found = model.best(prepared, self.decisions or self.classifier.decisions_, advance)
        return model.prepared_logits(prepared, advance) if found is None else found

    def of(self, documents: list[Document], scores: "Logits | list[Found]") -> list[dict[str, Any]]:
        """A record for each document."""
        if isinstance(scores, list):
            return [self._best_record(*each) for each in zip(documents, scores, strict=True)]
        return self.records(documents, self.classifier.decided(scores, self.decisions))

    def records(self, documents: list[Document], scored: "ScoredTexts") -> list[dict[str, Any]]:
        """`of`, where it is known what was decided."""
        return [self._record(*each) for each in zip(documents, *scored, strict=True)]

    @property
    def taxonomy(self) -> Taxonomy:
        return self.classifier.taxonomy_

    def _record(
        self, document: Document, probabilities: Probabilities, chosen: NDArray[np.bool_], stopped: NDArray[np.bool_]
    ) -> dict[str, Any]:
        labels = np.flatnonzero(chosen).tolist()  # labels are numbered from the top down
        record = self._begun(document, labels)
        record["scores"] = self._scores(range(len(probabilities)) if self.all_scores else labels, probabilities)
        if stopped.any():
            record["unsure"] = self._scores(np.flatnonzero(stopped).tolist(), probabilities)
        if self.top:
            record["top"] = self._scores(best_labels(probabilities[None], self.top)[0].tolist(), probabilities)
        return record

    def _best_record(self, document: Document, found: "Found") -> dict[str, Any]:
        probabilities = dict(zip(found.labels.tolist(), found.probabilities.tolist(), strict=True))
        labels = found.labels[found.given].tolist()
        record = self._begun(document, labels)
        record["scores"] = self._scores(labels, probabilities)
        if found.stopped.any():
            record["unsure"] = self._scores(found.labels[found.stopped].tolist(), probabilities)
        return record

    def _begun(self, document: Document, labels: list[int]) -> dict[str, Any]:
        """A record, but for how probable its labels are."""
        ends = self.taxonomy.deepest(self.taxonomy.closure(labels))
        record: dict[str, Any] = {} if document.id is None else {"id": document.id}
        if self.with_text:
            record["text"] = document.text
        record["labels"] = [self.taxonomy.labels[label] for label in (ends if self.deepest else labels)]
        record["paths"] = [self._path(label) for label in ends]
        return record

    def _scores(self, labels: Iterable[int], probabilities: Probabilities | Mapping[int, float]) -> dict[str, float]:
        return {self.taxonomy.labels[label]: float(f"{probabilities[label]:.{self.digits}g}") for label in labels}

    def _path(self, label: int) -> str:
        if label not in self._paths:
            self._paths[label] = path_of(self.taxonomy, label)
        return self._paths[label]


def path_of(taxonomy: Taxonomy, label: int) -> str:
    """`A > B > C`: from the top to a label, by the first parent where there are several."""
    numbers = [label]
    while len(parents := taxonomy.parents(numbers[-1])):
        numbers.append(int(parents[0]))
    path = ""
    for name in (taxonomy.labels[number] for number in reversed(numbers)):
        is_whole = not path or name.startswith(path + PATH_SEPARATOR)  # a label may be called by its whole path
        path = name if is_whole else path + PATH_SEPARATOR + name
    return path
