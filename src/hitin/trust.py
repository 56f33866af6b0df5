"""What is checked of a model's folder that may come from anyone, before it is believed.

Nothing of it is run, and what it costs to refuse it is a small multiple of its size.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from hitin.compression import recognise
from hitin.damage import AGAIN, damaged

MOST_TEXT = 2**28
"""Bytes of a file that is no weights."""
MOST_HEADER = 2**24
MOST_TENSORS = 20_000
_SPARE_BYTES, _SPARE_TENSORS = 2**27, 10_000


def check_inside(path: Path, remedy: str = AGAIN) -> None:
    """A file of a model lies in its folder: a link may not lead to what is none of the model's business."""
    if path.is_symlink() and not path.resolve().is_relative_to(path.parent.resolve()):
        raise damaged(path, "this file of the model is a link that leads out of its folder", remedy)


def check_text(path: Path, remedy: str = AGAIN) -> None:
    """A file that is read whole: not enormous, and not a small one that becomes so."""
    if path.stat().st_size > MOST_TEXT:
        raise damaged(path, f"this file of the model has more than {MOST_TEXT // 2**20} MiB", remedy)
    with path.open("rb") as file:
        first = file.read(8)
    if recognise(first):
        raise damaged(path, "this file of the model is compressed, as none that hitin writes", remedy)


def unique_json(text: str | bytes) -> Any:
    """JSON in which no name comes twice: readers would not agree on which of them counts."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise ValueError("a name comes twice")
        return found

    return json.loads(text, object_pairs_hook=members)


def check_header(path: Path) -> None:
    """The list of tensors at the beginning of a safetensors file; a `ValueError` where it is not believed.

    The library checks places and sizes, but a name that comes twice it reads once, and it takes 16 s and 1.6 GB for a
    million empty tensors.
    """
    with path.open("rb") as file:
        size = int.from_bytes(file.read(8), "little")
        if size > MOST_HEADER:
            raise ValueError("its header is too large")
        header = unique_json(file.read(size))
    if not isinstance(header, dict) or len(header) > MOST_TENSORS:
        raise ValueError("its header is no list of tensors")


def check_finite(tensors: Mapping[str, Tensor]) -> None:
    """A `ValueError` where a weight is no number."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and tensor.numel():
            low, high = torch.aminmax(tensor.float())
            if not (math.isfinite(low) and math.isfinite(high)):  # NaN is both
                raise ValueError(f"some weights of {name} are no numbers")


class Bounded(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is entered, tensors are made in proportion to those of a file: settings that claim more than the file
    holds would else take all memory, before anyone compares the two."""

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.bytes = _SPARE_BYTES + 8 * sum(tensor.nbytes for tensor in tensors.values())
        self.tensors = _SPARE_TENSORS + 8 * len(tensors)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        size = args[0] if args and isinstance(args[0], list | tuple) else ()  # as empty, zeros and their kin are told
        if size and all(isinstance(each, int) for each in size):
            self.bytes -= 4 * math.prod(size)
            self.tensors -= 1
            if self.bytes < 0 or self.tensors < 0:
                raise ValueError("the settings are those of a larger model than its weights")
        return func(*args, **kwargs or {})
