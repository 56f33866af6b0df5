"""The weights that a training run keeps: those of the epochs that are best by some score.

While it goes they are called by their epoch, so that a checkpoint always finds what it speaks of; in the end, by the
score.
"""

import os
import shutil
from collections.abc import Collection
from pathlib import Path

from torch import nn

from hitin.tensor_files import load_tensors, save_tensors
from hitin.training.checkpoint import ANEW, frozen_weights, load_weights, trained_weights
from hitin.training.progress import Progress
from hitin.writing import replacing

_EPOCHS = "epoch-*.safetensors"
_BESTS = "best-*.safetensors"


def best_path(folder: Path, name: str) -> Path:
    """Where a finished run has the weights of the epoch that was best by `select`, `micro` or `macro`."""
    return folder / _BESTS.replace("*", name)


def weights_path(folder: Path, epoch: int) -> Path:
    """Where a run under way has the weights of an epoch that is the best by some score so far."""
    return folder / _EPOCHS.replace("*", str(epoch))


def kept_weights(folder: Path) -> list[Path]:
    """All files of this kind in a folder, which a training may remove."""
    return sorted(path for pattern in (_EPOCHS, _BESTS) for path in folder.glob(pattern))


def keep_only(folder: Path, epochs: Collection[int]) -> None:
    """Remove the weights of epochs that are no longer the best."""
    _remove(folder, _EPOCHS, {weights_path(folder, epoch) for epoch in epochs})


def remove_bests(folder: Path) -> None:
    """Remove what an earlier run found best."""
    _remove(folder, _BESTS, set())


def load_epoch(folder: Path, epoch: int, network: nn.Module) -> None:
    """Give the network the weights of an epoch."""
    path = weights_path(folder, epoch)
    found, _ = load_tensors(path, kind="damaged-checkpoint", remedy=ANEW)
    load_weights(network, found)


def save_epoch(folder: Path, epoch: int, network: nn.Module, *, writes: bool = True) -> None:
    """Keep the weights that an epoch ended with. Where processes share the network, all ask for it and one writes."""
    weights = trained_weights(network)
    if writes:
        save_tensors(weights_path(folder, epoch), weights)


def name_bests(folder: Path, progress: Progress, network: nn.Module) -> None:
    """Call the weights by their scores, and put those to them that were not trained."""
    frozen = frozen_weights(network)
    for name, epoch in progress.best.items():
        path = weights_path(folder, epoch)
        if frozen:
            save_tensors(best_path(folder, name), frozen | load_tensors(path)[0])
            continue
        with replacing(best_path(folder, name)) as part:
            try:
                os.link(path, part)
            except OSError:  # a file system without links
                shutil.copyfile(path, part)


def _remove(folder: Path, pattern: str, kept: set[Path]) -> None:
    for path in set(folder.glob(pattern)) - kept:
        path.unlink(missing_ok=True)
