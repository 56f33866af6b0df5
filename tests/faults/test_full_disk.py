"""A disk that is full is told with the file and what to do; with more room the same command ends as if it had been."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hitin import HierarchicalTextClassifier, InputError
from hitin.model_folder import EXPORT, MANIFEST, is_model
from hitin.training.checkpoint import CHECKPOINT
from hitin.training.log import LOG
from tests.conftest import Run
from tests.faults.commands import check_same, run, train_words, whole, write_data
from tests.faults.small_disk import files_of_at_most, small_disk
from tests.serving import copied
from tests.training_harness import classifier, documents, leftovers

ROOM = "that the disk has room"


def train(folder: Path) -> None:
    given = *documents(40), documents(20, seed=1)
    classifier(checkpoint_seconds=0).fit(*given, out=folder)


@pytest.mark.parametrize("size", [0, 50, 5_000])
def test_a_training_whose_files_find_no_room_tells_it_and_goes_on_when_there_is(size: int, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    with pytest.raises(InputError) as caught, files_of_at_most(size):
        train(folder)
    assert caught.value.kind == "unwritable"
    assert ROOM in str(caught.value)
    assert str(folder) in str(caught.value.file)
    assert not is_model(folder)
    assert not leftovers(folder)
    train(folder)
    check_same(folder, whole(tmp_path / "whole", val=20))


def test_each_file_of_a_training_is_named_where_it_finds_no_room(tmp_path: Path) -> None:
    """The log is the smallest, the checkpoint the largest."""
    train(tmp_path / "whole")
    told = set()
    for size in (0, 50, 3_000, 20_000):
        try:
            with files_of_at_most(size):
                train(tmp_path / str(size))
        except InputError as error:
            told.add(Path(str(error.file)).name)
    assert {LOG, CHECKPOINT} <= told


def test_answers_that_find_no_room_are_not_begun(tickets: Path, tmp_path: Path, run: Run) -> None:
    texts, out = tmp_path / "texts.txt", tmp_path / "answers.jsonl"
    texts.write_text("the code does not come\n" * 500)
    with files_of_at_most(20_000):
        result = run("predict", tickets, texts, "--out", out)
    assert result.exit_code == 2
    assert ROOM in result.stderr
    assert sorted(tmp_path.iterdir()) == [texts]
    assert run("predict", tickets, texts, "--out", out).exit_code == 0
    assert len(out.read_text().splitlines()) == 500


@pytest.mark.slow
def test_an_export_that_finds_no_room_leaves_the_one_before(exported_tickets: Path, tmp_path: Path, run: Run) -> None:
    model = copied(exported_tickets, tmp_path / "model")
    before = (model / "onnx" / EXPORT).read_bytes()
    with files_of_at_most(20_000):
        result = run("export", model)
    assert result.exit_code == 2
    assert ROOM in result.stderr
    assert (model / "onnx" / EXPORT).read_bytes() == before
    assert not [path for path in model.iterdir() if path.name.startswith(".")]
    HierarchicalTextClassifier.load(model / "onnx", device="cpu")


# A real disk, and the commands as a user gives them.


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_command_on_a_full_disk_goes_on_when_there_is_room(tmp_path: Path) -> None:
    """From a disk that holds nothing to one on which all but the last file fits."""
    write_data(tmp_path)
    undisturbed = whole(tmp_path / "whole", val=20)
    needed = sum(path.stat().st_size for path in undisturbed.rglob("*") if path.is_file()) // 1024
    told: set[str] = set()
    for kib in (4, 12, 40, *range(48, 2 * needed, max(needed // 8, 1))):
        with small_disk(tmp_path / "disk", kib) as disk:
            words = train_words(tmp_path, disk.folder / "model")
            ended = run(words, within=disk.within)
            if ended.code == 0:
                break
            assert ROOM in ended.told()
            told.add(Path(ended.told().split(": ")[1]).name)
            assert not (disk.seen_from_outside / "model" / MANIFEST).exists()
            disk.resize(100 * needed)
            assert run(words, within=disk.within).code == 0
            check_same(disk.copy_to(tmp_path / f"after-{kib}") / "model", undisturbed)
    assert len(told) > 1, told


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("verb", ["predict", "export", "tune", "bulk"])
def test_other_commands_on_a_full_disk_end_well_when_there_is_room(verb: str, tickets: Path, tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    for number in range(3):
        lines = [json.dumps({"text": f"the code {line} does not come", "label": []}) + "\n" for line in range(900)]
        (texts / f"{number}.jsonl").write_text("".join(lines))
    with small_disk(tmp_path / "disk", 60_000) as disk:
        model = disk.folder / "model"
        copy_in(disk.within, tickets, model)
        words: dict[str, list[Any]] = {
            "predict": ["predict", model, texts / "0.jsonl", "--out", disk.folder / "answers.jsonl"],
            "export": ["export", model, "--out", disk.folder / "onnx"],
            "tune": ["tune", model],
            "bulk": ["predict", model, texts, "--out", disk.folder / "answers"],
        }
        made: dict[str, Callable[[Path], list[bytes]]] = {
            "predict": lambda root: [(root / "answers.jsonl").read_bytes()],
            "export": lambda root: [(root / "onnx" / "model.onnx").read_bytes()],
            "tune": lambda root: [(root / "model" / "decisions.json").read_bytes()],
            "bulk": lambda root: [path.read_bytes() for path in sorted((root / "answers").glob("*.jsonl"))],
        }
        fill(disk.within, disk.folder / "filler")
        ended = run(words[verb], within=disk.within)
        assert ROOM in ended.told()
        hidden = [path for path in disk.seen_from_outside.rglob(".*") if path.is_file()]
        assert not [path for path in hidden if path.name.endswith(".part")], hidden
        (disk.seen_from_outside / "filler").unlink()
        again = run(words[verb], within=disk.within)
        assert again.code == 0, again.errors
        found = made[verb](disk.copy_to(tmp_path / "after"))
    root = copied(tickets, tmp_path / "plain" / "model").parent
    plain = [str(word).replace(str(tmp_path / "disk"), str(root)) for word in words[verb]]
    assert run(plain).code == 0
    assert found == made[verb](root)


def copy_in(within: list[str], original: Path, copy: Path) -> None:
    subprocess.run([*within, "cp", "-r", str(original), str(copy)], check=True)


def fill(within: list[str], filler: Path) -> None:
    """All that is left of a disk."""
    subprocess.run([*within, "sh", "-c", 'cat /dev/zero > "$0" 2> /dev/null', str(filler)], check=False)
