"""Ctrl-C once, twice, and a polite kill of the command: nothing is lost, and it says how to go on."""

import os
import signal
import time
from pathlib import Path

import pytest

from hitin.model_folder import TRAINING
from hitin.training.loop import CHECKPOINT
from tests.faults.commands import Ended, check_same, run, start, train_words, whole, write_data
from tests.training_harness import Moment, leftovers, when_logged

LONG = pytest.mark.slow


def signalled(words: list[object], folder: Path, moment: Moment, *numbers: int) -> Ended:
    """A command that gets signals one after the other, when the moment has come."""
    process = start(words)
    while process.poll() is None and not moment(folder):
        time.sleep(0.001)
    for number in numbers:
        os.kill(process.pid, number)
        time.sleep(0.005)
    out, errors = process.communicate(timeout=100)
    return Ended(process.returncode, out, errors)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "numbers",
    [
        pytest.param((signal.SIGINT,), marks=LONG),
        (signal.SIGTERM,),
        pytest.param((signal.SIGINT, signal.SIGINT), marks=LONG),
        pytest.param((signal.SIGTERM, signal.SIGINT), marks=LONG),
    ],
)
@pytest.mark.parametrize("seconds", [pytest.param(0, marks=LONG), 1000])
def test_the_command_ends_by_a_signal_and_goes_on_later(seconds: int, numbers: tuple[int, ...], tmp_path: Path) -> None:
    write_data(tmp_path)
    folder, epochs = tmp_path / "model", 40
    words = train_words(tmp_path, folder, checkpoint_seconds=seconds, epochs=epochs)
    ended = signalled(words, folder, when_logged(3), *numbers)
    assert ended.code == 130, (ended.code, ended.errors)
    assert "Traceback" not in ended.errors
    assert (folder / TRAINING / CHECKPOINT).is_file()
    assert "Go on with: " in ended.errors
    again = run(words)
    assert again.code == 0, again.errors
    assert "going on after" in again.errors
    assert not leftovers(folder)
    check_same(folder, whole(tmp_path / "whole", val=20, epochs=epochs))
