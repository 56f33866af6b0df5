"""What training tells while it goes: lines of JSON in a file, events for TensorBoard, and whoever watches."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hitin.extras import need
from hitin.model import Advance

LOG = "log.jsonl"
_EVERY = 20  # steps between lines


class Watcher:
    """Told how training goes; this one does not care."""

    def note(self, message: str) -> None:
        """Something that a person should know."""

    @contextmanager
    def counting(self, what: str, documents: int) -> Iterator[Advance]:  # noqa: ARG002
        """Around work that is not training; what it yields is told how many more documents are done."""
        yield lambda _: None

    def begin(self, epochs: int, documents: int, epochs_done: int, documents_done: int) -> None:
        """Before the first step: how much there is to do, `documents` an epoch, and what was done before."""

    def step(self, documents: int, loss: float) -> None:
        """After each step, over so many documents."""

    def epoch(self, record: dict[str, float], is_best: bool) -> None:
        """After each epoch: its number, the loss, and the scores on validation documents."""


class TrainingLog:
    """`log.jsonl`: a line every few steps and one an epoch. It can be rewound to a checkpoint."""

    def __init__(self, folder: Path, *, tensorboard: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / LOG
        self._path.touch()
        self._file = self._path.open("r+b")
        self._steps = 0
        self._board: Any = None
        if tensorboard:
            board = need("torch.utils.tensorboard", extra="tensorboard", purpose="Writing events for TensorBoard")
            self._board = board.SummaryWriter(str(folder / "tensorboard"))

    def rewind(self, size: int) -> None:
        """Back to a size: what was written after a checkpoint will be written again."""
        self._file.truncate(size)
        self._file.seek(0, os.SEEK_END)

    def step(self, batch: int, epoch: int, loss: float, rate: float) -> None:
        self._steps += 1
        if self._steps % _EVERY == 1:
            self._write({"batch": batch, "epoch": epoch, "loss": round(loss, 8), "learning_rate": rate})
            self._events(batch, {"loss": loss, "learning_rate": rate})

    def epoch(self, batch: int, record: dict[str, float]) -> None:
        self._write({"batch": batch, **record})
        self._events(batch, {f"epoch/{name}": value for name, value in record.items() if name != "epoch"})

    def flush(self) -> int:
        """The size of the file, all of it written."""
        self._file.flush()
        return self._file.tell()

    def close(self) -> None:
        self._file.close()
        if self._board:
            self._board.close()

    def _write(self, record: dict[str, Any]) -> None:
        self._file.write(json.dumps(record).encode() + b"\n")

    def _events(self, batch: int, values: dict[str, float]) -> None:
        if self._board:
            for name, value in values.items():
                self._board.add_scalar(name, value, batch)
