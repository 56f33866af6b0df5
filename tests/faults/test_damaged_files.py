"""A bit that flipped, a file cut short, a folder in its place: what is loaded is what was saved, or nothing."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hitin import HierarchicalTextClassifier, InputError
from hitin.model_folder import CARD, fingerprint_of
from hitin.tensor_files import load_tensors, save_tensors
from hitin.training.checkpoint import CHECKPOINT
from hitin.training.log import LOG
from hitin.validation_scores import load_validation
from tests.exports import exported, trained_on_bag
from tests.faults.commands import check_same, whole
from tests.faults.damage import damages
from tests.training_harness import TAXONOMY, classifier, documents, interrupted

TEXTS = ["the bark of a tree", "purr", ""]
READ_BY_PEOPLE = (CARD,)
"""What has no checksum, and nothing reads."""

Content = Callable[[Path], Any]
LONG = [pytest.mark.slow, pytest.mark.timeout(3600)]


def model_content(folder: Path) -> Any:
    """All that a model's folder says."""
    loaded = HierarchicalTextClassifier.load(folder, device="cpu")
    history = getattr(loaded, "history_", None)
    held = None
    if (folder / "validation.safetensors").exists():
        held = [part.tolist() for part in load_validation(folder, TAXONOMY, fingerprint_of(folder))]
    shown = loaded.decisions_.to_json(), loaded.taxonomy_.labels, loaded.taxonomy_.edges.tolist(), history
    return shown, loaded.model_.run.to_toml(), loaded.predict_proba(TEXTS).tolist(), held


def check_file(path: Path, content: Content, *, flips: int, seed: int) -> int:
    """How many kinds of damage were refused; none changed what is loaded."""
    original, before, refused = path.read_bytes(), content(path.parent), 0
    for bad in damages(original, random.Random(seed), flips):
        path.write_bytes(bad)
        try:
            assert content(path.parent) == before, f"{path.name}: {bad[:100]!r}"
        except InputError as error:
            assert error.file is not None
            assert error.remedy or str(error)
            refused += 1
    path.unlink()
    path.mkdir()
    with pytest.raises(InputError):
        content(path.parent)
    path.rmdir()
    path.write_bytes(original)
    assert content(path.parent) == before
    return refused


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("damaged")
    trained_on_bag().save(root / "bag")
    whole(root / "words", val=20)
    return {name: root / name for name in ("bag", "words")}


def checked_files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name not in READ_BY_PEOPLE)


@pytest.mark.parametrize("kind", ["words", "bag"])
@pytest.mark.parametrize("flips", [3, pytest.param(300, marks=LONG)])
def test_a_damaged_model_is_refused_or_loaded_as_it_was(flips: int, kind: str, folders: dict[str, Path]) -> None:
    for number, path in enumerate(checked_files(folders[kind])):
        assert check_file(path, model_content, flips=flips, seed=number) >= flips // 2, path.name


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_damaged_export_is_refused_or_loaded_as_it_was(tmp_path: Path) -> None:
    exported(trained_on_bag(), tmp_path / "bag")
    for number, path in enumerate(checked_files(tmp_path / "bag" / "onnx")):
        assert check_file(path, model_content, flips=200, seed=number) >= 100, path.name


@pytest.mark.parametrize("flips", [1, pytest.param(200, marks=LONG)])
def test_a_damaged_state_of_training_is_refused_or_gone_on_from_as_it_was(flips: int, tmp_path: Path) -> None:
    """A log that is damaged before the checkpoint's place is only told to people, and is not read."""
    interrupted(tmp_path / "run")
    undisturbed = whole(tmp_path / "whole", val=20, checkpoint_seconds=60)
    chance = random.Random(0)
    files = [path for path in (tmp_path / "run" / "training").iterdir() if path.name != LOG]
    assert {path.name for path in files} > {CHECKPOINT}
    refused = 0
    for path in files:
        for number, bad in enumerate(damages(path.read_bytes(), chance, flips)):
            folder = tmp_path / "damaged"
            shutil.copytree(tmp_path / "run", folder)
            (folder / "training" / path.name).write_bytes(bad)
            try:
                classifier().fit(*documents(40), documents(20, seed=1), out=folder)
                check_same(folder, undisturbed)  # a later epoch was better, and these weights were not needed
            except InputError as error:
                assert error.kind == "damaged-checkpoint", (path.name, number)
                assert "--resume never" in str(error)
                refused += 1
            shutil.rmtree(folder)
    assert refused > flips


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_that_may_not_be_read_are_told(folders: dict[str, Path]) -> None:
    for path in checked_files(folders["bag"]):
        path.chmod(0)
        with pytest.raises(InputError):
            model_content(path.parent)
        path.chmod(0o644)
    assert np.isfinite(model_content(folders["bag"])[2]).all()


@pytest.mark.parametrize(("before", "after"), [(b"[2,3]", b"[3,2]"), (b"F32", b"I32"), (b"F32", b"U32")])
def test_a_header_that_gives_numbers_another_type_or_shape_is_noticed(
    before: bytes, after: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "tensors"
    save_tensors(path, {"one": torch.arange(6.0).reshape(2, 3)}, {"said": "so"})
    good = path.read_bytes()
    assert good.count(before) == 1
    path.write_bytes(good.replace(before, after))
    with pytest.raises(InputError, match="checksum is wrong"):
        load_tensors(path)
