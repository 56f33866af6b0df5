"""The methods of the comparison, each one file behind the interface of `hitin.methods.interface`."""

from dataclasses import dataclass, field
from typing import Any

from hitin.methods.flat import Flat, FlatSettings
from hitin.methods.hitin import HiTIN, HiTINSettings
from hitin.methods.interface import Method


@dataclass(frozen=True)
class Known:
    """A method by name: its module, the dataclass of its settings, and what suits it beside the defaults."""

    module: type[Method]
    settings: type[Any]
    usual: dict[str, dict[str, object]] = field(default_factory=dict)
    """Options by the name of the encoder's settings."""


METHODS: dict[str, Known] = {
    "hitin": Known(HiTIN, HiTINSettings),
    "flat": Known(Flat, FlatSettings),
}
