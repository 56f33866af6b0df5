"""Optimisers with a learning rate for each part of the network, and how the rates rise and fall."""

import math
from collections.abc import Callable, Iterator

import torch
from torch import nn

from hitin.network import Network
from hitin.settings import TrainingSettings


def build_optimiser(network: Network, settings: TrainingSettings, *, fused: bool = True) -> torch.optim.Optimizer:
    """Adam or AdamW over groups of parameters, each with its `full_rate` and its weight decay."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter, rate in _rates(network, settings):
        if parameter.requires_grad:
            decay = settings.weight_decay if _decays(name, parameter) else 0.0
            groups.setdefault((rate, decay), []).append(parameter)
    described = [
        {"params": parameters, "lr": rate, "full_rate": rate, "weight_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]
    kind = torch.optim.AdamW if settings.optimiser == "adamw" else torch.optim.Adam
    return kind(described, fused=fused)


def _rates(network: Network, settings: TrainingSettings) -> Iterator[tuple[str, nn.Parameter, float]]:
    encoder_rate = settings.encoder_learning_rate or settings.learning_rate
    for name, parameter, depth in network.encoder.depths():
        yield name, parameter, encoder_rate * settings.layer_decay**depth
    for name, parameter in network.method.named_parameters():
        yield name, parameter, settings.learning_rate


def _decays(name: str, parameter: nn.Parameter) -> bool:
    """Tables do, HiTIN's B_H among them; biases, normalisations and W_d, which are vectors, do not."""
    return parameter.ndim > 1 and not name.endswith("bias")


def learning_rate_factor(settings: TrainingSettings, steps: int) -> Callable[[int], float]:
    """The learning rate at a step, counted from 0, as a part of the full one, which the step after the warm-up has."""
    warmup = max(1, round(settings.warmup * steps)) if settings.warmup else 0

    def factor(step: int) -> float:
        if step < warmup:
            return (step + 1) / (warmup + 1)
        done = (step - warmup) / max(1, steps - warmup)
        if settings.schedule == "linear":
            return max(0.0, 1 - done)
        if settings.schedule == "cosine":
            return 0.5 * (1 + math.cos(math.pi * min(1.0, done)))
        return 1.0

    return factor
