"""The server in this process: its socket, its signals, and how it ends without losing a request."""

import asyncio
import contextlib
import errno
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import uvicorn

from hitin.errors import HitinError, InputError
from hitin.serve.app import application
from hitin.serve.logs import Log
from hitin.serve.service import Service
from hitin.serve.settings import ServeSettings

_BACKLOG = 2048
_KEEP_ALIVE = 75  # seconds


def run(
    folders: Sequence[str],
    settings: ServeSettings,
    *,
    log: Log | None = None,
    ready: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve until a signal comes; `ready` is told the address when models are loaded."""
    with bound(settings.host, settings.port) as listener:
        service = Service(folders, settings, log)
        server = Server(service, address_of(listener), ready)
        server.run([listener])
    if server.failure is not None:
        raise server.failure


class Server(uvicorn.Server):
    """uvicorn's, which loads models while it listens already and goes on to listen for a while at the end."""

    def __init__(self, service: Service, address: str, ready: Callable[[str], None]) -> None:
        self.service, self.address, self.ready = service, address, ready
        self.guard = application(service)
        self.failure: HitinError | OSError | None = None
        self._wants_look = asyncio.Event()
        shutdown = max(1, round(service.settings.shutdown_seconds))
        super().__init__(
            uvicorn.Config(
                self.guard,
                http="h11",
                ws="none",
                lifespan="off",
                loop="asyncio",
                log_config=None,
                access_log=False,
                server_header=False,
                backlog=_BACKLOG,
                timeout_keep_alive=_KEEP_ALIVE,
                timeout_graceful_shutdown=shutdown,
            )
        )

    async def main_loop(self) -> None:
        """Load, serve, and after the signal drain."""
        loading = asyncio.create_task(self._load())
        await super().main_loop()
        looking = self._looking
        for task in (loading, looking):
            if task is not None:
                task.cancel()
        if self.failure is None:
            await self._drain()

    _looking: "asyncio.Task[None] | None" = None

    async def _load(self) -> None:
        try:
            await asyncio.to_thread(self.service.load)
        except (HitinError, OSError) as error:
            self.failure, self.should_exit = error, True
            return
        self.service.state = "ready"
        self.service.log("ready", address=self.address)
        self.ready(self.address)
        self._looking = asyncio.create_task(self._look())

    async def _look(self) -> None:
        """Look at the folders now and then, and when asked to."""
        every = self.service.settings.reload_every or None
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wants_look.wait(), every)
            self._wants_look.clear()
            try:
                await asyncio.to_thread(self.service.look)
            except Exception as error:
                self.service.log("look failed", failure=type(error).__name__)

    async def _drain(self) -> None:
        """Still take requests, but close each connection after its answer."""
        self.service.state, self.guard.ending = "ending", True
        self.service.log("ending")
        ending = asyncio.get_running_loop().time() + self.service.settings.drain_seconds
        while asyncio.get_running_loop().time() < ending and not self.force_exit:
            await asyncio.sleep(0.05)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if not self.force_exit:
            await asyncio.to_thread(self.service.close)
        self.service.log("ended")

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
        self._wants_look.set()


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket at that address, or an error that says why there is none."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family)
    except OSError as error:
        raise _cannot_listen(host, port, error) from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(_BACKLOG)
        except OSError as error:
            raise _cannot_listen(host, port, error) from error
        yield listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _cannot_listen(host: str, port: int, error: OSError) -> InputError:
    if error.errno == errno.EADDRINUSE:
        problem, remedy = f"the port {port} is in use", "Choose another --port, or 0 for one that is free."
    elif error.errno == errno.EACCES:
        problem, remedy = f"the port {port} may not be taken", "Choose a --port from 1024 on."
    else:
        problem = f"the service cannot listen at {host}, port {port}: {error.strerror}"
        remedy = "Choose a --host that is an address of this machine, such as 127.0.0.1."
    return InputError(problem, kind="cannot-listen", remedy=remedy)
