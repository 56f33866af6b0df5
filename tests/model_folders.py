"""A small model folder of each kind, and copies with something changed whose checksums are right all the same."""

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from hitin import HierarchicalTextClassifier
from hitin.model_folder import EXPORT, MANIFEST
from tests.exports import exported, trained_on_bag
from tests.training_harness import BERT, TINY, classifier, documents, fitted, tiny_bert

Spoil = Callable[[Path], object]


def save_words(folder: Path) -> None:
    fitted().save(folder)


def save_bert(folder: Path) -> None:
    bert = tiny_bert(folder.with_name("bert-weights"))
    classifier(**dict.fromkeys(TINY) | BERT, encoder=bert).fit(*documents(16)).save(folder)


def save_linear(folder: Path) -> None:
    linear = HierarchicalTextClassifier(classifier().taxonomy, method="linear", validation=0)
    linear.fit(*documents(40)).save(folder)


def save_bag(folder: Path) -> None:
    """With its export inside."""
    exported(trained_on_bag(), folder)


def spoilt(original: Path, folder: Path, spoil: Spoil) -> Path:
    """A copy with something changed, and the right checksums."""
    copy = folder / "hostile"
    shutil.copytree(original, copy, symlinks=True)
    spoil(copy)
    seal_again(copy)
    return copy


def seal_again(folder: Path) -> None:
    """Make the checksums of a folder right, unless it is their list that was spoilt."""
    listed = folder / (EXPORT if (folder / EXPORT).is_file() else MANIFEST)
    if not listed.is_file():  # a pipe would be waited for
        return
    try:
        manifest = json.loads(listed.read_text())
        manifest["files"] = {name: _checksum(folder / name) for name in manifest["files"]}
    except (ValueError, KeyError, TypeError, RecursionError, OSError):
        return
    listed.write_text(json.dumps(manifest))


def _checksum(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else "0" * 64
