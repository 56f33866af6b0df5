"""The state of a training run in one file, without pickles: weights, optimiser, and how far it has come."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from hitin.damage import AGAIN
from hitin.errors import InputError
from hitin.training.sharding import like, whole
from hitin.trust import check_header
from hitin.writing import replacing

CHECKPOINT = "checkpoint.safetensors"

_NETWORK = "network."
_OPTIMISER = "optimiser."
_PROGRESS = "progress"
_CHECKSUM = "checksum"

ANEW = 'Begin anew with --resume never (in Python: resume="never").'


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors whole or not at all, and safely on the disk before the old file goes."""
    own, told = _apart(tensors), dict(metadata or {})
    told[_CHECKSUM] = checksum(own, told)
    with replacing(path) as part:
        part.touch()
        mode = part.stat().st_mode  # as usual for the user: the library's files are for no one else to read
        try:
            save_file(own, part, told)
        except SafetensorError as error:  # no room on the disk, mostly
            raise OSError(str(error)) from error
        part.chmod(mode)
        with part.open("rb+") as file:
            os.fsync(file.fileno())


def load_tensors(
    path: Path, *, kind: str = "damaged-model", remedy: str = AGAIN
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file, or an error that says it is damaged."""
    try:
        check_header(path)
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = dict(file.metadata() or {})
        told = metadata.pop(_CHECKSUM, None)
        if told == checksum(tensors, metadata):
            return tensors, metadata
        problem = "the file is damaged: its checksum is wrong"
    except FileNotFoundError:
        problem = "this file is missing"
    except (SafetensorError, OSError, ValueError, RuntimeError, RecursionError) as error:
        problem = f"the file is damaged or cut short ({error})"
    raise InputError(problem, kind=kind, file=str(path), remedy=remedy)


def is_ours(path: Path) -> bool:
    """Whether `save_tensors` wrote a file, as far as its header tells."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return False
        check_header(path)
        with safe_open(path, framework="pt") as file:
            return _CHECKSUM in (file.metadata() or {})
    except (SafetensorError, OSError, ValueError, RuntimeError, RecursionError):
        return False


def remove_leftovers(folder: Path) -> None:
    """Remove what a kill left of files that were being written. Folders are those of an export, perhaps at work."""
    for pattern in (".*.part", ".tmp??????"):  # ours, and those of safetensors
        for path in folder.glob(pattern):
            if not path.is_dir():
                path.unlink(missing_ok=True)


@dataclass(frozen=True)
class Checkpoint:
    """What `save_checkpoint` wrote."""

    progress: dict[str, Any]
    weights: dict[str, Tensor]
    optimiser: dict[int, dict[str, Tensor]]

    @classmethod
    def of(cls, progress: dict[str, Any], tensors: Mapping[str, Tensor]) -> "Checkpoint":
        """What the tensors of a file are."""
        weights: dict[str, Tensor] = {}
        optimiser: dict[int, dict[str, Tensor]] = {}
        for name, tensor in tensors.items():
            if name.startswith(_NETWORK):
                weights[name.removeprefix(_NETWORK)] = tensor
            else:
                number, key = name.removeprefix(_OPTIMISER).split(".", 1)
                optimiser.setdefault(int(number), {})[key] = tensor
        return cls(progress, weights, optimiser)

    def tensors(self) -> dict[str, Tensor]:
        """All of them, by the names they have in the file."""
        states = ((number, name, each) for number, state in self.optimiser.items() for name, each in state.items())
        tensors = {f"{_OPTIMISER}{number}.{name}": each for number, name, each in states}
        return tensors | {f"{_NETWORK}{name}": each for name, each in self.weights.items()}

    def restore(self, network: nn.Module, optimiser: torch.optim.Optimizer) -> None:
        """Put the weights and the optimiser's state back."""
        load_weights(network, self.weights)
        parameters = [each for group in optimiser.param_groups for each in group["params"]]
        state = {
            number: {name: like(tensor, parameters[number]) for name, tensor in values.items()}
            for number, values in self.optimiser.items()
        }
        optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})


def load_weights(network: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Give a network the weights that are trained."""
    own = network.state_dict()
    network.load_state_dict(
        frozen_weights(network) | {name: like(each, own.get(name, each)) for name, each in weights.items()}
    )


def frozen_weights(network: nn.Module) -> dict[str, Tensor]:
    """The weights that are not trained, and need not be saved again and again."""
    return {name: weight.detach() for name, weight in network.named_parameters() if not weight.requires_grad}


def trained_weights(network: nn.Module) -> dict[str, Tensor]:
    """All other weights, whole: where several processes share them, all have to ask."""
    frozen = frozen_weights(network)
    return {name: whole(weight) for name, weight in network.state_dict().items() if name not in frozen}


def save_checkpoint(
    path: Path,
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    progress: Mapping[str, Any],
    *,
    writes: bool = True,
) -> None:
    """One file from which a run can go on. Where several processes share the network, all ask for it and one writes."""
    tensors = {f"{_NETWORK}{name}": tensor for name, tensor in trained_weights(network).items()}
    for number, state in optimiser.state_dict()["state"].items():
        tensors |= {f"{_OPTIMISER}{number}.{name}": whole(torch.as_tensor(value)) for name, value in state.items()}
    if writes:
        save_tensors(path, tensors, {_PROGRESS: json.dumps(progress)})


def load_checkpoint(path: Path) -> Checkpoint:
    """What is in the file, or an error that says it is damaged."""
    tensors, metadata = load_tensors(path, kind="damaged-checkpoint", remedy=ANEW)
    try:
        return Checkpoint.of(json.loads(metadata[_PROGRESS]), tensors)
    except (ValueError, KeyError) as error:
        raise damaged_checkpoint(path, f"this is no checkpoint ({error})") from error


def damaged_checkpoint(path: Path, problem: str) -> InputError:
    return InputError(problem, kind="damaged-checkpoint", file=str(path), remedy=ANEW)


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """On the CPU, and no two in the same memory, which the format does not know."""
    own: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        place = plain.untyped_storage().data_ptr()
        own[name] = plain.clone() if place in seen else plain
        seen.add(place)
    return own


def checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """Of tensors on the CPU, of what their numbers are and how they stand, and of what is said about them."""
    value = crc32(json.dumps(metadata, sort_keys=True).encode())
    for name, each in sorted(tensors.items()):
        value = crc32(f"{name} {each.dtype} {tuple(each.shape)}".encode(), value)
        row = each.reshape(-1).contiguous()
        row = row.as_strided(row.shape, (1,))  # of a single number the step to the next may be anything
        value = crc32(row.view(torch.uint8).numpy().data, value)
    return f"{value:08x}"
