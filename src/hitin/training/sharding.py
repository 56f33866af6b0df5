"""A network that several processes hold together, each a part of every weight (FSDP): for large text encoders.

The parameters become `DTensor`s. Files hold whole tensors, however many processes there are. What of torch that needs
is imported where it is used: it takes a second.
"""

import warnings
from typing import Any

import torch
from torch import Tensor, nn


def shard(network: nn.Module, device: torch.device) -> None:
    """Give each process its part of the network: each layer of the encoder by itself, and then what is left.

    What is left stays whole between the way forward and the way back, for losses look at it, too.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

    # documents' vectors are views of those of tokens, and no one changes them in place
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module", category=UserWarning)
    mesh = init_device_mesh(device.type, (torch.distributed.get_world_size(),))
    encoder = network.get_submodule("encoder")
    for group in reversed([each for each in encoder.modules() if isinstance(each, nn.ModuleList)]):
        for layer in group:
            fully_shard(layer, mesh=mesh)
    fully_shard(network, mesh=mesh, reshard_after_forward=False)
    register_fsdp_forward_method(network, "features")  # which is called in place of `forward` where labels are many


def is_sharded(network: nn.Module) -> bool:
    return hasattr(network, "set_requires_gradient_sync")


def synchronise(network: Any, wanted: bool) -> None:
    """Whether the next gradients of a sharded network are added up over all processes."""
    if is_sharded(network):
        network.set_requires_gradient_sync(wanted)


def reshard(network: Any) -> None:
    """Free what of a sharded network is still whole, as after scoring."""
    if is_sharded(network):
        network.reshard()


def whole(tensor: Any) -> Tensor:
    """A tensor with the parts of all processes. They have to ask for the same ones, in the same order."""
    found: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return found


def own_part(tensor: Any) -> Tensor:
    """What of a tensor is in this process."""
    found: Tensor = tensor.to_local() if hasattr(tensor, "to_local") else tensor
    return found


def like(tensor: Tensor, parameter: Any) -> Tensor:
    """A whole tensor, shared out as a parameter is, if it is."""
    if not hasattr(parameter, "full_tensor") or tensor.shape != parameter.shape:
        return tensor
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(tensor.to(parameter.device), parameter.device_mesh, parameter.placements)
