"""Tokens, vocabularies and what a teacher thinks, kept on disk: the next training on the same begins at once."""

import contextlib
import json
import os
import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryFile
from typing import TypeVar

import numpy as np
import tokenizers
import torch
from numpy.typing import NDArray
from torch import Tensor

from hitin.errors import InputError
from hitin.locking import locked_for_now, remove_empty
from hitin.model import Advance
from hitin.tensor_files import load_tensors, save_tensors
from hitin.tokens import Ragged
from hitin.watcher import Watcher
from hitin.writing import LEFT_BEHIND, check_writable, is_leftover

T = TypeVar("T")
Judged = tuple[Ragged, NDArray[np.float32]]
"""Some labels of each document, and the probability of each of them."""

VARIABLE = "HITIN_CACHE"
OFF = "off"
_FORMAT = 2
"""To be raised when the same texts, tokenizer and length give other numbers."""
_FEWEST_CHARACTERS = 1_000_000
"""Of texts that are kept: a core finds the tokens of so many in 0.2 to 0.4 s."""
_MOST_BYTES = 2_000_000_000
_OLDEST = 30 * 24 * 3600  # seconds without use
_TURNS = "turns"
"""The folder of the locks of those who wait for each other."""
_JUDGING = "judging documents"
_PATIENCE = 1800.0  # seconds: another process may have been stopped
_OURS = re.compile(r"[0-9a-f]{32}\.safetensors")


class TokenCache:
    """What texts were turned into, each file called by a hash of all that it depends on.

    A file that is damaged is made again. Files that were not used for a month go, and the oldest of those beyond 2 GB.
    """

    def __init__(self, folder: Path | None, watcher: Watcher | None = None, *, writes: bool = True) -> None:
        """Without a folder nothing is kept. `writes` is false in processes that leave that to another."""
        self.writes = writes
        self.folder = folder
        self.watcher = watcher or Watcher()
        self._is_checked = False

    @classmethod
    def usual(cls, watcher: Watcher | None = None, *, writes: bool = True) -> "TokenCache":
        """Where the environment says. A folder that the user named must be writable; of another it is only told."""
        cache = cls(usual_folder(), watcher, writes=writes)
        if cache.folder is not None and writes and os.environ.get(VARIABLE):
            try:
                cache.folder.mkdir(parents=True, exist_ok=True)
                with TemporaryFile(dir=cache.folder):  # rights alone do not tell whether a file system takes files
                    pass
            except OSError as error:
                raise _unwritable(cache.folder, error) from error
        return cache

    def tokens(
        self, said: Callable[[], object], texts: Sequence[str], numbers: int, find: Callable[[Advance], Ragged]
    ) -> Ragged:
        """The tokens of texts, which are below `numbers`: those that were kept, or else those that `find` finds.

        `said` gives in plain values what decides them beside the texts.
        """
        path = self._path(("tokens", said), texts)
        kept = None if path is None else _read(path, lambda tensors: _ragged(tensors, len(texts), numbers))
        if kept is not None:
            self.watcher.note("tokens taken from the cache")
            return kept
        with self.watcher.counting("reading", len(texts)) as advance:
            found = find(advance)
        self._write(path, {"values": torch.from_numpy(found.values), "starts": torch.from_numpy(found.starts)})
        return found

    def vocabulary(
        self,
        said: Callable[[], object],
        texts: Sequence[str],
        learn: Callable[[], T],
        write: Callable[[T], str],
        read: Callable[[str], T],
    ) -> T:
        """What is learnt from texts, kept as what `write` makes of it."""
        path = self._path(("vocabulary", said), texts)
        kept = None if path is None else _read(path, lambda tensors: read(_text(tensors["text"])))
        if kept is not None:
            return kept
        found = learn()
        if path is not None:
            self._write(path, {"text": torch.frombuffer(bytearray(write(found).encode()), dtype=torch.uint8)})
        return found

    def judgements(
        self, said: Callable[[], object], texts: Sequence[str], labels: int, find: Callable[[], Judged]
    ) -> Judged:
        """What is thought of texts: which of so many labels, and how probable each is.

        It takes minutes: of processes that want the same at once, one finds it, and the others wait for that.
        """
        path = self._path(("judgements", said), texts)
        with self._one_at_a_time(path):
            kept = None if path is None else _read(path, lambda tensors: judged_of(tensors, len(texts), labels))
            if kept is not None:
                self.watcher.note("the judgement of linear models taken from the cache")
                return kept
            found = find()
            self._write(path, tensors_of(found))
            return found

    @contextlib.contextmanager
    def _one_at_a_time(self, path: Path | None) -> Iterator[None]:
        """Wait for the process that makes this file. If nothing comes of that, all who waited go on by themselves."""
        with contextlib.ExitStack() as stack:
            if path is not None and self.writes and not path.is_file():
                turn = path.parent / _TURNS / path.stem
                stack.callback(remove_empty, (turn, turn.parent))  # made once more by those who wait
                try:
                    stack.enter_context(locked_for_now(turn, _JUDGING))
                except InputError as error:  # also of a folder that takes no lock
                    if error.kind == "busy-folder":
                        self.watcher.note("waiting for another process, whose linear models judge the same documents")
                        with contextlib.suppress(InputError), locked_for_now(turn, _JUDGING, patience=_PATIENCE):
                            pass
            yield

    def _path(self, said: tuple[str, Callable[[], object]], texts: Sequence[str]) -> Path | None:
        """Where it is kept; `None` where it is not worth it, or cannot be."""
        if self.folder is None or sum(map(len, texts)) < _FEWEST_CHARACTERS:
            return None
        if not self._is_checked:
            self._is_checked = True
            try:
                check_writable(self.folder / "any")
            except InputError as error:
                self._do_without(f"the cache {self.folder} cannot be used: {error.message}")
                return None
        kind, rest = said
        return self.folder / f"{key_of([kind, rest()], texts)}.safetensors"

    def _write(self, path: Path | None, tensors: Mapping[str, Tensor]) -> None:
        """A full disk keeps no one from training."""
        if path is None or not self.writes or sum(tensor.nbytes for tensor in tensors.values()) > _MOST_BYTES:
            return
        try:
            save_tensors(path, tensors)
        except InputError as error:
            self._do_without(f"tokens are not kept for the next time: {error}")
            return
        tidy(path.parent)

    def _do_without(self, reason: str) -> None:
        self.folder = None
        first, *_ = reason.splitlines()
        self.watcher.note(f"warning: {first}")


