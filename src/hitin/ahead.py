"""Work that threads do ahead, while what they made before is used."""

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from queue import Empty, Full, Queue
from threading import Event, Thread
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")
_LOOK = 0.1  # seconds between looks whether what is made, or waited for, is still wanted


class NoLongerWanted(Exception):  # noqa: N818
    """Raised within a thread whose work no one waits for any more."""


@dataclass(frozen=True)
class _Made(Generic[T]):
    value: T


@dataclass(frozen=True)
class _Ended:
    """There is no more; where something went wrong, for this reason."""

    error: BaseException | None = None


class Workers:
    """Threads for the parts of some work, each a step ahead of the next. They end when the block does."""

    def __init__(self) -> None:
        self._stopped = Event()
        self._threads: list[tuple[Thread, float]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for thread, patience in reversed(self._threads):
            thread.join(patience)

    def ahead(self, values: Generator[T], *, most: int = 1, patience: float = 5.0) -> Iterator[T]:
        """The same values, in the same order; a thread makes up to `most` of them before they are asked for.

        What goes wrong is raised after all that was made before. A thread that waits for something else, such as a
        person who types, cannot be stopped: after so many seconds of `patience` it is left to end with the process.
        """
        made: Queue[_Made[T] | _Ended] = Queue(most)
        thread = Thread(target=self._make, args=(values, made), daemon=True)
        self._threads.append((thread, patience))
        thread.start()
        return self._taken(made)

    def check(self, done: int = 0) -> None:  # noqa: ARG002
        """End the work of this thread if no one wants it. To stand where someone is told how much is done."""
        if self._stopped.is_set():
            raise NoLongerWanted

    def _taken(self, made: "Queue[_Made[T] | _Ended]") -> Iterator[T]:
        while True:
            found = self._get(made)
            if isinstance(found, _Ended):
                if found.error is not None:
                    raise found.error
                return
            yield found.value

    def _make(self, values: Generator[T], made: "Queue[Any]") -> None:
        try:
            try:
                for value in values:
                    self._put(made, _Made(value))
            finally:
                values.close()
            self._put(made, _Ended())
        except NoLongerWanted:
            return
        except BaseException as error:  # it is raised where the value is wanted
            self._tell(made, error)

    def _tell(self, made: "Queue[Any]", error: BaseException) -> None:
        try:
            self._put(made, _Ended(error))
        except NoLongerWanted:
            return

    def _get(self, made: "Queue[_Made[T] | _Ended]") -> "_Made[T] | _Ended":
        while True:
            try:
                return made.get(timeout=_LOOK)
            except Empty:
                self.check()

    def _put(self, made: "Queue[Any]", value: object) -> None:
        while True:
            self.check()
            try:
                return made.put(value, timeout=_LOOK)
            except Full:
                continue
