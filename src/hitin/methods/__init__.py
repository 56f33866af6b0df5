"""The methods of the comparison, each behind a small interface: that of `hitin.methods.interface` where it stands on a
text encoder and is trained by the common loop, that of `hitin.model` where it is something else."""

from dataclasses import dataclass, field
from typing import Any

from hitin.methods.flat import Flat, FlatSettings
from hitin.methods.hgclr import HGCLR, HGCLRSettings
from hitin.methods.hiagm_la import HiAGMLA, HiAGMLASettings
from hitin.methods.hiagm_tp import HiAGMTP, HiAGMTPSettings
from hitin.methods.himatch import HiMatch, HiMatchSettings
from hitin.methods.hitin import HiTIN, HiTINSettings
from hitin.methods.htcinfomax import HTCInfoMax, HTCInfoMaxSettings
from hitin.methods.interface import Method
from hitin.methods.linear import LinearModel
from hitin.methods.margins import LinearSettings
from hitin.model import Model


@dataclass(frozen=True)
class Known:
    """A method: the dataclass of its settings, which is no other's, and what it is called in tables."""

    settings: type[Any]
    title: str = field(default="", kw_only=True)
    """Its name, where it has none."""


@dataclass(frozen=True)
class NeuralMethod(Known):
    """One that stands on a text encoder and is trained together with it."""

    module: type[Method]


@dataclass(frozen=True)
class WholeMethod(Known):
    """One that is a kind of model of its own, with its text encoder and its training."""

    model: type[Model]
    encoder: str
    """The only text encoder that goes with it."""
    training: frozenset[str]
    """The options of training that mean something to it. Those of the loss do not."""


METHODS: dict[str, Known] = {
    "hitin": NeuralMethod(HiTINSettings, HiTIN, title="HiTIN"),
    "flat": NeuralMethod(FlatSettings, Flat),
    "hiagm-tp": NeuralMethod(HiAGMTPSettings, HiAGMTP, title="HiAGM-TP"),
    "hiagm-la": NeuralMethod(HiAGMLASettings, HiAGMLA, title="HiAGM-LA"),
    "htcinfomax": NeuralMethod(HTCInfoMaxSettings, HTCInfoMax, title="HTCInfoMax"),
    "himatch": NeuralMethod(HiMatchSettings, HiMatch, title="HiMatch"),
    "hgclr": NeuralMethod(HGCLRSettings, HGCLR, title="HGCLR"),
    "linear": WholeMethod(LinearSettings, LinearModel, "tfidf", frozenset({"validation", "seed"})),
}
