"""Numbers of a comparison in words."""

import math
from collections.abc import Mapping
from typing import Any

from hitin.errors import counted


def percent(share: float, deviation: float | None = None) -> str:
    """`57.61 ± 0.30`"""
    return f"{100 * share:.2f}" + ("" if deviation is None else f" ± {100 * deviation:.2f}")


def p_text(p: float) -> str:
    """`= 0.031`, or `< 0.01`: so many resamples do not tell smaller ones apart"""
    if p < 0.01:
        return "< 0.01" if p >= 0.001 else "< 0.001"
    return f"= {p:.3f}" if p < 0.1 else f"= {p:.2f}"


def amount(cost: str, value: float) -> str:
    """A cost with its unit."""
    match cost:
        case "training_seconds":
            return duration(value)
        case "peak_memory_bytes":
            return f"{_three_digits(value / 1e9)} GB"
        case "trainable_parameters":
            return f"{_three_digits(value / 1e6)} M"
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _three_digits(value: float) -> str:
    """`0.08`, `1.45`, `23.4`, `116`"""
    digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
    return f"{value:,.{digits}f}" if value >= 0.01 or not value else f"{value:.1g}"


def duration(seconds: float) -> str:
    """`8.1 s`, `81 s`, `12.1 min`, `2.1 h`"""
    if seconds < 99.5:
        return f"{seconds:.1f} s" if seconds < 9.95 else f"{seconds:.0f} s"
    return f"{seconds / 60:.1f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def short_number(value: float) -> str:
    """For axes: `15M`, `1.5M`, `300k`"""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.3g}{letter}"
    return f"{value:.3g}"


def machine_kind(result: Mapping[str, Any]) -> str:
    """What a cell ran on, as far as times depend on it."""
    machine = result.get("machine") or {}
    device, threads = str(machine.get("device", "unknown machine")), machine.get("threads")
    if (result.get("memory") or {}).get("of") == "cuda":
        return device
    if device.startswith("NVIDIA"):  # as results of linear models used to say
        device = f"processor beside {device}"
    return f"{device}, {counted(int(threads), 'thread')}" if threads else device


Condition = tuple[str, int]


def condition(result: Mapping[str, Any]) -> Condition:
    """What costs depend on: the kind of machine, and how many trainings ran at a time."""
    return machine_kind(result), int(result.get("at_once") or 1)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from `low` to `high`, both within."""
    rough = max(high - low, 1e-9) / most
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= rough)
    return [
        round(step * number, 10) for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    ]
