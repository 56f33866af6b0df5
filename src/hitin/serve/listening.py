"""The socket at which the service listens: how it is opened, and how it is closed without turning anyone away who was
let in."""

import contextlib
import ctypes
import errno
import select
import socket
import struct
import sys
from collections.abc import Iterable, Iterator

from hitin.errors import InputError

BACKLOG = 2048
_ATTACH_FILTER = 26  # Linux's SO_ATTACH_FILTER
_DROP_ALL = struct.pack("HBBI", 6, 0, 0, 0)  # a packet filter of one step: keep nothing


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket at that address, or an error that says why there is none."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # by which asyncio knows TCP
    except OSError as error:
        raise _cannot_listen(host, port, error) from error
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
            listener.listen(BACKLOG)
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


def refuse_others(listeners: Iterable[socket.socket]) -> None:
    """Let no new connection begin, while those that wait stay.

    Closing alone would reset those that come between the last look and the closing. On Linux a filter drops what comes
    now: whoever tries is told to have been refused when the socket is closed. Elsewhere that moment remains.
    """
    if not sys.platform.startswith("linux"):
        return
    code = ctypes.create_string_buffer(_DROP_ALL)
    program = struct.pack("HP", 1, ctypes.addressof(code))
    for each in listeners:
        with contextlib.suppress(OSError):
            each.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)


def has_bytes(connection: socket.socket) -> bool:
    """Whether something has come that no one has looked at: bytes, or at a socket that listens someone who knocks."""
    if not hasattr(select, "poll") or connection.fileno() < 0:
        return False
    looking = select.poll()
    looking.register(connection.fileno(), select.POLLIN)
    return bool(looking.poll(0))


def bytes_under_way(connection: socket.socket) -> int:
    """How many the system has that the other side has not taken yet; 0 where it does not tell."""
    try:
        import fcntl
        import termios

        return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)
    except (ImportError, OSError, ValueError):  # another system, or a socket that is closed
        return 0
