"""The state of a training run in one file, without pickles: weights, optimiser, and how far it has come."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from hitin.errors import InputError
from hitin.writing import replacing

_OPTIMISER = "optimiser."
_NETWORK = "network."


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors whole or not at all, and safely on the disk before the old file goes."""
    own = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    with replacing(path) as part:
        save_file(own, part, dict(metadata) if metadata else None)
        with part.open("rb+") as file:
            os.fsync(file.fileno())


def load_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file, or an error that says it is damaged."""
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except FileNotFoundError:
        problem, remedy = "the file of weights is missing", "Is this the folder of a model? Copy it whole."
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        problem, remedy = f"the weights are damaged or cut short ({error})", "Copy the model again, or train it again."
    raise InputError(problem, kind="damaged-model", file=str(path), remedy=remedy)


def save_checkpoint(
    path: Path, network: nn.Module, optimiser: torch.optim.Optimizer, progress: Mapping[str, Any]
) -> None:
    """One file from which `load_checkpoint` goes on."""
    tensors = {f"{_NETWORK}{name}": tensor for name, tensor in network.state_dict().items()}
    for number, state in optimiser.state_dict()["state"].items():
        tensors |= {f"{_OPTIMISER}{number}.{name}": torch.as_tensor(value) for name, value in state.items()}
    save_tensors(path, tensors, {"progress": json.dumps(progress)})


def read_progress(path: Path) -> dict[str, Any]:
    """How far a run has come; nothing else is read."""
    try:
        with safe_open(path, framework="pt") as file:
            progress: dict[str, Any] = json.loads((file.metadata() or {})["progress"])
            return progress
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise InputError(
            f"the checkpoint is damaged ({error})",
            kind="damaged-checkpoint",
            file=str(path),
            remedy="Start anew with --resume never.",
        ) from error


def load_checkpoint(path: Path, network: nn.Module, optimiser: torch.optim.Optimizer) -> None:
    """Put the weights and the optimiser's state back."""
    tensors, _ = load_tensors(path)
    weights = {name.removeprefix(_NETWORK): tensor for name, tensor in tensors.items() if name.startswith(_NETWORK)}
    network.load_state_dict(weights)
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        if name.startswith(_OPTIMISER):
            number, key = name.removeprefix(_OPTIMISER).split(".", 1)
            state.setdefault(int(number), {})[key] = tensor
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
