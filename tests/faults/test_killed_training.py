"""A training that was killed or interrupted and begun again ends with the weights of one that nothing disturbed."""

import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hitin import HierarchicalTextClassifier, InputError
from hitin.model_folder import MANIFEST, TRAINING, WEIGHTS
from hitin.training.checkpoint import load_checkpoint
from hitin.training.loop import CHECKPOINT
from tests.faults.commands import Ended, check_same, run, run_here, train_words, whole, write_data
from tests.faults.moments import then
from tests.training_harness import (
    BERT,
    Moment,
    Nursery,
    after,
    interrupted,
    leftovers,
    tiny_bert,
    when_logged,
    when_there,
)

RUNS: list[dict[str, Any]] = [
    {"val": 20},
    {"val": 20, "accumulate": 3, "epochs": 4, "select": "micro", "consistency": 1.0, "linear_teacher": 0.3},
    {"val": 12, "method": "flat", "epochs": 5, "patience": 1, "word_dropout": 0.2},
    {"count": 60, "schedule": "cosine", "optimiser": "adam", "tokens": "subword"},
]
KILLS = 50


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as found:
        yield found


def test_a_run_killed_at_chosen_moments_ends_as_if_it_had_not_been(tmp_path: Path, nursery: Nursery) -> None:
    undisturbed = whole(tmp_path / "whole", **RUNS[0])
    moments = [
        when_there(f"{TRAINING}/{CHECKPOINT}"),
        when_logged(2),
        when_logged(4),
        when_there(WEIGHTS),
    ]
    kills = nursery.train_and_kill(tmp_path / "killed", moments, **RUNS[0])
    assert kills >= 3
    check_same(tmp_path / "killed", undisturbed)


