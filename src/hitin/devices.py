"""Where a model runs and in which precision: the device, and `accelerate` on one or several of them."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState, GradientState, PartialState
from accelerate.utils import GradientAccumulationPlugin, InitProcessGroupKwargs
from torch import Tensor

from hitin.errors import InputError, counted, shown
from hitin.settings import TrainingSettings

_ALONE = ContextVar("alone", default=False)
_STATES = (PartialState, AcceleratorState, GradientState)
_PATIENCE = timedelta(days=7)  # of processes that wait while the main one works; one that has ended is noticed at once


def choose_device(device: str) -> torch.device:
    """`cpu`, `cuda`, `cuda:1`, `mps`; `auto` takes a GPU where there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if _has_mps() else "cpu")
    try:
        chosen = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise _no_device(device) from error
    has = {"cpu": True, "mps": _has_mps(), "cuda": (chosen.index or 0) < torch.cuda.device_count()}
    if not has.get(chosen.type):
        raise _no_device(device)
    return chosen


def _has_mps() -> bool:
    return torch.backends.mps.is_available()


def _no_device(device: object) -> InputError:
    return InputError(
        f"there is no device {shown(device)} here",
        kind="bad-option",
        remedy="Choose cpu, or auto, which takes what is there.",
    )


def build_accelerator(device: str, settings: TrainingSettings) -> Accelerator:
    """`accelerate` on the device, in the precision of the settings."""
    chosen = choose_device(device)
    precision = _precision(settings, chosen)
    _check_enough_gpus(chosen)
    # an earlier training in this process, or the caller, may have chosen another device
    AcceleratorState._reset_state(reset_partial_state=not torch.distributed.is_initialized())
    steps = GradientAccumulationPlugin(num_steps=1)  # whatever the environment says: the settings say it
    return Accelerator(
        cpu=chosen.type == "cpu",
        mixed_precision=precision,
        gradient_accumulation_plugin=steps,
        kwargs_handlers=[InitProcessGroupKwargs(timeout=_PATIENCE)],
    )


def _check_enough_gpus(device: torch.device) -> None:
    """Each process of a machine takes a GPU of its own."""
    processes = int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
    gpus = torch.cuda.device_count() if device.type == "cuda" else processes
    if processes > gpus:
        raise InputError(
            f"{counted(processes, 'process', 'processes')} on this machine, and {counted(gpus, 'GPU')}",
            kind="bad-option",
            remedy="Start as many processes as there are GPUs, or choose --device cpu.",
        )


def _precision(settings: TrainingSettings, device: torch.device) -> str:
    if settings.precision == "auto":
        return "bf16" if device.type == "cuda" and torch.cuda.is_bf16_supported() else "no"
    if settings.precision == "fp16" and device.type == "cpu":
        raise InputError("fp16 needs a GPU", kind="bad-option", remedy="Set precision to bf16 or fp32.")
    return "no" if settings.precision == "fp32" else settings.precision


@contextmanager
def accelerated(device: str, settings: TrainingSettings) -> Iterator[Accelerator]:
    """An accelerator for a while; what the caller does with `accelerate` goes on afterwards as it was."""
    chosen = choose_device(device)
    before = [dict(state._shared_state) for state in _STATES]
    GradientState._reset_state()
    try:
        is_numbered_gpu = chosen.type == "cuda" and chosen.index is not None
        with torch.cuda.device(chosen) if is_numbered_gpu else nullcontext(), _quick_products(chosen, settings):
            yield build_accelerator(device, settings)
    finally:
        for state, values in zip(_STATES, before, strict=True):
            state._shared_state.clear()
            state._shared_state.update(values)


@contextmanager
def _quick_products(device: torch.device, settings: TrainingSettings) -> Iterator[None]:
    """In mixed precision, a GPU multiplies what is left in 32 bits as TF32: still more precise than the halves."""
    matmul: Any = torch.backends.cuda.matmul
    if device.type != "cuda" or _precision(settings, device) == "no":
        yield
        return
    name, quick = ("fp32_precision", "tf32") if hasattr(matmul, "fp32_precision") else ("allow_tf32", True)
    before = getattr(matmul, name)
    setattr(matmul, name, quick)
    try:
        yield
    finally:
        setattr(matmul, name, before)


@contextmanager
def alone() -> Iterator[None]:
    """For work that other processes have no part in: it neither waits for them nor shares anything."""
    before = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(before)


def has_company() -> bool:
    """Whether other processes take part in what this one does."""
    return torch.distributed.is_initialized() and not _ALONE.get()


def is_main_process() -> bool:
    """Whether this process is the one that writes files; the only one, mostly."""
    return not has_company() or torch.distributed.get_rank() == 0


def wait_for_all() -> None:
    """Until every process has come so far."""
    if has_company():
        torch.distributed.barrier()


def share(tensors: Iterable[Tensor]) -> None:
    """Give every process the tensors of the main one."""
    if has_company():
        for tensor in tensors:
            torch.distributed.broadcast(tensor, src=0)


def share_text(text: str) -> str:
    """The text of the main process, in every process. It travels as bytes, not as a pickle."""
    if not has_company():
        return text
    device = _meeting_place()
    data = torch.from_numpy(np.frombuffer(text.encode(), dtype=np.uint8).copy()).to(device)
    size = torch.tensor([len(data)], device=device)
    share([size])
    if not is_main_process():
        data = torch.empty(int(size), dtype=torch.uint8, device=device)
    share([data])
    return data.cpu().numpy().tobytes().decode()


def is_same_everywhere(text: str) -> bool:
    """Whether all processes have the same text; all of them are told."""
    if not has_company():
        return True
    others = torch.tensor([share_text(text) != text], dtype=torch.int32, device=_meeting_place())
    torch.distributed.all_reduce(others)
    return not others.item()


def share_tensors(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of the main process, by name, on the CPU of every process. None of them travels as a pickle."""
    if not has_company():
        return dict(tensors)
    described = {name: (str(each.dtype).removeprefix("torch."), list(each.shape)) for name, each in tensors.items()}
    device, found = _meeting_place(), {}
    for name, (kind, shape) in json.loads(share_text(json.dumps(described))).items():
        is_ours = is_main_process()
        tensor = tensors[name].to(device) if is_ours else torch.empty(shape, dtype=getattr(torch, kind), device=device)
        share([tensor])
        found[name] = tensors[name] if is_ours else tensor.cpu()
    return found


def _meeting_place() -> torch.device:
    """Where tensors are that travel between processes."""
    on_gpu = torch.distributed.get_backend() == "nccl"
    return torch.device("cuda", torch.cuda.current_device()) if on_gpu else torch.device("cpu")
