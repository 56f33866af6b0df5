"""The state of a training run in one file, without pickles: weights, optimiser, and how far it has come."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hitin.errors import InputError
from hitin.tensor_files import load_tensors, save_tensors
from hitin.training.sharding import like, whole

CHECKPOINT = "checkpoint.safetensors"

_NETWORK = "network."
_OPTIMISER = "optimiser."
_PROGRESS = "progress"

ANEW = 'Begin anew with --resume never (in Python: resume="never").'


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