@pytest.mark.parametrize("number", range(len(RUNS)))
def test_a_run_killed_at_random_moments_ends_as_if_it_had_not_been(
    number: int, tmp_path: Path, nursery: Nursery
) -> None:
    undisturbed = whole(tmp_path / "whole", **RUNS[number])
    chance = random.Random(number)
    nursery.train_and_kill(tmp_path / "killed", [after(chance.uniform(0.02, 0.3)) for _ in range(2)], **RUNS[number])
    check_same(tmp_path / "killed", undisturbed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", range(len(RUNS)))
def test_runs_killed_again_and_again_end_as_if_they_had_not_been(number: int, tmp_path: Path, nursery: Nursery) -> None:
    undisturbed = whole(tmp_path / "whole", **RUNS[number])
    chance, kills = random.Random(number), 0
    for attempt in range(30):
        folder = tmp_path / f"killed-{attempt}"
        moments = [after(chance.expovariate(5)) for _ in range(8)]
        moments += [when_there(name) for name in (WEIGHTS, MANIFEST) if chance.random() < 0.5]
        kills += nursery.train_and_kill(folder, moments, **RUNS[number])
        check_same(folder, undisturbed)
    assert kills > 100


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_finishes_its_step_and_goes_on_later(number: int, tmp_path: Path, nursery: Nursery) -> None:
    options: dict[str, Any] = {"val": 20, "epochs": 20, "checkpoint_seconds": 1000}
    folder = tmp_path / "model"
    assert nursery.train(folder, when_logged(3), number, **options) == 130
    assert not leftovers(folder)
    progress = load_checkpoint(folder / TRAINING / CHECKPOINT).progress
    assert 2 <= progress["epoch"] < 20
    with pytest.raises(InputError, match="not finished") as caught:
        HierarchicalTextClassifier.load(folder)
    assert caught.value.kind == "unfinished-model"
    assert nursery.train(folder, **options) == 0
    check_same(folder, whole(tmp_path / "whole", **options))


# The command, as a user gives it.


def random_moment(chance: random.Random) -> Moment:
    """While it starts and reads, trains, chooses decisions, or saves the model."""
    begun, decided = when_there(TRAINING), when_logged(4)  # the first step, and three epochs
    kinds: list[Callable[[], Moment]] = [
        lambda: after(chance.uniform(0.5, 3)),
        lambda: then(begun, after(chance.uniform(0, 0.5))),
        lambda: then(begun, after(chance.uniform(0, 0.5))),
        lambda: then(begun, when_logged(chance.randint(1, 4))),
        lambda: then(decided, after(chance.uniform(0, 0.3))),
        lambda: then(when_there(WEIGHTS), after(chance.uniform(0, 0.02))),
    ]
    return chance.choice(kinds)()


def kill_command(
    data: Path, folder: Path, moments: Iterator[Moment], most: int, finish: Callable[[list[object]], Ended] = run
) -> int:
    """Kill `hitin train` at so many moments at most, then let it end; how many kills came in time."""
    kills, words = 0, train_words(data, folder)
    for moment in moments:
        ended = run(words, folder, moment)
        if not ended.was_killed:
            assert ended.code == 0 or "holds a finished model" in ended.told()
            return kills
        kills += 1
        if kills == most:
            break
    ended = finish(words)
    assert ended.code == 0 or "holds a finished model" in ended.told()  # it was killed when all was done
    return kills


def test_the_command_ends_as_if_it_had_not_been_killed(tmp_path: Path) -> None:
    write_data(tmp_path)
    moments = iter([then(when_logged(2), after(0.01))])
    assert kill_command(tmp_path, tmp_path / "killed", moments, 1, run_here) == 1
    check_same(tmp_path / "killed", whole(tmp_path / "whole", val=20))


def test_a_kill_after_the_model_was_saved_is_told_from_a_finished_model(tmp_path: Path) -> None:
    """The state from which it could have gone on is older than the model then, and the same command removes it."""
    write_data(tmp_path)
    folder, words = tmp_path / "model", train_words(tmp_path, tmp_path / "model", validation=0)
    checkpoint = interrupted(folder)
    shutil.copytree(folder / TRAINING, tmp_path / "state")
    assert run_here(words).code == 0
    shutil.copytree(tmp_path / "state", folder / TRAINING, dirs_exist_ok=True)
    os.utime(checkpoint, (2**32, 2**32))  # that of a training which was to replace the model
    assert "holds a finished model" in run_here(words).told()
    os.utime(checkpoint, (0, 0))
    ended = run_here(words)
    assert ended.code == 0, ended.errors
    check_same(folder, whole(tmp_path / "whole", val=20))


def test_a_kill_at_the_very_end_of_tidying_up_is_tidied_up_too(tmp_path: Path) -> None:
    write_data(tmp_path)
    folder, words = tmp_path / "model", train_words(tmp_path, tmp_path / "model")
    assert run_here(words).code == 0
    shutil.copy(folder / WEIGHTS, folder / TRAINING / "epoch-3.safetensors")
    assert "holds a finished model" in run_here(words).told()
    check_same(folder, whole(tmp_path / "whole", val=20))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_fifty_random_kills_of_the_command_are_followed_by_fifty_resumes(tmp_path: Path) -> None:
    """Each kill is followed by the same command; every folder ends as the undisturbed one, to the bit."""
    write_data(tmp_path)
    undisturbed = whole(tmp_path / "whole", val=20)
    chance, kills, folders = random.Random(0), 0, 0
    while kills < KILLS:
        folder = tmp_path / f"killed-{folders}"
        moments = iter(lambda: random_moment(chance), None)
        kills += kill_command(tmp_path, folder, moments, min(chance.randint(1, 4), KILLS - kills))
        check_same(folder, undisturbed)
        folders += 1
    assert kills == KILLS


# Frozen encoders, whose first reading takes long.


@pytest.mark.slow
def test_a_run_killed_while_a_frozen_encoder_reads_ends_as_if_it_had_not_been(tmp_path: Path, nursery: Nursery) -> None:
    bert = tiny_bert(tmp_path / "bert")
    options: dict[str, Any] = {"embedding": None, "hidden": None, "layers": None, "filters": None, "kernels": None}
    options |= {"min_count": None, "count": 400, "val": 20, **BERT, "encoder": bert, "freeze": True}
    undisturbed = whole(tmp_path / "whole", **options)
    moments = [then(when_there(TRAINING), after(seconds)) for seconds in (0, 0.02, 0.05, 0.1)]
    assert nursery.train_and_kill(tmp_path / "killed", moments, **options) > 1
    check_same(tmp_path / "killed", undisturbed)