def usual_folder() -> Path | None:
    """`$HITIN_CACHE`, or the user's folder for such files; `None` where that is off or there is none."""
    named = os.environ.get(VARIABLE, "")
    if named == OFF:
        return None
    try:
        home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hitin"
        return (Path(named).expanduser() if named else home) / "tokens"
    except RuntimeError:  # a user without a home
        return None


def key_of(said: object, texts: Sequence[str]) -> str:
    """Equal for equal texts and what else decides the numbers: other libraries may know other characters."""
    digest = blake2b(digest_size=16)
    versions = [_FORMAT, tokenizers.__version__, unicodedata.unidata_version]
    digest.update(json.dumps([versions, said]).encode())
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def tidy(folder: Path) -> None:
    """Remove what was not used for long, and the oldest of what is too much. Others may be doing the same."""
    now, room = time.time(), _MOST_BYTES
    for path, used, size in _by_use(folder):
        if is_leftover(path):
            too_much = now - used > LEFT_BEHIND
        else:
            room -= size
            too_much = room < 0 or now - used > _OLDEST
        if too_much:
            with contextlib.suppress(OSError):
                path.unlink()


def _by_use(folder: Path) -> list[tuple[Path, float, int]]:
    """Our files, when each was used last and how large it is; the last used one first."""
    found = []
    with contextlib.suppress(OSError):  # the folder itself may be gone
        for path in folder.iterdir():
            if _OURS.fullmatch(path.name) or is_leftover(path):
                with contextlib.suppress(OSError):  # another process was quicker
                    status = path.stat()
                    found.append((path, status.st_mtime, status.st_size))
    return sorted(found, key=lambda each: -each[1])


def _read(path: Path, understand: Callable[[Mapping[str, Tensor]], T]) -> T | None:
    """What is in a file; `None` where there is none, or it is not what it should be."""
    try:
        if not path.is_file():
            return None
        found = understand(load_tensors(path)[0])
    except Exception:  # the tokenizers library raises bare ones
        return None
    with contextlib.suppress(OSError):
        os.utime(path)
    return found


def _ragged(tensors: Mapping[str, Tensor], rows: int, numbers: int) -> Ragged:
    values, starts = tensors["values"].numpy(), tensors["starts"].numpy()
    if values.dtype != np.int32 or starts.dtype != np.int64 or values.ndim != 1 or starts.shape != (rows + 1,):
        raise ValueError("the arrays are not those of tokens")
    if starts[0] != 0 or starts[-1] != len(values) or (np.diff(starts) < 0).any():
        raise ValueError("the rows do not fit the values")
    if len(values) and not 0 <= values.min() <= values.max() < numbers:
        raise ValueError("there are tokens that the vocabulary has not")
    return Ragged(values, starts)


def tensors_of(judged: Judged) -> dict[str, Tensor]:
    """For a file, or for other processes."""
    labels, probabilities = judged
    arrays = {"values": labels.values, "starts": labels.starts, "probabilities": probabilities}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def judged_of(tensors: Mapping[str, Tensor], rows: int, labels: int) -> Judged:
    """What `tensors_of` made tensors of; a `ValueError` if it cannot have done so."""
    found, probabilities = _ragged(tensors, rows, labels), tensors["probabilities"].numpy()
    if probabilities.dtype != np.float32 or probabilities.shape != found.values.shape:
        raise ValueError("the probabilities are not those of the labels")
    return found, probabilities


def _text(tensor: Tensor) -> str:
    data: NDArray[np.uint8] = tensor.numpy()
    return data.tobytes().decode()


def _unwritable(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"the cache cannot be written ({error.strerror or error})",
        kind="unwritable",
        file=str(folder),
        remedy=f"Set {VARIABLE} to another folder, or to {OFF} to do without.",
    )
