"""Going on with a training: its state is read by the main process, and sent to the others."""

import json
from pathlib import Path

from hitin.devices import is_main_process, share_tensors, share_text
from hitin.errors import InputError
from hitin.training.checkpoint import CHECKPOINT, Checkpoint, damaged_checkpoint, load_checkpoint
from hitin.training.kept_weights import weights_path
from hitin.training.progress import Progress
from hitin.training.steps import Steps


def resumed(folder: Path, begun: Progress, steps: Steps, *, resume: bool) -> Progress | None:
    """How far the run in a folder has come, its weights and the state of its optimiser restored; or `None`.

    The folder need not be there but for the main process.
    """
    found = None
    if is_main_process() and resume and (folder / CHECKPOINT).is_file():
        found = _read(folder, begun)
    checkpoint = _shared(found)
    if checkpoint is None:
        return None
    try:
        checkpoint.restore(steps.network, steps.optimiser)
        return Progress(**checkpoint.progress)
    except (TypeError, ValueError, KeyError, IndexError, RuntimeError) as error:
        raise _of_another_version(folder) from error


def _read(folder: Path, begun: Progress) -> Checkpoint:
    """The checkpoint of the same run, with all that it speaks of."""
    checkpoint = load_checkpoint(folder / CHECKPOINT)
    try:
        found = Progress(**checkpoint.progress)
    except TypeError as error:
        raise _of_another_version(folder) from error
    if found.fingerprint != begun.fingerprint:
        raise InputError(
            "the folder holds an unfinished training with other settings or other documents",
            kind="other-run",
            file=str(folder),
            remedy="Repeat the command that began it, choose another folder, or begin anew with --resume never.",
        )
    for epoch in found.best.values():
        if not weights_path(folder, epoch).is_file():
            raise damaged_checkpoint(weights_path(folder, epoch), "the weights of the best epoch are missing")
    return checkpoint


def _shared(checkpoint: Checkpoint | None) -> Checkpoint | None:
    """That of the main process, in every process."""
    text = share_text(json.dumps(checkpoint.progress) if checkpoint else "")
    if not text:
        return None
    return Checkpoint.of(json.loads(text), share_tensors(checkpoint.tensors() if checkpoint else {}))


def _of_another_version(folder: Path) -> InputError:
    return damaged_checkpoint(folder / CHECKPOINT, "the checkpoint was written by another version of hitin")
