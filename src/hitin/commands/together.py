"""Several processes that speak with one voice: what goes wrong in one of them is told once, and ends all."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import typer

from hitin.console import CANNOT_BE_READ, INTERRUPTED
from hitin.devices import accelerated, is_main_process
from hitin.errors import HitinError, first_line
from hitin.launching import LOST, has_launcher, is_launched
from hitin.settings import TrainingSettings

_SIGNS = ("connection closed", "connection reset", "connection refused", "broken pipe", "gloo", "nccl", "socket")
"""What errors of torch say where another process does not answer any more."""


@contextmanager
def together(device: str) -> Iterator[None]:
    """Join the processes that a launcher has started, if there is one; of all that fail, one raises its error.

    The others exit without a word.
    """
    if not has_launcher():
        yield
        return
    try:
        with accelerated(device, TrainingSettings()):
            pass  # from here on they know each other
        yield
        torch.distributed.destroy_process_group()
    except HitinError as error:
        if not _is_first():
            raise typer.Exit(CANNOT_BE_READ) from error
        raise
    except KeyboardInterrupt:
        if tells_the_end():
            raise
        raise typer.Exit(INTERRUPTED) from None
    except RuntimeError as error:
        if not is_loss(error):
            raise
        if is_launched() or not _is_first():
            raise typer.Exit(LOST) from error
        raise _lost(error) from error


def tells_the_end() -> bool:
    """Whether it is this process that tells of an interruption: the main one, unless it was started by one of ours."""
    return is_main_process() and not is_launched()


def is_loss(error: RuntimeError) -> bool:
    """Whether another process does not answer."""
    said = str(error).lower()
    return isinstance(error, torch.distributed.DistError) or any(sign in said for sign in _SIGNS)


def _is_first() -> bool:
    """Whether no other process has told of an error yet. Before they know each other, one on each machine tells."""
    if not torch.distributed.is_initialized():
        return os.environ.get("LOCAL_RANK", "0") == "0"
    try:
        told: int = torch.distributed.distributed_c10d._get_default_store().add("hitin/told", 1)
    except RuntimeError:  # the store has gone with another process
        return True
    return told == 1


def _lost(error: RuntimeError) -> HitinError:
    return HitinError(
        f"another process of this training has ended ({first_line(error)}), and so does this one.\n"
        "What was saved stays: the same commands on all machines go on with it."
    )
