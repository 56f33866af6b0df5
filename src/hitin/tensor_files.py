"""Tensors in a file of safetensors, with a checksum: whole, or told as damaged. Nothing is ever unpickled."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from hitin.damage import AGAIN
from hitin.errors import InputError
from hitin.trust import check_header
from hitin.writing import replacing

_CHECKSUM = "checksum"


def save_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors whole or not at all, and safely on the disk before the old file goes."""
    own, told = _apart(tensors), dict(metadata or {})
    told[_CHECKSUM] = checksum(own, told)
    with replacing(path) as part:
        part.touch()
        mode = part.stat().st_mode  # as usual for the user: the library's files are for no one else to read
        try:
            save_file(own, part, told)
        except SafetensorError as error:  # no room on the disk, mostly
            raise OSError(str(error)) from error
        part.chmod(mode)
        with part.open("rb+") as file:
            os.fsync(file.fileno())


def load_tensors(
    path: Path, *, kind: str = "damaged-model", remedy: str = AGAIN
) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors and the metadata of a file, or an error that says it is damaged."""
    try:
        check_header(path)
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            metadata = dict(file.metadata() or {})
        told = metadata.pop(_CHECKSUM, None)
        if told == checksum(tensors, metadata):
            return tensors, metadata
        problem = "the file is damaged: its checksum is wrong"
    except FileNotFoundError:
        problem = "this file is missing"
    except (SafetensorError, OSError, ValueError, RuntimeError, RecursionError) as error:
        problem = f"the file is damaged or cut short ({error})"
    raise InputError(problem, kind=kind, file=str(path), remedy=remedy)


def is_ours(path: Path) -> bool:
    """Whether `save_tensors` wrote a file, as far as its header tells."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return False
        check_header(path)
        with safe_open(path, framework="pt") as file:
            return _CHECKSUM in (file.metadata() or {})
    except (SafetensorError, OSError, ValueError, RuntimeError, RecursionError):
        return False


def _apart(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """On the CPU, and no two in the same memory, which the format does not know."""
    own: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in tensors.items():
        plain = tensor.detach().cpu().contiguous()
        place = plain.untyped_storage().data_ptr()
        own[name] = plain.clone() if place in seen else plain
        seen.add(place)
    return own


def checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """Of tensors on the CPU, of what their numbers are and how they stand, and of what is said about them."""
    value = crc32(json.dumps(metadata, sort_keys=True).encode())
    for name, each in sorted(tensors.items()):
        value = crc32(f"{name} {each.dtype} {tuple(each.shape)}".encode(), value)
        row = each.reshape(-1).contiguous()
        row = row.as_strided(row.shape, (1,))  # of a single number the step to the next may be anything
        value = crc32(row.view(torch.uint8).numpy().data, value)
    return f"{value:08x}"
