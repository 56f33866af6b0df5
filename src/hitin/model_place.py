"""Whether a folder may become that of a model, and who trains there: what others have there is not replaced."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hitin.devices import is_main_process
from hitin.errors import InputError
from hitin.locking import LOCK, is_lock, locked_for_now
from hitin.model_folder import BASELINES, CARD, DECISIONS, FILES, MANIFEST, TRAINING, WEIGHTS
from hitin.tensor_files import is_ours
from hitin.training.checkpoint import CHECKPOINT
from hitin.training.kept_weights import kept_weights
from hitin.training.log import LOG, is_log
from hitin.trust import unique_json
from hitin.validation_scores import FILE as VALIDATION
from hitin.writing import check_writable

BEGUN = "begun.json"
"""In the folder of a baseline under way: on what it is trained."""


@contextmanager
def training_in(folder: Path) -> Iterator[None]:
    """Keep other trainings out of a model's folder until the model is there. Of several processes, one asks for it."""
    if not is_main_process():
        yield
        return
    with locked_for_now(folder / TRAINING, "training"):
        yield


def check_place(folder: Path) -> None:
    """Refuse a folder that is no model, nor one in training or half saved, for what a model there would replace."""
    check_writable(folder / MANIFEST)
    taken = None if _is_ours(folder) else next(_in_the_way(folder), None)
    if taken is not None:
        raise InputError(
            "this belongs to no model, and a model in this folder would replace or remove it",
            kind="file-exists",
            file=str(taken),
            remedy="Choose another folder, such as a new one.",
        )


def _is_ours(folder: Path) -> bool:
    """Whether there is a model, perhaps a damaged one, or what a kill left of its training or saving."""
    begun = (folder / TRAINING / CHECKPOINT, folder / BEGUN)
    return _is_manifest(folder / MANIFEST) or is_ours(folder / WEIGHTS) or any(path.is_file() for path in begun)


def _is_manifest(path: Path) -> bool:
    try:
        return path.is_file() and "hitin" in unique_json(path.read_bytes())
    except (OSError, ValueError, TypeError, RecursionError):
        return False


def _in_the_way(folder: Path) -> Iterator[Path]:
    """What a training would replace or remove, and no earlier one has left there."""
    for name in (MANIFEST, *FILES, DECISIONS, CARD, VALIDATION, BASELINES):
        if _is_there(folder / name):
            yield folder / name
    training = folder / TRAINING
    if _is_there(training) and not training.is_dir():
        yield training
    if _is_there(training / LOG) and not (training / LOG).is_dir() and not is_log(training / LOG):
        yield training / LOG
    if _is_there(training / LOCK) and not is_lock(training / LOCK):
        yield training / LOCK
    yield from (path for path in kept_weights(training) if not is_ours(path))
    yield from _other_baselines(training / BASELINES)


def _other_baselines(folder: Path) -> Iterator[Path]:
    """Where baselines are trained, all else is removed in the end."""
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        has_content = not path.is_dir() or any(not each.name.startswith(".") for each in path.iterdir())
        if has_content and not _is_ours(path):
            yield path


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()
