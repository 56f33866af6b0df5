"""A bulk run that is killed, whole or in part, and begun again: each document is answered once, as it should be."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.faults import bulk
from tests.faults.commands import Ended, run, run_here, start
from tests.faults.damage import damages, flipped
from tests.faults.moments import then
from tests.faults.processes import all_gone, descendants
from tests.training_harness import Moment, after, when_there

KILLS = 20
SHARDS, ROWS = 16, 2500
REQUEST = f"{bulk.KEPT}/request.json"
RAY = ("--engine", "ray", "--workers", "2")


class Work:
    """Documents, the answers that a run gives which nothing disturbs, and how long it takes to find them."""

    def __init__(self, model: Path, root: Path, shards: int, rows: int) -> None:
        self.model, self.root = model, root
        self.documents = bulk.write_shards(root / "documents", shards, rows)
        started = time.monotonic()
        ended = run_here(self.words(root / "whole"))
        assert ended.code == 0, ended.errors
        self.seconds = time.monotonic() - started
        self.right = bulk.answers(root / "whole")
        assert len(self.right) == shards
        self.ids = bulk.ids_of_documents(self.documents)
        assert len(set(self.ids)) == shards * rows

    def words(self, out: Path, *more: object) -> list[object]:
        return ["predict", self.model, self.documents, "--out", out, "--device", "cpu", *more]

    def check(self, out: Path) -> None:
        assert bulk.ids(out) == self.ids
        assert bulk.answers(out) == self.right
        assert not bulk.leftovers(out)


@pytest.fixture(scope="module")
def work(tickets: Path, tmp_path_factory: pytest.TempPathFactory) -> Work:
    return Work(tickets, tmp_path_factory.mktemp("bulk"), SHARDS, ROWS)


def kill_and_finish(
    work: Work, out: Path, moments: Sequence[Moment], *more: object, finish: Callable[[list[object]], Ended] = run
) -> int:
    """Kill a run at each moment and begin again, to the end; how many kills came in time."""
    kills = 0
    for moment in moments:
        ended = run(work.words(out, *more), out, moment)
        if not ended.was_killed:
            assert ended.code == 0, ended.errors
            break
        kills += 1
    ended = finish(work.words(out, *more))
    assert ended.code == 0, ended.errors
    work.check(out)
    return kills


def test_a_bulk_run_that_is_killed_answers_each_document_once(tickets: Path, tmp_path: Path) -> None:
    small = Work(tickets, tmp_path, 6, 1500)
    first = when_there("part-0/000.jsonl")
    assert kill_and_finish(small, tmp_path / "killed", [first], finish=run_here) == 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_twenty_random_kills_of_a_bulk_run_are_followed_by_twenty_restarts(
    engine: str, work: Work, tmp_path: Path
) -> None:
    chance, kills, more = random.Random(0), 0, RAY if engine == "ray" else ()
    while kills < KILLS:
        out = tmp_path / f"killed-{kills}"
        wanted = min(chance.randint(1, 4), KILLS - kills)
        moments = [then(when_there(REQUEST), after(chance.uniform(0, 0.8 * work.seconds))) for _ in range(wanted)]
        kills += kill_and_finish(work, out, moments, *more)
        shutil.rmtree(out)
    assert kills == KILLS


# Parts of a cluster.


def kill_one(work: Work, out: Path, is_meant: Callable[[str], bool]) -> tuple[Ended, dict[int, str]]:
    """A run on Ray one of whose processes is killed once some answers are there; and all its processes."""
    process = start(work.words(out, *RAY))
    seen: dict[int, str] = {}
    is_killed = False
    while process.poll() is None and not is_killed:
        if bulk.answers(out) if out.exists() else {}:
            seen |= descendants(process.pid)
            meant = [pid for pid, name in seen.items() if is_meant(name)]
            assert meant, seen
            os.kill(meant[0], signal.SIGKILL)
            is_killed = True
        time.sleep(0.01)
    output, errors = process.communicate(timeout=240)
    assert is_killed
    return Ended(process.returncode, output, errors), seen


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_worker_that_is_killed_is_replaced(work: Work, tmp_path: Path) -> None:
    ended, processes = kill_one(work, tmp_path / "out", lambda name: "ScoringActor" in name or "MapWorker" in name)
    assert ended.code == 0, ended.errors
    work.check(tmp_path / "out")
    assert all_gone(processes)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_when_ray_itself_is_killed_the_same_command_goes_on(work: Work, tmp_path: Path) -> None:
    ended, processes = kill_one(work, tmp_path / "out", lambda name: "raylet/raylet" in name.split(" ")[0])
    assert ended.code != 0
    assert "Traceback" not in ended.errors, ended.errors[-2000:]
    assert all_gone(processes)
    assert run(work.words(tmp_path / "out", *RAY)).code == 0
    work.check(tmp_path / "out")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_when_the_driver_is_killed_nothing_of_ray_stays_behind(work: Work, tmp_path: Path) -> None:
    process = start(work.words(tmp_path / "out", *RAY))
    while process.poll() is None and not (bulk.answers(tmp_path / "out") if (tmp_path / "out").exists() else {}):
        time.sleep(0.01)
    processes = descendants(process.pid)
    assert len(processes) > 2
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    ended = run(work.words(tmp_path / "out"))  # while workers of before may still be there
    assert ended.code == 0, ended.errors
    assert all_gone(processes)
    work.check(tmp_path / "out")


# Damage.


@pytest.mark.parametrize("flips", [0, pytest.param(10, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])])
def test_answers_that_were_damaged_are_noticed_and_made_again(flips: int, tickets: Path, tmp_path: Path) -> None:
    small, chance = Work(tickets, tmp_path, 4, 20), random.Random(0)
    out = tmp_path / "out"
    assert run_here(small.words(out)).code == 0
    files = [path for path in out.rglob("*") if path.is_file() and path.stat().st_size]
    assert len(files) > 8
    for path in files:
        good = path.read_bytes()
        for bad in damages(good, chance, flips) if flips else [flipped(good, chance)]:
            path.write_bytes(bad)
            ended = run_here(small.words(out))
            if ended.code:  # the list of what was asked
                assert "--overwrite" in ended.told()
                path.write_bytes(good)
            small.check(out)
