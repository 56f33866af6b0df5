"""What a model made of its validation documents, kept in its folder, so that decisions can be tuned again."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hitin.errors import InputError
from hitin.taxonomy import Taxonomy
from hitin.tensor_files import load_tensors, save_tensors
from hitin.writing import unwritable

FILE = "validation.safetensors"
LARGEST = 64 * 2**20  # bytes; of more it is not kept
_MODEL = "model"  # what the file says of the model it belongs to
_OTHERS = "Name a file of labelled documents to tune on."


class ValidationScores(NamedTuple):
    """Tables of documents by labels: logits, and which labels are true."""

    logits: NDArray[np.float32]
    truth: NDArray[np.bool_]


def save_validation(folder: Path, scores: ValidationScores | None, model: str) -> None:
    """Write them, or remove those of an earlier model. `model` is the fingerprint of the folder's model."""
    path = folder / FILE
    if scores is not None and scores.logits.nbytes <= LARGEST:
        truth = np.packbits(scores.truth, axis=1)
        tensors = {"logits": torch.from_numpy(scores.logits), "truth": torch.from_numpy(truth)}
        save_tensors(path, tensors, {_MODEL: model})
        return
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def load_validation(folder: Path, taxonomy: Taxonomy, model: str) -> ValidationScores:
    """Those in a folder, which must be of the model with this fingerprint."""
    path = folder / FILE
    if not path.is_file():
        raise InputError(
            "the model keeps no scores of validation documents",
            kind="missing-file",
            file=str(path),
            remedy=f"It was trained without any, by an older hitin, or they were too many. {_OTHERS}",
        )
    tensors, metadata = load_tensors(path, remedy=_OTHERS)
    try:
        if metadata.get(_MODEL) != model:
            raise ValueError("it was written with other weights or another taxonomy")
        logits, packed = tensors["logits"].numpy(), tensors["truth"].numpy()
        truth = np.unpackbits(packed, axis=1, count=len(taxonomy)).astype(np.bool_)
        if logits.shape != truth.shape or logits.shape[1] != len(taxonomy) or logits.dtype != np.float32:
            raise ValueError(f"a table of the shape {logits.shape} for {len(taxonomy)} labels")
    except (KeyError, ValueError, TypeError) as error:
        raise InputError(
            f"the file is not of this model ({error})", kind="damaged-model", file=str(path), remedy=_OTHERS
        ) from error
    return ValidationScores(logits, truth)
