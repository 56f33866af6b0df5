"""Random numbers of our own: the caller's go on afterwards as if nothing had been."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

_CPU = torch.device("cpu")


@contextmanager
def own_chance(seed: int | None = None, device: torch.device = _CPU) -> Iterator[None]:
    """Within it, torch's random numbers on the CPU and on the device are ours. No other device is touched."""
    devices = [_index(device)] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        if seed is not None:
            seed_chance(seed, device)
        yield


def seed_chance(seed: int, device: torch.device = _CPU) -> None:
    """Begin the random numbers of the CPU and of the device."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.default_generators[_index(device)].manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


def _index(device: torch.device) -> int:
    return torch.cuda.current_device() if device.index is None else device.index
