"""Too little memory for a training, told with what takes less."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from hitin.errors import InputError, first_line, printable
from hitin.settings import Run

_SIGNS = ("out of memory", "can't allocate memory", "not enough memory", "alloc_failed", "size calculation overflowed")
"""What errors of torch say that have no kind of their own: of the CPU, of Apple's GPU, of libraries of a GPU."""
_WANTED = re.compile(r"allocate (\d+(?:\.\d+)?) ?([a-z]+)", re.IGNORECASE)


@contextmanager
def shortage_told(run: Run, checkpoint: Path | None = None) -> Iterator[None]:
    """Turn what is raised within for want of memory into words; `checkpoint` is where a training may be saved."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not is_shortage(error):
            raise
        raise _shortage(run, error, is_saved=checkpoint is not None and checkpoint.is_file()) from error


def is_shortage(error: Exception) -> bool:
    """Whether there was too little memory, of the machine or of its GPU."""
    said = str(error).lower()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(sign in said for sign in _SIGNS)


def _shortage(run: Run, error: Exception, *, is_saved: bool) -> InputError:
    sizes = ((run.training, "batch_size"), (run.encoder, "max_length"), (run.method, "width"))
    larger = [f"{name} below {value}" for settings, name in sizes if (value := getattr(settings, name, 0)) > 1]
    remedy = f"Set {' or '.join(larger)}, or choose another method or text encoder."
    remedy += (
        "\nWith a smaller batch_size and an accumulate that makes up for it, steps have as many documents as before."
    )
    if is_saved:
        remedy += "\nThe training is saved: once there is more memory, the same command goes on with it."
    problem = f"there is not enough memory to train {run.method_name} with {run.encoder_name} ({_in_words(error)})"
    return InputError(problem, kind="no-memory", remedy=remedy)


def _in_words(error: Exception) -> str:
    """`20.00 GiB more were wanted`, or what else the error says."""
    found = _WANTED.search(str(error))
    if found is None:
        return printable(first_line(error))
    amount, unit = found.groups()
    wanted = f"{float(amount) / 1e9:,.1f} GB" if unit == "bytes" else f"{amount} {unit}"
    return f"{wanted} more were wanted"
