"""Processes that train together: all of them killed, one of them, or the one that started them."""

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hitin.model_folder import MANIFEST, TRAINING
from hitin.training.loop import CHECKPOINT
from tests.faults.commands import Ended, check_same, run, start, train_words, write_data
from tests.faults.moments import then
from tests.faults.processes import all_gone, descendants, is_running
from tests.training_harness import Moment, after, when_logged, when_there

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

Choice = Callable[[dict[int, str]], list[int]]
"""Which of the processes, the launcher first, are killed."""


def trainers(processes: dict[int, str]) -> list[int]:
    """The processes that train, which the launcher starts with the same words less `--launch`."""
    return [pid for pid, name in processes.items() if " -m hitin train " in name and "--launch" not in name]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With a training that nothing disturbed."""
    folder = tmp_path_factory.mktemp("together")
    write_data(folder)
    ended = run(words(folder, folder / "whole"))
    assert ended.code == 0, ended.errors
    return folder


def words(data: Path, out: Path) -> list[object]:
    return train_words(data, out, "--launch", "2", epochs=8, batch_size=4)


def kill_some(data: Path, out: Path, moment: Moment, choice: Choice) -> tuple[Ended, dict[int, str]]:
    """A training of two processes, some of which are killed when the moment has come; and what there was of them."""
    process = start(words(data, out))
    seen: dict[int, str] = {}
    while process.poll() is None:
        if moment(out):
            seen = descendants(process.pid)
            for pid in choice({process.pid: "launcher", **seen}):
                os.kill(pid, signal.SIGKILL)
            break
        time.sleep(0.002)
    output, errors = process.communicate(timeout=200)
    return Ended(process.returncode, output, errors), seen


def test_both_killed_at_random_moments_they_end_as_if_they_had_not_been(data: Path, tmp_path: Path) -> None:
    chance = random.Random(0)
    moments = [then(when_there(TRAINING), after(chance.uniform(0, 2))) for _ in range(3)]
    moments += [when_there(f"{TRAINING}/{CHECKPOINT}"), when_logged(9), when_there(MANIFEST)]
    kills = 0
    for moment in moments:
        ended, seen = kill_some(data, tmp_path / "killed", moment, list)
        assert all_gone(seen)
        kills += ended.was_killed
    assert kills >= 3
    finish(data, tmp_path / "killed")


@pytest.mark.parametrize("rank", [0, 1])
def test_when_one_of_two_is_killed_the_other_ends_and_both_go_on_later(rank: int, data: Path, tmp_path: Path) -> None:
    def one(processes: dict[int, str]) -> list[int]:
        return [sorted(trainers(processes))[rank]]

    ended, seen = kill_some(data, tmp_path / "killed", when_logged(4), one)
    assert ended.code not in (0, -signal.SIGKILL)
    assert "Traceback" not in ended.errors, ended.errors
    assert "was ended from outside (SIGKILL)" in ended.errors
    assert all_gone(seen)
    finish(data, tmp_path / "killed")


def test_when_the_launcher_is_killed_the_same_command_goes_on(data: Path, tmp_path: Path) -> None:
    """Whom it started either ends with it, or is waited for: two trainings never share a folder."""
    ended, seen = kill_some(data, tmp_path / "killed", when_logged(4), lambda processes: [min(processes)])
    assert ended.was_killed
    again = run(words(data, tmp_path / "killed"))
    if again.code:
        assert "another process" in again.told()
        assert any(is_running(pid, name) for pid, name in seen.items()) or all_gone(seen)
    assert all_gone(seen, seconds=120)
    if not (tmp_path / "killed" / MANIFEST).is_file() or again.code:
        finish(data, tmp_path / "killed")
    check_same(tmp_path / "killed", data / "whole")


def finish(data: Path, folder: Path) -> None:
    ended = run(words(data, folder))
    assert ended.code == 0 or "holds a finished model" in ended.told()
    check_same(folder, data / "whole")
