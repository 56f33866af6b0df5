"""A model takes the place of nothing that is a user's: what is refused before training, and what a kill left is not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from hitin import InputError
from hitin.model_place import check_place
from tests.conftest import Run
from tests.test_train_command import DATA
from tests.training_harness import classifier, documents, fitted

ONE_EPOCH = ("--encoder", "bag", "--epochs", 1)
USERS = {
    "README.md": "# My project\n",
    "baselines/results.csv": "a,b\n",
    "vocabulary.txt": "word\n",
    "taxonomy.json": "{}\n",
    "model.json": "{}\n",
    "model.safetensors": "weights of another program",
    "training": "a file\n",
    "training/log.jsonl": '{"day": 1}\n',
    "training/.lock": "mine\n",
    "training/best-micro.safetensors": "mine\n",
    "training/baselines/old.csv": "a,b\n",
    "training/baselines/linear/results.csv": "a,b\n",
}


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("name", USERS)
def test_what_a_model_would_replace_is_refused_before_training(name: str, run: Run, tmp_path: Path) -> None:
    put(tmp_path, name, USERS[name])
    before = contents(tmp_path)
    for options in ((), ("--overwrite",)):
        result = run("train", *DATA, "--out", tmp_path, *ONE_EPOCH, *options)
        assert result.exit_code == 2
        assert f"{tmp_path / name.removesuffix('/results.csv')}: this belongs to no model" in result.stderr
        assert "Choose another folder" in result.stderr
        assert contents(tmp_path) == before


def test_python_refuses_it_too(tmp_path: Path) -> None:
    mine = put(tmp_path, "README.md", "# My project\n")
    with pytest.raises(InputError, match=r"README\.md: this belongs to no model") as caught:
        classifier().fit(*documents(16), out=tmp_path)
    assert caught.value.kind == "file-exists"
    with pytest.raises(InputError, match=r"README\.md: this belongs to no model"):
        fitted().save(tmp_path)
    assert contents(tmp_path) == {"README.md": mine.read_bytes()}


def test_weights_of_another_program_are_not_taken_for_a_model_half_saved(tmp_path: Path) -> None:
    save_file({"weight": torch.zeros(2)}, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError, match="belongs to no model"):
        check_place(tmp_path)


def test_a_folder_of_other_things_may_have_a_model_among_them(run: Run, tmp_path: Path) -> None:
    notes, training = put(tmp_path, "notes.txt", "mine"), put(tmp_path, "training/plan.txt", "mine")
    assert run("train", *DATA, "--out", tmp_path, *ONE_EPOCH).exit_code == 0
    assert run("train", *DATA, "--out", tmp_path, *ONE_EPOCH, "--overwrite").exit_code == 0
    assert notes.read_text() == training.read_text() == "mine"


def test_a_folder_without_a_name_is_refused(
    run: Run, write: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("README.md", "mine")
    monkeypatch.chdir(tmp_path)
    result = run("train", *DATA, "--out", "", *ONE_EPOCH)
    assert result.exit_code == 2
    assert "the name of the folder is empty" in result.stderr
    assert contents(tmp_path) == {"README.md": b"mine"}


LEFT_BY_KILLS: dict[str, Callable[[Path], object]] = {
    "before the first step": lambda folder: put(folder, "training/.lock", ""),
    "before the first checkpoint": lambda folder: put(folder, "training/log.jsonl", ""),
    "with a line in the log": lambda folder: put(folder, "training/log.jsonl", '{"batch": 20, "epoch": 1}\n'),
    "with a full disk": lambda folder: put(folder, "training/log.jsonl", '{"bat'),
    "while a baseline was trained": lambda folder: put(folder, "training/baselines/linear/begun.json", "{}\n"),
    "when a baseline began": lambda folder: put(folder, "training/baselines/linear/.0123.part", ""),
    "while it was saved": lambda folder: (folder / "model.json").unlink(),
}


@pytest.mark.parametrize("case", LEFT_BY_KILLS)
def test_what_a_kill_left_is_gone_on_with(case: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    if "saved" in case:
        fitted().save(folder)
    LEFT_BY_KILLS[case](folder)
    check_place(folder)


def test_the_first_file_of_a_model_tells_that_it_is_one(tmp_path: Path) -> None:
    fitted().save(tmp_path / "model")
    for path in (tmp_path / "model").iterdir():
        if path.name not in ("model.safetensors", "README.md"):
            path.unlink()
    check_place(tmp_path / "model")


def test_a_model_with_damage_may_be_replaced(tmp_path: Path) -> None:
    for name in ("model.json", "model.safetensors"):
        folder = tmp_path / name
        fitted().save(folder)
        (folder / name).write_bytes(b"damaged")
        fitted().save(folder)
        assert "hitin" in json.loads((folder / "model.json").read_text())
