"""What training writes down while it goes: lines of JSON in a file, and events for TensorBoard."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from hitin.extras import need
from hitin.writing import unwritable

LOG = "log.jsonl"
EVERY = 20
"""Steps between lines."""
_BEGINNING = b'{"batch": '
"""Of every line."""


def is_log(path: Path) -> bool:
    """Whether a file is a training's log, as far as its first bytes tell: a full disk may have cut it short."""
    if not path.is_file():  # a pipe would be waited for
        return False
    with path.open("rb") as file:
        return _BEGINNING.startswith(file.read(len(_BEGINNING)))


class TrainingLog:
    """`log.jsonl`: a line every `EVERY` steps and one an epoch. It can be rewound to a checkpoint."""

    def __init__(self, folder: Path, *, tensorboard: bool = False, writes: bool = True) -> None:
        """`writes` is false in the processes beside the main one."""
        if tensorboard:
            need("tensorboard", extra="tensorboard", purpose="Writing events for TensorBoard")
        self._folder = folder
        self._wants_board = tensorboard and writes
        self._board: Any = None
        self._file: IO[bytes] = BytesIO()
        if writes:
            with self._telling():
                folder.mkdir(parents=True, exist_ok=True)
                (folder / LOG).touch()
                self._file = (folder / LOG).open("r+b")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._telling():
            self._file.close()
        if self._board:
            self._board.close()

    def rewind(self, size: int, batch: int) -> None:
        """Back to a size, at a batch: what was written after a checkpoint will be written again."""
        with self._telling():
            self._file.truncate(min(size, self._file.seek(0, os.SEEK_END)))
            self._file.seek(0, os.SEEK_END)
        if self._wants_board:
            from torch.utils.tensorboard import SummaryWriter

            self._board = SummaryWriter(str(self._folder / "tensorboard"), purge_step=batch + 1)

    def step(self, batch: int, epoch: int, loss: float, rate: float) -> None:
        """`batch` batches are done; the loss is the mean since the last line."""
        self._write({"batch": batch, "epoch": epoch, "loss": round(loss, 8), "learning_rate": rate})
        self._events(batch, {"loss": loss, "learning_rate": rate})

    def epoch(self, batch: int, record: dict[str, float]) -> None:
        self._write({"batch": batch, **record})
        self._events(batch, {f"epoch/{name}": value for name, value in record.items() if name != "epoch"})

    def size(self) -> int:
        """How much there is of the file."""
        return self._file.tell()

    def _write(self, record: dict[str, Any]) -> None:
        with self._telling():
            self._file.write(json.dumps(record).encode() + b"\n")
            self._file.flush()  # someone may be reading along

    def _events(self, batch: int, values: dict[str, float]) -> None:
        if self._board:
            for name, value in values.items():
                self._board.add_scalar(name, value, batch)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise unwritable(self._folder / LOG, error) from error
