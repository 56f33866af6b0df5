"""The server in this process: its socket, its signals, and how it ends without losing a request."""

import asyncio
import contextlib
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import Any

import uvicorn

from hitin.serve.app import application
from hitin.serve.listening import BACKLOG, address_of, bound, has_bytes, refuse_others
from hitin.serve.logs import Log, of_libraries
from hitin.serve.protocol import Connection
from hitin.serve.service import Service
from hitin.serve.settings import ServeSettings

_KEEP_ALIVE = 75  # seconds
_TICK = 0.02  # seconds between looks at what is left
_ADMISSION = 5  # seconds in which those are let in who have knocked
_STUCK = 5  # seconds in which, at the end, something of an answer must be taken
_TURN = 5e-4  # seconds until a thread that computes lets the one that answers go on; usual are ten times as many

Ready = Callable[[str], None]


def run(folders: Sequence[str], settings: ServeSettings, *, log: Log | None = None, ready: Ready | None = None) -> bool:
    """Serve until a signal comes; `ready` is told the address when models are loaded.

    Whether all that was taken is answered and nothing is loaded any more: what threads still do after a second signal,
    or after the time that is given, ends with the process.
    """
    with bound(settings.host, settings.port) as listener:
        service = Service(folders, settings, log)
        server = Server(service, address_of(listener), ready or (lambda _: None))
        sys.setswitchinterval(_TURN)
        with of_libraries(service.log):
            loop = asyncio.new_event_loop()  # not asyncio.run, which would wait for threads
            try:
                loop.run_until_complete(server.serve([listener]))
            finally:
                loop.close()
    if server.failure is not None:
        raise server.failure
    return server.is_done and service.models is not None


class Server(uvicorn.Server):
    """uvicorn's, which loads models while it listens already and goes on to listen for a while at the end."""

    def __init__(self, service: Service, address: str, ready: Ready) -> None:
        self.service, self.address, self.ready = service, address, ready
        self.settings = service.settings
        self.guard = application(service)
        self.failure: Exception | None = None
        self.is_done = False
        self._wants_look: asyncio.Event | None = None
        super().__init__(
            uvicorn.Config(
                self.guard,
                http=Connection.within(self.settings.limits.body_seconds),
                ws="none",
                lifespan="off",
                loop="none",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                backlog=BACKLOG,
                timeout_keep_alive=_KEEP_ALIVE,
            )
        )

    async def main_loop(self) -> None:
        """Load, serve, and after the signal drain."""
        self._wants_look = asyncio.Event()
        working = asyncio.create_task(self._load_and_look())
        await super().main_loop()
        working.cancel()
        if self.failure is None:
            await self._drain()

    async def _load_and_look(self) -> None:
        try:
            await in_thread(self.service.load)
        except Exception as error:
            self.failure, self.should_exit = error, True
            return
        self.service.state = "ready"
        self.service.log("ready", address=self.address)
        await in_thread(lambda: self.ready(self.address))
        while True:
            is_asked = await self._until_look()
            await in_thread(partial(self.service.look, again=is_asked))

    async def _until_look(self) -> bool:
        """Now and then, and when it is asked for; whether it is."""
        assert self._wants_look is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wants_look.wait(), self.settings.reload_every or None)
        is_asked = self._wants_look.is_set()
        self._wants_look.clear()
        return is_asked

    async def _drain(self) -> None:
        """Still take requests, but close each connection after its answer."""
        self.service.state, self.guard.ending = "ending", True
        self.service.log("ending")
        await self._until(lambda: False, self.settings.drain_seconds)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen no more, close connections once nothing is on its way, and answer all that was taken."""
        for each in sockets or []:
            each.listen(0)  # no one can knock any more: whoever waits there when it is closed is sent away
        listeners = sockets or []
        refuse_others(listeners)
        await self._until(lambda: not any(map(has_bytes, listeners)), _ADMISSION)  # the loop lets in who has knocked
        await _turns()
        for server in self.servers:
            server.close()
        for each in listeners:
            each.close()
        await _turns()  # until their connections are known
        is_answered = await self._until(self._has_ended, self.settings.shutdown_seconds)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        self.is_done = is_answered and await self._close()
        self.service.log("ended", answered=self.is_done)

    def _has_ended(self) -> bool:
        """Whether nothing is left; connections that can be closed are, and those whose clients take nothing."""
        for connection in list(self.server_state.connections):
            if isinstance(connection, Connection) and connection.is_stuck(_STUCK):
                connection.transport.abort()
            elif isinstance(connection, Connection) and connection.can_close():
                connection.shutdown()
        return not self.server_state.connections and not self.server_state.tasks

    async def _close(self) -> bool:
        """Whether the models' threads have come to an end in time."""
        closing = asyncio.ensure_future(in_thread(self.service.close))
        return await self._until(closing.done, self.settings.shutdown_seconds)

    async def _until(self, is_over: Callable[[], bool], seconds: float) -> bool:
        """Wait for something, but not longer than this nor after a second signal; whether it came."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while not (over := is_over()) and loop.time() < end and not self.force_exit:
            await asyncio.sleep(_TICK)
        return over

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first signal ends the service, another at once; SIGHUP has it look at the folders."""
        handled: dict[signal.Signals, Any] = {signal.SIGINT: self.handle_exit, signal.SIGTERM: self.handle_exit}
        if hasattr(signal, "SIGHUP"):
            handled[signal.SIGHUP] = self._handle_look
        before = {number: signal.signal(number, handler) for number, handler in handled.items()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        self.force_exit = self.should_exit
        self.should_exit = True

    def _handle_look(self, *_: Any) -> None:
        if self._wants_look is not None:
            self._wants_look.set()


async def _turns(count: int = 4) -> None:
    """Of the loop: in one it sees who knocks, in the next it lets them in, and then they have a connection."""
    for _ in range(count):
        await asyncio.sleep(0)


async def in_thread(work: Callable[[], Any]) -> None:
    """Do it in a thread that the process does not wait for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[None] = loop.create_future()

    def finish(error: Exception | None) -> None:
        if not done.done():
            done.set_result(None) if error is None else done.set_exception(error)

    def working() -> None:
        error: Exception | None = None
        try:
            work()
        except Exception as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop may have ended
            loop.call_soon_threadsafe(finish, error)

    threading.Thread(target=working, name="hitin-serve", daemon=True).start()
    await done
