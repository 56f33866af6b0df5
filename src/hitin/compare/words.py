"""Numbers of a comparison in words."""

import math
from collections.abc import Mapping
from typing import Any


def percent(share: float, deviation: float | None = None) -> str:
    """`57.61 ± 0.30`"""
    return f"{100 * share:.2f}" + ("" if deviation is None else f" ± {100 * deviation:.2f}")


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def p_text(p: float) -> str:
    """`= 0.03`, or `< 0.001`"""
    if p < 0.001:
        return "< 0.001"
    return f"= {p:.3f}" if p < 0.01 else f"= {p:.2f}"


def amount(cost: str, value: float) -> str:
    """A cost with its unit."""
    if cost == "training_seconds":
        return duration(value)
    if cost == "peak_memory_bytes":
        return memory(value)
    return f"{value:,.0f}" if value >= 10 or cost != "documents_per_second" else f"{value:.2g}"


def duration(seconds: float) -> str:
    """`8.1 s`, `12 min 05 s`, `2 h 05 min`"""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02} min" if minutes >= 60 else f"{minutes} min {rest:02} s"


def memory(size: float) -> str:
    return f"{size / 2**30:.2f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"


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
    on_gpu = (result.get("memory") or {}).get("of") == "cuda"
    return device if on_gpu or not threads else f"{device}, {counted(int(threads), 'thread')}"


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from `low` to `high`, both within."""
    rough = max(high - low, 1e-9) / most
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * times for times in (1, 2, 5, 10) if unit * times >= rough)
    return [
        round(step * number, 10) for number in range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    ]
