"""A connection: uvicorn's HTTP/1.1, which waits no longer than it must and can tell when it may be closed."""

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from hitin.serve.exchange import own_id
from hitin.serve.listening import bytes_under_way, has_bytes
from hitin.serve.refusals import JSON, Refusal

_BAD = bytes(Refusal(400, "bad-request", "this is not HTTP, or its headers are too long").response().body)
_LOOKS = 4  # within the seconds in which something of an answer must be taken
_QUIET = 0.25  # seconds after which one that was just opened or answered is taken to be idle


class Connection(H11Protocol):
    """One on which a request must come whole within some seconds of its first byte, and the first one of the start;
    and whose client takes something of an answer within as many."""

    transport: Any
    _waiting: asyncio.TimerHandle | None = None
    _looking: asyncio.TimerHandle | None = None
    _quiet_since = 0.0
    _taken, _taken_at = 0, 0.0

    @classmethod
    def within(cls, seconds: float) -> type["Connection"]:
        """Of these seconds."""
        return type("Connection", (cls,), {"seconds": seconds})

    seconds: float = 30

    def connection_made(self, transport: Any) -> None:
        super().connection_made(_Joined(transport, self.loop))  # type: ignore[arg-type]
        self._quiet_since = self.loop.time()
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_more()
        if self._looking is not None:
            self._looking.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        self._quiet_since = self.loop.time()
        super().on_response_complete()
        self._watch()
        if self._looking is None:
            self._looking = self.loop.call_later(self.seconds / _LOOKS, self._look)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """In the form of all errors. What is sent before an answer has begun; otherwise the connection ends."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [("content-type", JSON), ("content-length", str(len(_BAD))), ("connection", "close")]
            headers.append(("x-request-id", own_id()))
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=_BAD),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    @property
    def is_between(self) -> bool:
        """Whether there is no request that waits for its answer."""
        return self.cycle is None or self.cycle.response_complete

    def can_close(self) -> bool:
        """Whether no request is on its way, as far as can be known here."""
        is_quiet = self.loop.time() - self._quiet_since > _QUIET
        if not is_quiet or not self.is_between or self.transport.is_closing() or self.conn.trailing_data[0]:
            return False
        return not has_bytes(self.transport.get_extra_info("socket"))

    def is_stuck(self, seconds: float) -> bool:
        """Whether an answer waits of which nothing was taken for so long, as far as was looked."""
        waiting, now = self.transport.get_write_buffer_size(), self.loop.time()
        taken = self.transport.sent - waiting - bytes_under_way(self.transport.get_extra_info("socket"))
        if taken != self._taken or not waiting:
            self._taken, self._taken_at = taken, now
        return now - self._taken_at > seconds

    def _look(self) -> None:
        """End it if its client does not take the answer, which would stay in memory."""
        self._looking = None
        if self.is_stuck(self.seconds):
            self.transport.abort()
        elif self.transport.get_write_buffer_size():
            self._looking = self.loop.call_later(self.seconds / _LOOKS, self._look)

    def _watch(self) -> None:
        """Close it if headers do not come to an end; a body is watched elsewhere."""
        is_owed = self.is_between and (self.cycle is None or bool(self.conn.trailing_data[0]))
        if not is_owed:
            self._wait_no_more()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(self.seconds, self._close)

    def _wait_no_more(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _close(self) -> None:
        self._waiting = None
        if self.is_between and not self.transport.is_closing():
            self.transport.close()


class _Joined:
    """A transport that sends at once what is written in one go: a call of the system for an answer, not three."""

    def __init__(self, transport: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._held: list[bytes] = []
        self.sent = 0
        """Bytes that the system was given, or will be when it takes more."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._held:
            self._loop.call_soon(self._send)
        self._held.append(data)

    def close(self) -> None:
        self._send()
        self._transport.close()

    def _send(self) -> None:
        if self._held:
            data, self._held = b"".join(self._held), []
            self.sent += len(data)
            self._transport.write(data)
