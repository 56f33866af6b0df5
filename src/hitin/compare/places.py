"""Where cells run: so many processes on each device, with their share of the processor."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from hitin.devices import accelerated, choose_device
from hitin.processor import cores
from hitin.settings import TrainingSettings

THREADS = "OMP_NUM_THREADS"
VISIBLE = "CUDA_VISIBLE_DEVICES"


@dataclass(frozen=True)
class Place:
    """Room for one process at a time."""

    name: str
    """The device, for people."""
    device: str
    """The device, as the process calls it."""
    environment: dict[str, str] = field(default_factory=dict)


def places_of(devices: Sequence[str], at_once: int) -> list[Place]:
    """`at_once` places on each device; of those on the same GPU, none sees another GPU."""
    names = list(dict.fromkeys(name for device in devices or ("auto",) for name in _names(device)))
    count = len(names) * at_once
    threads = {THREADS: str(max(1, _threads() // count))} if count > 1 else {}
    return [_place(name, threads) for _ in range(at_once) for name in names]


def check_precision(places: Sequence[Place], training: TrainingSettings) -> None:
    """Refuse a precision that the processor has not."""
    if any(place.device == "cpu" for place in places):  # a GPU would be taken into use
        with accelerated("cpu", training):
            pass


def _names(device: str) -> list[str]:
    """`auto` is every GPU, or what else there is."""
    chosen = choose_device(device)
    if chosen.type != "cuda":
        return [str(chosen)]
    if device == "auto":
        return [f"cuda:{number}" for number in range(torch.cuda.device_count())]
    return [f"cuda:{chosen.index or 0}"]


def _place(name: str, threads: dict[str, str]) -> Place:
    if not name.startswith("cuda:"):
        return Place(name, name, threads)
    number = int(name.removeprefix("cuda:"))
    visible = [each for each in os.environ.get(VISIBLE, "").split(",") if each]
    return Place(name, "cuda", threads | {VISIBLE: visible[number] if number < len(visible) else str(number)})


def _threads() -> int:
    """How many there are to share."""
    asked = os.environ.get(THREADS, "")
    if asked.isdigit() and int(asked):
        return int(asked)
    return cores()
