"""The methods of the comparison, each one file behind the interface of `hitin.methods.interface`."""

from dataclasses import dataclass
from typing import Any

from hitin.methods.flat import Flat, FlatSettings
from hitin.methods.hitin import HiTIN, HiTINSettings
from hitin.methods.interface import Method


@dataclass(frozen=True)
class Known:
    """A method: the dataclass of its settings."""

    settings: type[Any]


@dataclass(frozen=True)
class NeuralMethod(Known):
    """One that stands on a text encoder and is trained together with it."""

    module: type[Method]


METHODS: dict[str, Known] = {
    "hitin": NeuralMethod(HiTINSettings, HiTIN),
    "flat": NeuralMethod(FlatSettings, Flat),
}
