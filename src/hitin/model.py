"""`Model`: from documents to logits. What every kind of model has, whatever it is made of."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hitin.inputs import Documents
from hitin.taxonomy import Taxonomy

if TYPE_CHECKING:
    from hitin.decisions import Decisions
    from hitin.decisions.best import Found
    from hitin.settings import Run
    from hitin.training.progress import History
    from hitin.watcher import Watcher

DOCUMENTS_AT_ONCE = 4096
"""That are scored together, at most."""
_CELLS = 1 << 22  # probabilities held at once

Advance = Callable[[int], None]
"""Told how many more documents are done."""


class Model(ABC):
    """What a method has learnt, with what it takes to use it."""

    taxonomy: Taxonomy
    run: "Run"

    FILES: ClassVar[tuple[str, ...]] = ()
    """The text files that make up its folder, beside what all models have."""
    SOME_FILES: ClassVar[tuple[str, ...]] = ()
    """Those that only some models of the kind have."""

    @classmethod
    @abstractmethod
    def check_needs(cls, run: "Run") -> None:
        """Tell what has to be installed first, before anything is read."""

    @classmethod
    @abstractmethod
    def trained(
        cls,
        taxonomy: Taxonomy,
        run: "Run",
        given: Documents,
        held: Documents | None,
        *,
        folder: Path,
        device: str,
        resume: bool,
        resumable: bool,
        watcher: "Watcher",
    ) -> "tuple[Self, History]":
        """Trained on the documents `given`, with those `held` for validation, and how it went.

        `folder` is for what the training keeps: its log, and where it can be interrupted (`resumable`) the state from
        which it goes on (`resume`). What it has no use for, a kind of model may leave aside.
        """

    @abstractmethod
    def logits(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(documents, |Y|)"""

    def prepared(self, texts: Sequence[str]) -> Any:
        """What can be done with texts while others are scored, such as finding their tokens."""
        return texts

    def prepared_logits(self, prepared: Any, advance: Advance | None = None) -> NDArray[np.float32]:
        """`logits`, of what `prepared` gave."""
        logits = self.logits(prepared)
        if advance:
            advance(len(logits))
        return logits

    def best(self, prepared: Any, decisions: "Decisions", advance: Advance | None = None) -> "list[Found] | None":  # noqa: ARG002
        """What is decided of each document by its best labels alone; `None` where all logits have to be known."""
        return None

    @abstractmethod
    def to(self, device: torch.device) -> None:
        """Compute there from now on, where that is something to choose."""

    @abstractmethod
    def tensors(self) -> Mapping[str, Tensor]:
        """All that is learnt, by name."""

    @abstractmethod
    def texts(self) -> dict[str, str]:
        """What stands in each of its text files."""

    @classmethod
    @abstractmethod
    def restored(cls, taxonomy: Taxonomy, run: "Run", tensors: Mapping[str, Tensor], files: Mapping[str, Path]) -> Self:
        """The model that was saved as these tensors and text files. What does not fit is told with the file's name."""


def documents_at_once(taxonomy: Taxonomy, most: int = DOCUMENTS_AT_ONCE) -> int:
    """How many documents are scored together, their probabilities held at once: fewer where labels are very many."""
    return max(1, min(most, _CELLS // len(taxonomy)))
