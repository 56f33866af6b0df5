"""`Batcher`: texts that come one by one from many are computed together.

While one batch is computed, those who ask wait in a queue; the next batch takes what has come by then. No one waits for
others to come, so a single request is as quick as without.
"""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Condition, Lock, Thread
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]


class Computing(Protocol):
    """What computes the logits of texts for many who ask."""

    @property
    def waiting(self) -> int:
        """Texts that wait."""

    def submit(self, texts: Sequence[str]) -> "Future[Logits]":
        """(texts, |Y|), when it is there; cancelled, it is not computed if it has not begun."""

    def close(self) -> None:
        """Take nothing more, and wait until all that was taken is answered."""


class QueueFull(Exception):  # noqa: N818
    """More texts wait than may."""


class Closed(Exception):  # noqa: N818
    """Nothing is taken any more."""


@dataclass(eq=False)
class _Asked:
    """The texts of one request, of which some may be computed before the others."""

    texts: Sequence[str]
    answer: "Future[Logits]" = field(default_factory=Future)
    parts: dict[int, Logits] = field(default_factory=dict)
    """What is computed, by the place of its first text."""
    taken: int = 0

    @property
    def left(self) -> int:
        return len(self.texts) - self.taken


@dataclass(frozen=True)
class _Share:
    """Some texts of a request that are in a batch."""

    asked: _Asked
    start: int
    texts: Sequence[str]


class Batcher:
    """Computes the logits of texts, those of several requests together, in one thread of its own.

    A request of many texts is computed in parts, and others have their turn between them.
    """

    def __init__(
        self,
        logits: Callable[[Sequence[str]], Logits],
        *,
        most: int,
        queue: int,
        told: Callable[[int], None] = lambda _: None,
    ) -> None:
        """`most` texts make a batch, `queue` may wait; `told` hears the size of each batch."""
        self._logits, self._most, self._room, self._told = logits, most, queue, told
        self._waiting: deque[_Asked] = deque()
        self._texts = 0
        self._changed = Condition()
        self._closing = False
        self._thread = Thread(target=self._run, name="hitin-batches", daemon=True)
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Texts that no batch has taken yet."""
        return self._texts

    def submit(self, texts: Sequence[str]) -> "Future[Logits]":
        """(texts, |Y|), when it is there. A request larger than the queue is taken if nothing else waits."""
        asked = _Asked(texts)
        with self._changed:
            if self._closing:
                raise Closed
            if self._texts and self._texts + len(texts) > self._room:
                raise QueueFull
            self._waiting.append(asked)
            self._texts += len(texts)
            self._changed.notify()
        return asked.answer

    def close(self) -> None:
        """Take nothing more, and wait until all that was taken is answered."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while shares := self._next():
            self._told(sum(len(share.texts) for share in shares))
            self._compute(shares)

    def _compute(self, shares: Sequence[_Share]) -> None:
        """Together; if that goes wrong each by itself, so that no one's text spoils the answers of others."""
        try:
            self._answer(shares, self._logits([text for share in shares for text in share.texts]))
        except BaseException as error:  # it is raised where the answer is wanted
            if len(shares) == 1:
                self._fail(shares[0], error)
                return
            for share in shares:
                if not share.asked.answer.done():
                    self._compute([share])

    def _next(self) -> list[_Share]:
        """The next batch: the oldest request first. Nothing when all is done."""
        shares: list[_Share] = []
        room = self._most
        with self._changed:
            while not shares:
                self._changed.wait_for(lambda: self._waiting or self._closing)
                if not self._waiting:
                    return []
                while self._waiting and room:
                    shares += self._taken(self._waiting.popleft(), room)
                    room = self._most - sum(len(share.texts) for share in shares)
        return shares

    def _taken(self, asked: _Asked, room: int) -> list[_Share]:
        """The part of a request for which there is room; nothing of one that no one wants any more."""
        if asked.answer.cancelled():
            self._texts -= asked.left
            return []
        start, some = asked.taken, asked.texts[asked.taken : asked.taken + room]
        asked.taken += len(some)
        self._texts -= len(some)
        if asked.left:
            self._waiting.append(asked)  # behind the others
        return [_Share(asked, start, some)]

    def _answer(self, shares: Sequence[_Share], logits: Logits) -> None:
        start = 0
        for share in shares:
            asked, end = share.asked, start + len(share.texts)
            asked.parts[share.start] = logits[start:end]
            if sum(map(len, asked.parts.values())) == len(asked.texts):
                whole = np.concatenate([asked.parts[place] for place in sorted(asked.parts)])
                if _is_wanted(asked.answer):  # from here on nothing may fail
                    asked.answer.set_result(whole)
            start = end

    def _fail(self, share: _Share, error: BaseException) -> None:
        asked = share.asked
        with self._changed:
            if asked in self._waiting:
                self._waiting.remove(asked)
                self._texts -= asked.left
        if _is_wanted(asked.answer):
            asked.answer.set_exception(error)


def _is_wanted(answer: "Future[Logits]") -> bool:
    """Whether someone still waits; from then on it cannot be cancelled."""
    return not answer.done() and answer.set_running_or_notify_cancel()


class Unbatched:
    """The same without joining: each request by itself in a thread of a pool, as a plain service does it."""

    def __init__(
        self,
        logits: Callable[[Sequence[str]], Logits],
        *,
        queue: int,
        told: Callable[[int], None] = lambda _: None,
        threads: int = 40,
    ) -> None:
        self._logits, self._room, self._told = logits, queue, told
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="hitin-requests")
        self._lock = Lock()
        self._closing = False
        self.waiting = 0

    def submit(self, texts: Sequence[str]) -> "Future[Logits]":
        with self._lock:
            if self._closing:
                raise Closed
            if self.waiting and self.waiting + len(texts) > self._room:
                raise QueueFull
            self.waiting += len(texts)
            answer = self._pool.submit(self._computed, texts)  # here: a pool that is closed takes nothing
        answer.add_done_callback(lambda _: self._left(len(texts)))
        return answer

    def close(self) -> None:
        with self._lock:
            self._closing = True
        self._pool.shutdown(wait=True)

    def _computed(self, texts: Sequence[str]) -> Logits:
        self._told(len(texts))
        return self._logits(texts)

    def _left(self, texts: int) -> None:
        with self._lock:
            self.waiting -= texts
