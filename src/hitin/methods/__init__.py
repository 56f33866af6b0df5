"""The methods of the comparison, each one file behind the interface of `hitin.methods.interface`."""

from dataclasses import dataclass
from typing import Any

from hitin.methods.flat import Flat, FlatSettings
from hitin.methods.hitin import HiTIN, HiTINSettings
from hitin.methods.interface import Method


@dataclass(frozen=True)
class Known:
    """A method: its module and the dataclass of its settings."""

    module: type[Method]
    settings: type[Any]


METHODS: dict[str, Known] = {
    "hitin": Known(HiTIN, HiTINSettings),
    "flat": Known(Flat, FlatSettings),
}
