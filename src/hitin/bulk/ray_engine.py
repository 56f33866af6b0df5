"""The engine `ray`: actors of Ray Data on one machine or many, each with the model. Ray shares the shards out; the
actors read and write the files themselves, so that nothing of the size of the data goes through Ray."""

import json
import logging
import os
import secrets
import signal
import socket
import threading
import warnings
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hitin.answers import Answers
from hitin.bulk.ledger import Failed, Finished, Ledger, Stamp
from hitin.bulk.request import Request
from hitin.bulk.scoring import Outcome, score_shard
from hitin.bulk.shards import Shard
from hitin.errors import HitinError, InputError, counted, first_line
from hitin.extras import need
from hitin.model import Advance
from hitin.option_values import bad_option
from hitin.processor import cores

_RETRIES = 4  # of a shard whose actor dies: the next is no better when it is the shard that kills them
_IN_FLIGHT = 2  # shards an actor is given at once: one at work, and the next one known
_PATIENCE = 5.0  # seconds in which a cluster answers; Ray would wait for a minute, and not hear of Ctrl-C
_MOST_BLOCKS = 10_000  # of shards, of which Ray keeps a little for each
_STORE = 1 << 27  # bytes of Ray's object store on this machine, through which only the names of shards go
_LONGEST = 40  # characters of a folder for Ray's sockets, whose whole path may have about a hundred
_TALK = ("enable_progress_bars", "print_on_execution_start")
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}


@dataclass(frozen=True)
class Cluster:
    """Where Ray runs, and how many workers do."""

    address: str | None = None
    """Of a cluster that runs; none starts Ray on this machine, for as long as it takes."""
    workers: int | None = None
    """Processes that have the model; one for each GPU or each two cores where it is not said."""

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise bad_option(f"workers is {self.workers}", "It is at least 1.")


@dataclass(frozen=True)
class Share:
    """What each of the workers gets."""

    workers: int
    cores: float
    gpus: int = 0

    @property
    def threads(self) -> int:
        return max(1, int(self.cores))


def check_ray(cluster: Cluster) -> None:
    """Refuse what cannot be, before any work: without Ray, or a cluster that does not answer."""
    ray = _ray()
    if cluster.address and not ray.is_initialized():
        _check_answers(cluster.address)


def _ray() -> Any:
    ray = need("ray", extra="ray", purpose="The engine ray")
    need("ray.data", extra="ray", purpose="The engine ray")
    return ray


def score_on_ray(
    shards: Sequence[Shard], request: Request, ledger: Ledger, cluster: Cluster, advance: Advance
) -> Iterator[Outcome]:
    """What became of each shard, as it comes."""
    if not shards:
        return
    ray = _ray()
    files = {shard.name: shard.file for shard in shards}
    with _running(ray, cluster), _quiet(ray), closing(_rows(ray, shards, request, ledger, cluster)) as rows:
        for row in rows:
            outcome = _from_row(json.loads(row["told"]))
            if isinstance(outcome, Finished):
                advance(outcome.rows)
            elif outcome.error.file == str(Path(files[outcome.name]).absolute()):
                outcome.error.file = files[outcome.name]  # as the user called it
            yield outcome


def _rows(
    ray: Any, shards: Sequence[Shard], request: Request, ledger: Ledger, cluster: Cluster
) -> Generator[Mapping[str, Any]]:
    """What the actors tell, a row for each shard."""
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    share = share_out(machines, cluster.workers, len(shards), request.device)
    named = [{"shard": json.dumps(asdict(replace(each, file=str(Path(each.file).absolute()))))} for each in shards]
    pool = ray.data.ActorPoolStrategy(size=share.workers, max_tasks_in_flight_per_actor=_IN_FLIGHT)
    told = ray.data.from_items(named, override_num_blocks=min(len(named), _MOST_BLOCKS)).map_batches(
        ScoringActor,
        fn_constructor_args=(request.absolute(), str(ledger.out.absolute()), ledger.asked, share.threads),
        compute=pool,
        batch_size=1,
        num_cpus=share.cores,
        num_gpus=share.gpus or None,
        max_restarts=-1,  # machines may be lost again and again
        max_task_retries=_RETRIES,
    )
    try:
        yield from told.iter_rows()
    except ray.exceptions.RayError as error:
        raise HitinError(
            f"a worker of Ray failed: {_reason(error)}\nWhat is finished stays: the same command goes on from there."
        ) from error


class ScoringActor:
    """A process with the model, to which Ray Data gives shards."""

    def __init__(self, request: Request, out: str, asked: Mapping[str, Any], threads: int) -> None:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # for onnxruntime
        self._request, self._threads = request, threads
        self._ledger = Ledger(out, {name: value for name, value in asked.items() if name != "format"})
        self._answers: Answers | None = None

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, list[str]]:
        """What became of the shards of a batch. An error that concerns all is told, too: Ray would try it again."""
        told = []
        for text in batch["shard"]:
            shard = Shard(**json.loads(str(text)))
            try:
                told.append(_to_row(score_shard(shard, self._request, self._loaded(), self._ledger)))
            except InputError as error:
                told.append({"stopped": _error_fields(error)})
            except HitinError as error:
                told.append({"stopped": {"message": str(error)}})
        return {"told": [json.dumps(row) for row in told]}

    def _loaded(self) -> Answers:
        """The model, which must be what the driver has under this name."""
        if self._answers is None:
            import torch

            torch.set_num_threads(self._threads)
            answers = self._request.load()
            if Ledger(self._ledger.out, self._request.identity(answers)).key != self._ledger.key:
                raise InputError(
                    "another model lies here on the machine of a worker",
                    kind="other-model",
                    file=self._request.model,
                    remedy="Model, documents and answers must be the same under the same path on all machines.",
                )
            self._answers = answers
        return self._answers


