"""Batches that are made ahead, by a thread of its own, while a GPU computes."""

from collections.abc import Generator, Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

import torch

from hitin.ahead import Workers
from hitin.batches import Batch, Examples, Rows

_AHEAD = 4  # batches that wait


class Source(Protocol):
    """Where batches come from."""

    def batch(self, rows: Rows) -> Batch:
        """These documents."""
        ...


class Feed:
    """The batches that are going to be wanted, in this order; on the CPU each is made when it is."""

    def __init__(self, examples: Examples, wanted: Sequence[Rows], device: torch.device) -> None:
        self.examples, self.wanted = examples, wanted
        self.is_ahead = device.type == "cuda"
        self.workers = Workers()
        self.made: Iterator[Batch] = iter(())

    def __enter__(self) -> Self:
        if self.is_ahead:
            self.made = self.workers.ahead(self._pinned(), most=_AHEAD)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.workers.__exit__(kind, error, trace)

    def batch(self, rows: Rows) -> Batch:
        """The next of those that were announced."""
        return next(self.made) if self.is_ahead else self.examples.batch(rows)

    def _pinned(self) -> Generator[Batch]:
        for rows in self.wanted:
            yield self.examples.batch(rows).pinned()
