"""Several processes that train together on this machine, started by torch's launcher."""

import atexit
import logging
import os
import signal
import sys
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from hitin.errors import HitinError, InputError
from hitin.processor import cores

THREADS = "OMP_NUM_THREADS"
LAUNCHED = "HITIN_LAUNCHED"
"""Set in processes that `launch` started."""
LOST = 3
"""How a process exits that has lost another."""
_PATIENCE = "TORCH_ELASTIC_SHUTDOWN_TIMEOUT"
_SECONDS = 120  # that processes have to finish a step and to save it
_NOTED = (signal.SIGINT, signal.SIGTERM, *(getattr(signal, name) for name in ("SIGHUP", "SIGQUIT") if os.name != "nt"))


def has_launcher() -> bool:
    """Whether this process is one of those that a launcher started: ours, torchrun or accelerate."""
    return "TORCHELASTIC_RUN_ID" in os.environ or os.environ.get("WORLD_SIZE", "1") not in ("", "1")


def is_launched() -> bool:
    """Whether `launch` started this process: what ends them all is then told by the process that did."""
    return has_launcher() and LAUNCHED in os.environ


def end_at_once(code: object) -> NoReturn:
    """End this process, one of several that trained together, without taking the interpreter down first.

    While that goes on, gloo's threads may still have a tensor to let go of, and to try it aborts the process. The group
    has been closed by then, but DistributedDataParallel leaves it, and its threads, alive (seen with torch 2.13).
    """
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def launch(processes: int, arguments: Sequence[str], device: str) -> int:
    """Run `hitin` with these arguments in so many processes; the exit code of what they have told themselves.

    `KeyboardInterrupt` is raised after an interruption, once they have saved what they did.
    """
    _check(processes, device)
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, SignalException
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=processes,
        logs_specs=DefaultLogsSpecs(log_dir=os.devnull),
        run_id=str(uuid.uuid4()),
        rdzv_endpoint="localhost:0",
        rdzv_backend="c10d",
        max_restarts=0,
        local_addr="127.0.0.1",
    )
    with _environment(processes), _quiet(), _signals():
        try:
            elastic_launch(config, sys.executable)("-P", "-m", "hitin", *arguments)
        except SignalException as error:
            raise KeyboardInterrupt from error
        except ChildFailedError as error:
            return _exit_code({rank: failure.exitcode for rank, failure in error.failures.items()}, processes)
    return 0


def _check(processes: int, device: str) -> None:
    import torch

    from hitin.devices import choose_device

    if has_launcher():
        raise InputError(
            "--launch stands in a process that a launcher has started already",
            kind="bad-option",
            remedy="Leave out --launch: torchrun or accelerate says how many processes there are.",
        )
    chosen = choose_device(device).type
    if chosen == "mps" or (chosen == "cuda" and processes > torch.cuda.device_count()):
        count = 1 if chosen == "mps" else torch.cuda.device_count()
        raise InputError(
            f"--launch {processes} needs a GPU for each process, and there {'is' if count == 1 else 'are'} {count}",
            kind="bad-option",
            remedy=f"Choose --launch {count}, or --device cpu.",
        )


def _exit_code(codes: Mapping[int, int], processes: int) -> int:
    """That of the process which began it, not of those which lost it. A process that was killed could tell nothing."""
    told = [code for code in codes.values() if code > 0 and code != LOST]
    killed = {rank: -code for rank, code in codes.items() if code < 0}
    if killed and not told:
        # that signal is also how the launcher ends the others
        rank, number = min(killed.items(), key=lambda each: each[1] == signal.SIGTERM)
        raise HitinError(
            f"process {rank + 1} of {processes} was ended from outside ({_name_of(number)}), and so are the others."
            "\nIf no one did so on purpose, there may be too little memory: set batch_size lower, or --launch."
        )
    if not told:
        raise HitinError(
            "the processes of this training do not hear each other any more, and have ended.\n"
            f"torchrun --nproc-per-node {processes} -m hitin train, with the same words, shows why."
        )
    return told[0]


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@contextmanager
def _environment(processes: int) -> Iterator[None]:
    """What the processes are told: to share the cores, and who started them."""
    said = {LAUNCHED: "1", THREADS: str(max(1, cores() // processes)), _PATIENCE: str(_SECONDS)}
    added = {name: value for name, value in said.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what the launcher says of processes that end: we say it."""
    logger = logging.getLogger("torch.distributed.elastic")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(before)


@contextmanager
def _signals() -> Iterator[None]:
    """The launcher has its own way with signals; afterwards they are treated as before."""
    before: dict[int, Any] = {number: signal.getsignal(number) for number in _NOTED}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
