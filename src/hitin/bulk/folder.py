"""`score_folder`: every document of a folder answered once, by one engine or another, also after an interruption."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from hitin.bulk.ledger import FOLDER, Failed, Finished, Ledger
from hitin.bulk.local import score_here
from hitin.bulk.ray_engine import Cluster, check_ray, score_on_ray
from hitin.bulk.request import Request
from hitin.bulk.scoring import Outcome
from hitin.bulk.shards import Found, Shard, find_shards
from hitin.errors import InputError, shown
from hitin.locking import locked
from hitin.model_folder import is_model
from hitin.option_values import bad_option
from hitin.writing import check_folder

Engine = Literal["local", "ray"]


@dataclass
class Plan:
    """What is to be done."""

    found: Found
    todo: list[Shard] = field(default_factory=list)
    finished: list[Finished] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    """Answers that were there, but are damaged, or not of the documents as they are now."""


class Watcher:
    """Hears how far it is. This one does nothing with it."""

    def planned(self, plan: Plan) -> None:
        pass

    def advanced(self, documents: int) -> None:
        """So many more documents are answered."""

    def done(self, outcome: Outcome) -> None:
        """A shard is finished, or has failed."""


@dataclass(frozen=True)
class Scored:
    """What became of the shards."""

    finished: list[Finished]
    """By this call."""
    before: list[Finished]
    """By earlier calls."""
    failed: list[Failed]
    seconds: float
    """Of this call, once the model was loaded and it was known what is to be done."""

    @property
    def rows(self) -> int:
        """Documents that this call has answered."""
        return sum(each.rows for each in self.finished)


def score_folder(
    request: Request,
    inputs: Sequence[str | Path],
    out: str | Path,
    *,
    engine: Engine = "local",
    cluster: Cluster | None = None,
    overwrite: bool = False,
    watcher: Watcher | None = None,
) -> Scored:
    """Write the answers to every file of some folders into the folder `out`, a file for each.

    What an earlier call with the same request has finished is not done again. A file with something wrong in it is
    left out, and told at the end (`Scored.failed`); what is wrong with all of them is raised.
    """
    if engine not in ("local", "ray"):
        raise bad_option(f"there is no engine {shown(engine)}", "Choose local or ray.")
    if engine == "local" and cluster is not None:
        raise bad_option("the local engine has neither workers nor an address", "Choose the engine ray.")
    watcher = watcher or Watcher()
    found = find_shards(inputs, out, format=request.format, to=request.to)
    check_folder(out, FOLDER + ".part")
    if is_model(Path(out)):
        problem, remedy = "the folder holds a model, among whose files no answers go", "Choose another --out."
        raise InputError(problem, kind="bad-option", file=str(out), remedy=remedy)
    if engine == "ray":
        check_ray(cluster or Cluster())
    answers = request.load(device="cpu" if engine == "ray" else None)  # the workers have the devices
    ledger = Ledger(out, request.identity(answers))
    with locked(Path(out) / FOLDER, "scoring"):
        plan = _plan(found, ledger, overwrite)
        watcher.planned(plan)
        start = time.monotonic()
        if engine == "ray":
            del answers
            outcomes = score_on_ray(plan.todo, request, ledger, cluster or Cluster(), watcher.advanced)
        else:
            outcomes = score_here(plan.todo, request, answers, ledger, watcher.advanced)
        done = _told(outcomes, watcher)
        ledger.remove_leftovers(plan.todo)  # of workers that died
    finished = [each for each in done if isinstance(each, Finished)]
    failed = sorted((each for each in done if isinstance(each, Failed)), key=lambda each: each.name)
    return Scored(finished, plan.finished, failed, time.monotonic() - start)


def _plan(found: Found, ledger: Ledger, overwrite: bool) -> Plan:
    """Which shards are to be done; the answers that are there already are read and compared with their checksums."""
    ledger.begin(found.shards, overwrite=overwrite)
    ledger.remove_leftovers(found.shards)
    plan = Plan(found)
    for shard in found.shards:
        finished = ledger.finished(shard)
        if finished is not None:
            plan.finished.append(finished)
            continue
        if ledger.has_record(shard):
            plan.again.append(shard.name)
        ledger.forget(shard.name)
        plan.todo.append(shard)
    return plan


def _told(outcomes: Iterator[Outcome], watcher: Watcher) -> list[Outcome]:
    done = []
    for outcome in outcomes:
        watcher.done(outcome)
        done.append(outcome)
    return done
