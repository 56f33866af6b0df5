"""Whoever watches a training or other long work."""

from collections.abc import Iterator
from contextlib import contextmanager

from hitin.model import Advance


class Watcher:
    """Told how training goes; this one does not care."""

    def note(self, message: str) -> None:
        """Something that a person should know."""

    @contextmanager
    def counting(self, what: str, total: int, unit: str = "documents") -> Iterator[Advance]:  # noqa: ARG002
        """Around work that is not training; what it yields is told how many more documents, or `unit`, are done."""
        yield lambda _: None

    def begin(self, epochs: int, documents: int, epochs_done: int, documents_done: int) -> None:
        """Before the first step: how much there is to do, `documents` an epoch, and what was done before."""

    def step(self, documents: int, loss: float) -> None:
        """After each step: over how many documents, and the loss for one, as it was a few steps ago."""

    def epoch(self, record: dict[str, float], is_best: bool) -> None:
        """After each epoch: its number, the loss, and the scores on validation documents."""
