"""The socket of the service: who has knocked is let in, who comes later is refused."""

import contextlib
import socket
import sys
import threading

import pytest

from hitin.errors import InputError
from hitin.serve.listening import address_of, bound, bytes_under_way, has_bytes, refuse_others


def test_addresses_are_told_as_they_are_typed() -> None:
    with bound("127.0.0.1", 0) as listener:
        assert address_of(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"
        assert listener.proto == socket.IPPROTO_TCP, "or asyncio lets answers wait for 40 ms"
        with pytest.raises(InputError, match="is in use"), bound("127.0.0.1", listener.getsockname()[1]):
            pass
    if socket.has_ipv6:
        try:
            with bound("::1", 0) as listener:
                assert address_of(listener) == f"http://[::1]:{listener.getsockname()[1]}"
        except InputError:
            pytest.skip("this machine has no IPv6")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a filter of Linux")
def test_who_has_knocked_is_let_in_and_who_comes_later_is_refused() -> None:
    late: list[Exception] = []

    def knock(address: tuple[str, int]) -> None:
        try:
            socket.create_connection(address, timeout=10).close()
        except OSError as error:
            late.append(error)

    with bound("127.0.0.1", 0) as listener:
        address = listener.getsockname()
        with socket.create_connection(address, timeout=10) as early:
            early.sendall(b"asked")
            assert has_bytes(listener)
            refuse_others([listener])
            knocking = threading.Thread(target=knock, args=(address,))
            knocking.start()
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.recv(5) == b"asked"
                assert not has_bytes(listener), "no other came"
                listener.close()
                accepted.sendall(b"answered")
                assert early.recv(8) == b"answered"
                early.sendall(b"more")
                assert accepted.recv(4) == b"more"
        knocking.join()
    assert isinstance(late[0], ConnectionRefusedError)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere it is not told")
def test_what_the_other_side_has_not_taken_is_under_way() -> None:
    with bound("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname(), timeout=10) as one:
        other, _ = listener.accept()
        with other:
            other.setblocking(False)
            assert bytes_under_way(other) == 0
            sent = 0
            with contextlib.suppress(BlockingIOError):
                while True:
                    sent += other.send(bytes(1 << 16))
            before = bytes_under_way(other)
            assert 0 < before <= sent
            for _ in range(sent >> 17):
                one.recv(1 << 16)
            assert bytes_under_way(other) < before
        assert bytes_under_way(other) == 0


def test_what_is_closed_has_nothing() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert not has_bytes(one)
        other.sendall(b"x")
        assert has_bytes(one)
        one.close()
        assert not has_bytes(one)
