"""Running the cells of a comparison, each in a process of its own, on one or several devices."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hitin.compare.cells import ERRORS, FAILURE, TRAINED, Cell, Plan, cell_key, once, tidy
from hitin.compare.events import Event
from hitin.compare.places import Place
from hitin.compare.worker import Task
from hitin.console import INTERRUPTED
from hitin.writing import write_text

_LAST_LINES = 30  # of what a failed process complained about
_STOPPED = (INTERRUPTED, -signal.SIGTERM)  # the second before it can save anything


class Audience:
    """Told how the cells go; this one does not care."""

    def begin(self, cell: Cell, place: Place) -> None:
        """The process of a cell starts."""

    def event(self, cell: Cell, event: Event) -> None:
        """It tells something (see `hitin.compare.events`)."""

    def finished(self, cell: Cell, result: dict[str, Any], seconds: float) -> None:
        """Its result is there."""

    def failed(self, cell: Cell, message: str) -> None:
        """It has none."""

    def stopping(self, cells: int) -> None:
        """An interruption: so many processes save their state."""


@dataclass
class Outcome:
    """What became of the cells."""

    failures: dict[str, str] = field(default_factory=dict)
    """Why, by the name of the cell."""
    is_interrupted: bool = False


def run_cells(
    plan: Plan,
    cells: Sequence[Cell],
    data_keys: Mapping[str, str],
    places: Sequence[Place],
    *,
    keep_models: bool = False,
    audience: Audience | None = None,
) -> Outcome:
    """Train and score what is not finished. A cell that fails does not stop the others."""
    told = audience or Audience()
    waiting = deque(_unfinished(cells, keep_models))
    running = _Running(plan, data_keys, places, keep_models, told)
    with _polite_kills(), running.ended_with_us():
        try:
            while waiting or running.processes:
                while waiting and running.free:
                    running.start(waiting.popleft())
                running.look()
        except KeyboardInterrupt:
            running.outcome.is_interrupted = True
            running.stop()
    return running.outcome


def _unfinished(cells: Iterable[Cell], keep_models: bool) -> Iterator[Cell]:
    """Those that are to be trained."""
    for cell in once(cells):
        if cell.result() is None:
            yield cell
        elif (cell.folder / TRAINED).is_file():  # killed when it had its result
            tidy(cell.folder, keep_model=keep_models)


@contextmanager
def _polite_kills() -> Iterator[None]:
    """A polite kill is as good as Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():  # elsewhere signals do not arrive
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@dataclass
class _Process:
    cell: Cell
    place: Place
    child: subprocess.Popen[str]
    started: float
    error: str | None = None
    listener: threading.Thread | None = None

    def kill(self) -> None:
        """End it at once, and let go of what it said."""
        self.child.kill()
        self.child.wait()
        if self.listener:
            self.listener.join()
        self.child.communicate()


class _Running:
    """The processes under way."""

    def __init__(
        self, plan: Plan, data_keys: Mapping[str, str], places: Sequence[Place], keep_models: bool, audience: Audience
    ) -> None:
        self.plan, self.data_keys, self.keep_models, self.audience = plan, data_keys, keep_models, audience
        self.at_once = len(places)
        self.free = list(places)
        self.processes: dict[Path, _Process] = {}
        self.outcome = Outcome()
        self._events: queue.Queue[tuple[Path, Event | None]] = queue.Queue()

    def start(self, cell: Cell) -> None:
        place = self.free.pop(0)
        cell.folder.mkdir(parents=True, exist_ok=True)
        (cell.folder / FAILURE).unlink(missing_ok=True)
        with (cell.folder / ERRORS).open("wb") as errors:
            child = subprocess.Popen(
                [sys.executable, "-m", "hitin.compare.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
                env=os.environ | place.environment,
                process_group=0,  # Ctrl-C comes to us alone, and we pass it on once
            )
        process = self.processes[cell.folder] = _Process(cell, place, child, time.monotonic())
        self.audience.begin(cell, place)
        assert child.stdin is not None
        try:
            child.stdin.write(self._task(cell, place).to_json() + "\n")
            child.stdin.flush()  # it stays open: the process ends when it is closed
        except BrokenPipeError:  # which is told when its output ends
            pass
        listener = threading.Thread(target=self._listen, args=(cell.folder, child), daemon=True)
        listener.start()
        process.listener = listener

    def _task(self, cell: Cell, place: Place) -> Task:
        run = cell.row.run.with_training(seed=cell.seed)
        written = cell.row.written or cell.row.run
        return Task(
            data=self.plan.data_set(cell.data),
            row=cell.row.name,
            seed=cell.seed,
            folder=str(cell.folder),
            key=cell_key(cell.row, self.data_keys[cell.data]),
            data_key=self.data_keys[cell.data],
            options={name: value for section in run.to_dict().values() for name, value in section.items()},
            run=written.with_training(seed=cell.seed).to_toml(),
            encoder=written.encoder_name,
            device=place.device,
            keep_model=self.keep_models,
            at_once=self.at_once,
        )

    def _listen(self, folder: Path, child: "subprocess.Popen[str]") -> None:
        """In a thread: what a process tells, then its end."""
        assert child.stdout is not None
        for line in child.stdout:
            try:
                event = json.loads(line)
            except ValueError:  # cut short by a kill
                continue
            self._events.put((folder, event))
        self._events.put((folder, None))

    def look(self) -> None:
        """Wait for something to happen, and see to it."""
        folder, event = self._events.get()
        process = self.processes[folder]
        if event is None:
            self._end(process)
            return
        if event["kind"] == "error":
            process.error = event["message"]
        self.audience.event(process.cell, event)

    def _end(self, process: _Process) -> None:
        code = process.child.wait()
        cell = process.cell
        del self.processes[cell.folder]
        self.free.append(process.place)
        process.child.communicate()
        result = cell.result()
        if result is not None:
            self.audience.finished(cell, result, time.monotonic() - process.started)
        elif code in _STOPPED and process.error is None:  # by us, or by someone else: it is not the cell's fault
            self.outcome.is_interrupted = True
        else:
            self._note_failure(cell, process.error or _end_in_words(code))

    def _note_failure(self, cell: Cell, message: str) -> None:
        lines = (cell.folder / ERRORS).read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
        write_text(cell.folder / FAILURE, [json.dumps({"message": message, "stderr": lines}, indent=2) + "\n"])
        self.outcome.failures[cell.name] = message
        self.audience.failed(cell, message)

    def stop(self) -> None:
        """Let the processes save their state. Another interruption ends them at once."""
        self.audience.stopping(len(self.processes))
        for process in self.processes.values():
            process.child.terminate()
        while self.processes:
            self.look()

    @contextmanager
    def ended_with_us(self) -> Iterator[None]:
        """No process is left behind, whatever happens here."""
        try:
            yield
        finally:
            for process in self.processes.values():
                process.kill()


def _end_in_words(code: int) -> str:
    """Of a process that could not say why it ended."""
    if code == -signal.SIGKILL:
        return "the process was killed, perhaps by the system for want of memory"
    if code < 0:
        return f"the process was ended by the signal {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}"
