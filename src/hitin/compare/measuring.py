"""What a model takes: parameters, memory, and the machine it was measured on."""

import os
import platform
import re
import resource
import sys
from pathlib import Path
from typing import Any

import torch

from hitin import __version__
from hitin.methods.interface import trainable
from hitin.methods.linear import LinearModel
from hitin.model import Model
from hitin.neural import NeuralModel


def parameters(model: Model) -> dict[str, int]:
    """Numbers that are learnt, and all numbers. Of a linear model those that were kept."""
    if isinstance(model, NeuralModel):
        return {"trainable": trainable(model.network), "all": sum(each.numel() for each in model.network.parameters())}
    assert isinstance(model, LinearModel)
    kept = len(model.margins.values) + len(model.margins.intercepts)
    return {"trainable": kept, "all": kept}


def peak_memory(model: Model) -> dict[str, Any]:
    """The most memory so far: of the GPU where the model is on one, else of the process."""
    if isinstance(model, NeuralModel) and model.device.type == "cuda":
        return {"peak_bytes": torch.cuda.max_memory_allocated(model.device), "of": "cuda"}
    return {"peak_bytes": _peak_of_process(), "of": "process"}


def _peak_of_process() -> int:
    """Linux counts in `ru_maxrss` the memory of the process that started this one, too, so it is asked otherwise."""
    try:
        found = re.search(r"^VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
        if found:
            return 1024 * int(found[1])
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def machine(device: torch.device) -> dict[str, Any]:
    """What numbers of seconds and bytes depend on."""
    return {
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else _processor(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "hitin": __version__,
        "python": platform.python_version(),
        "platform": platform.system(),
    }


def _processor() -> str:
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        found = None
    return found[1].strip() if found else platform.processor() or os.uname().machine