def _to_row(outcome: Outcome) -> dict[str, Any]:
    if isinstance(outcome, Finished):
        return {"finished": asdict(outcome)}
    return {"failed": outcome.name, "error": _error_fields(outcome.error)}


def _from_row(row: Mapping[str, Any]) -> Outcome:
    """What `_to_row` was given; what concerns all is raised."""
    if "stopped" in row:
        fields = row["stopped"]
        raise InputError(**fields) if "kind" in fields else HitinError(fields["message"])
    if "failed" in row:
        return Failed(row["failed"], InputError(**row["error"]))
    return Finished(**{**row["finished"], "input": Stamp(**row["finished"]["input"])})


def _error_fields(error: InputError) -> dict[str, Any]:
    return {name: getattr(error, name) for name in ("message", "kind", "file", "line", "remedy")}


def _reason(error: BaseException) -> str:
    """What lies at the bottom of an error of Ray's, in a line."""
    return first_line(getattr(error, "cause", None) or error.__cause__ or error)


def share_out(machines: Sequence[Mapping[str, float]], workers: int | None, shards: int, device: str) -> Share:
    """Workers, and what each gets of machines with these resources: a GPU, or the cores shared out."""
    cores, gpus = (sum(each.get(name, 0.0) for each in machines) for name in ("CPU", "GPU"))
    if device.startswith("cuda") or (device == "auto" and gpus):
        if (workers or 1) > gpus:
            raise bad_option(
                f"{counted(workers or 1, 'worker needs a GPU', 'workers need a GPU each')}, the cluster has {gpus:g}",
                "Name fewer with --workers, or take --device cpu.",
            )
        return Share(min(workers or int(gpus), shards), 1.0, 1)
    count = min(workers or max(1, int(cores) // 2), shards)
    each = min([cores / count, *(machine["CPU"] for machine in machines if machine.get("CPU"))])
    return Share(count, float(int(each)) if each >= 1 else int(1000 * each) / 1000)


@contextmanager
def _running(ray: Any, cluster: Cluster) -> Iterator[None]:
    """Ray, as it runs in this process already, of the cluster that is named, or for this while only."""
    if ray.is_initialized():
        yield
        return
    for name, value in (_QUIET if cluster.address else _QUIET | _own_token()).items():
        os.environ.setdefault(name, value)
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    with _own_options(cluster) as own, _kills_as_before():
        try:
            with _no_standard_error():  # on which its C++ tells that it will tell no more
                ray.init(address=cluster.address or "local", **quiet, **own)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            raise _no_ray(cluster.address, error) from error
        try:
            yield
        finally:
            ray.shutdown()


@contextmanager
def _kills_as_before() -> Iterator[None]:
    """Ray treats a polite kill in its own way, also when it has ended or could not begin."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():  # where Ray sets it
            signal.signal(signal.SIGTERM, before)


@contextmanager
def _own_options(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """What Ray on this machine is told; its logs go with it, where the path of its sockets is short enough."""
    if cluster.address:
        yield {}
        return
    found: dict[str, Any] = {"include_dashboard": False, "object_store_memory": _STORE, "num_cpus": cores()}
    with TemporaryDirectory(prefix="hitin-", ignore_cleanup_errors=True) as folder:
        yield found | ({"_temp_dir": folder} if len(folder) <= _LONGEST else {})


def _check_answers(address: str) -> None:
    """Refuse an address at which no one listens."""
    host, _, port = address.rpartition(":")
    if "://" in address or not port.isdecimal():  # `auto`, or of a kind that Ray has to make out
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _no_ray(address, error) from error


@cache  # for Ray reads it once in a process
def _own_token() -> dict[str, str]:
    """A password for Ray on this machine, unless there is one. Ray would make one and leave it in the home folder."""
    given = any(name in os.environ for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"))
    return {} if given else {"RAY_AUTH_TOKEN": secrets.token_hex(32)}


@contextmanager
def _no_standard_error() -> Iterator[None]:
    """What this process and its children write there for a while goes nowhere."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


@contextmanager
def _quiet(ray: Any) -> Iterator[None]:
    """Ray Data neither draws bars nor tells of its plans, and what it deprecates is not ours; how far it is, we say."""
    logger = logging.getLogger("ray.data")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        context = ray.data.DataContext.get_current()
        before = {name: getattr(context, name) for name in _TALK if hasattr(context, name)}, logger.level
        _set(context, dict.fromkeys(before[0], False))
        logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            _set(context, before[0])
            logger.setLevel(before[1])


def _set(context: Any, values: Mapping[str, Any]) -> None:
    for name, value in values.items():
        setattr(context, name, value)


def _no_ray(address: str | None, error: Exception) -> InputError:
    where = f"the Ray cluster at {address}" if address else "Ray on this machine"
    return InputError(
        f"{where} cannot be used ({first_line(error)})",
        kind="no-ray",
        remedy="Does `ray status` answer there? A cluster with a token wants RAY_AUTH_MODE=token here, too."
        if address
        else "Try --engine local.",
    )
