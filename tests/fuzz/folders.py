"""Folders of real small models, one file of which is exchanged for the bytes of a fuzzer, with the right checksums."""

import atexit
import shutil
import tempfile
from functools import cache, partial
from pathlib import Path

import torch

from hitin import HierarchicalTextClassifier
from hitin.decisions import Decisions
from hitin.model_folder import CARD, DECISIONS, EXPORT, MANIFEST
from hitin.training.checkpoint import CHECKPOINT, load_checkpoint, save_checkpoint
from tests.fuzz.target import Way
from tests.model_folders import save_bag, save_bert, save_linear, save_words, seal_again
from tests.training_harness import are_equal, fitted, network_of


@cache
def _root() -> Path:
    folder = tempfile.mkdtemp(prefix="hitin-fuzz-models-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


@cache
def _original(name: str) -> Path:
    makers = {"words": save_words, "bert": save_bert, "linear": save_linear, "bag": save_bag}
    makers[name](_root() / name)
    return _root() / name


def _load(original: Path, name: str, seal: bool, data: bytes) -> None:
    """A copy with a file exchanged is refused, or loaded and used."""
    with tempfile.TemporaryDirectory(prefix="hitin-fuzz-") as folder:
        copy = Path(folder, "model")
        copy.mkdir()
        for path in _files(original):
            shutil.copyfile(path, copy / path.name)
        (copy / name).write_bytes(data)
        if seal:
            seal_again(copy)
        loaded = HierarchicalTextClassifier.load(copy, device="cpu")
        loaded.predict(["the bark of a tree", ""])


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name != CARD)


def _ways(original: Path) -> list[Way]:
    """A way for each file of a folder."""
    return [
        Way(partial(_load, original, path.name, path.name not in (MANIFEST, EXPORT)), [path.read_bytes()])
        for path in _files(original)
    ]


def models() -> list[Way]:
    return [way for name in ("words", "bag", "linear") for way in _ways(_original(name))]


def transformers() -> list[Way]:
    return _ways(_original("bert"))


def exports() -> list[Way]:
    return _ways(_original("bag") / "onnx")


def checkpoints() -> list[Way]:
    """What is read of a damaged file is what was in it, or nothing."""
    path = _root() / "sound.safetensors"
    network = network_of(fitted())
    optimiser = torch.optim.AdamW(network.parameters())
    sum(weight.sum() for weight in network.parameters()).backward()  # type: ignore[union-attr]
    optimiser.step()
    save_checkpoint(path, network, optimiser, {"epoch": 3, "best": {"select": 2}})
    sound = load_checkpoint(path)

    def load(data: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="hitin-fuzz-") as folder:
            copy = Path(folder, CHECKPOINT)
            copy.write_bytes(data)
            found = load_checkpoint(copy)
        assert found.progress == sound.progress
        assert are_equal(found.weights, sound.weights)
        assert found.optimiser.keys() == sound.optimiser.keys()
        assert all(are_equal(state, sound.optimiser[number]) for number, state in found.optimiser.items())

    return [Way(load, [path.read_bytes()])]


def decisions() -> list[bytes]:
    kinds = [
        Decisions(),
        Decisions(policy="top-k", k=2),
        Decisions(policy="raw", threshold=(0.3, 0.4)),
        Decisions(policy="raw", threshold={"A": 0.1, "B": 0.2, "C": 0.3, "D": 0.4}),
    ]
    tuned = [(_original("bag") / DECISIONS).read_bytes()]
    return [each.to_json().encode() for each in kinds] + tuned
