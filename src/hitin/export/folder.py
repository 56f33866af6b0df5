"""An exported model as a folder. `export.json` is written last and names every file that no one may change, with its
checksum; the whole folder takes its place when it is complete."""

import json
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hitin import __version__
from hitin.damage import damaged
from hitin.errors import InputError, shown
from hitin.locking import remove_empty
from hitin.model_folder import (
    CARD,
    DECISIONS,
    EXPORT,
    RUN,
    TAXONOMY,
    check_files,
    check_format,
    checksum_of,
    list_told,
    read_list,
)
from hitin.neural import TOKENIZER
from hitin.writing import LEFT_BEHIND, check_folder, unwritable, write_text

FORMAT = 1
GRAPH = "model.onnx"
WEIGHTS = "model.onnx.data"
"""Beside the graph, where it would be too large with them."""
LABELS = "labels.json"
PLAIN, SMALL = "onnx", "onnx-int8"
"""The folders of a model in which its exports lie, unless another is named."""

_FIXED = {GRAPH, TOKENIZER, TAXONOMY, RUN, LABELS}
FILES = (*sorted(_FIXED), WEIGHTS)
"""What an exported model can have that no one may change."""
_LEFTOVERS = re.compile(r"\.[0-9a-f]{16}\.(part|old)")
_AGAIN = "Copy the folder again, or export the model again."


@dataclass(frozen=True)
class Export:
    """What `export.json` says."""

    model: str
    """The fingerprint of the model that it was made from."""
    int8: bool
    largest_difference: float
    """From torch, of the probability of any label of the texts that were tried."""
    files: dict[str, str]
    """The checksums of the files that no one may change."""

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "hitin": __version__, "runtime": "onnx", **vars(self)}


def is_export(folder: Path) -> bool:
    return (folder / EXPORT).is_file()


def usual_folder(model: Path, *, int8: bool) -> Path:
    """Where a model's export lies."""
    return model / (SMALL if int8 else PLAIN)


def read_export(folder: Path) -> Export:
    """What is said of an exported model, its files checked."""
    found = read_manifest(folder)
    check_files(folder, found.files, {GRAPH, WEIGHTS}, _AGAIN)
    return found


def read_manifest(folder: Path) -> Export:
    """What is said of an exported model, without a look at its other files."""
    path = folder / EXPORT
    with list_told(path, _AGAIN):
        found: dict[str, Any] = read_list(path, _AGAIN)
        number, files = found["format"], dict(found["files"])
        export = Export(str(found["model"]), bool(found["int8"]), float(found["largest_difference"]), files)
    written_by = f"{shown(found.get('hitin'))}: install that, or export the model again."
    check_format(path, number, FORMAT, "exported model", written_by)
    if not _FIXED <= set(files) <= set(FILES):
        raise damaged(path, "the list of files is damaged: it does not name those of an exported model", _AGAIN)
    return export


def seal(folder: Path, *, model: str, int8: bool, largest_difference: float) -> Export:
    """Write `export.json`, when all else is there."""
    names = sorted(name for name in FILES if (folder / name).is_file())
    found = Export(model, int8, largest_difference, {name: checksum_of(folder / name) for name in names})
    write_text(folder / EXPORT, [json.dumps(found.to_json(), indent=2) + "\n"])
    return found


def check_place(folder: Path) -> None:
    """Refuse to write where it cannot be done, or over what is no exported model, before long work."""
    check_folder(folder, EXPORT)
    check_folder(folder.parent, folder.name + ".part")
    known = {*FILES, DECISIONS, CARD, EXPORT} if is_export(folder) else set()
    others = sorted(path.name for path in folder.iterdir() if path.name not in known) if folder.is_dir() else []
    if others:
        raise _no_place(folder, f"the folder holds something else than an exported model: {shown(others[0])}")
    if folder.is_mount() or folder.resolve() == Path.cwd():
        raise _no_place(folder, "a folder in which one stands, or a disk, cannot be replaced by another")


def _no_place(folder: Path, problem: str) -> InputError:
    return InputError(problem, kind="unwritable", file=str(folder), remedy="Choose another --out, such as a new one.")


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """A new folder beside `folder`, which takes its place when the block ends well and is gone otherwise.

    A link keeps pointing where it did.
    """
    folder, token = folder.resolve(), secrets.token_hex(8)
    part, old = (folder.with_name(f".{token}.{name}") for name in ("part", "old"))
    made = [parent for parent in folder.parents if not parent.exists()]
    is_done = False
    try:
        part.mkdir(parents=True)
        _remove_leftovers(folder.parent)
        yield part
        if folder.exists():
            folder.rename(old)
        part.rename(folder)
        is_done = True
    except OSError as error:
        raise unwritable(folder, error) from error
    finally:
        if old.exists() and not folder.exists():
            old.rename(folder)
        for left in (part, old):
            shutil.rmtree(left, ignore_errors=True)
        if not is_done:
            remove_empty(made)


def _remove_leftovers(parent: Path) -> None:
    """What a kill left of earlier exports."""
    for path in parent.iterdir():
        if _LEFTOVERS.fullmatch(path.name) and path.is_dir() and time.time() - path.stat().st_mtime > LEFT_BEHIND:
            shutil.rmtree(path, ignore_errors=True)
