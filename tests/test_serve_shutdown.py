"""The end of a server, and of its clients: what was taken is answered, and who goes away takes nothing with them."""

import asyncio
import contextlib
import json
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from hitin.serve.guard import CLIENT_GONE
from load import request
from tests.serving import LATE, Served, serving

BODY = json.dumps({"texts": [LATE] * 20}).encode()

KNOCKED = "ConnectionResetError on a new connection after the signal"
MOST_KNOCKED = 2
"""Those of 16 who may knock in the moment in which a server closes its door: the system has let them in, but the server
has never seen them, and no server can know of them."""


@dataclass
class Fate:
    """What became of requests that were sent while a server ended."""

    answered: int = 0
    after: int = 0
    """Of these, the ones that were sent after the signal."""
    refused: int = 0
    """Connections that were not taken."""
    lost: list[str] = field(default_factory=list)
    """Requests without an answer."""
    wrong: list[int] = field(default_factory=list)


async def _client(address: str, fate: Fate, ended: asyncio.Event, *, fresh: bool) -> None:
    """Asks again and again until it is not let in any more, on one connection or on a fresh one each."""
    parts = urlsplit(address)
    connection = None
    while True:
        is_new = connection is None
        try:
            connection = connection or await asyncio.open_connection(parts.hostname, parts.port)
        except OSError:
            fate.refused += 1
            return
        reader, writer = connection
        was_ending = ended.is_set()
        try:
            status, stays = await _asked(reader, writer)
        except (OSError, asyncio.IncompleteReadError) as error:
            when = f"{'after' if was_ending else 'before'} the signal"
            fate.lost.append(f"{type(error).__name__} on a {'new' if is_new else 'kept'} connection {when}")
            return
        fate.answered += 1
        fate.after += was_ending
        if status != 200:
            fate.wrong.append(status)
        if fresh or not stays:
            writer.close()
            connection = None


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[int, bool]:
    """The status of an answer that came whole, and whether the connection stays."""
    writer.write(request(BODY))
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
    answer = json.loads(await reader.readexactly(length))
    assert len(answer.get("documents", ())) == 20 or "error" in answer
    return int(head[9:12]), b"connection: close" not in head


async def _ended_under_load(served: Served, clients: int, after: float) -> Fate:
    fate, ended = Fate(), asyncio.Event()
    work = [asyncio.create_task(_client(served.address, fate, ended, fresh=bool(each % 2))) for each in range(clients)]
    await asyncio.sleep(after)
    served.process.send_signal(signal.SIGTERM)
    ended.set()
    await asyncio.wait_for(asyncio.gather(*work), 60)
    return fate


def assert_nothing_is_lost(tickets: Path, folder: Path, times: int, *options: object) -> None:
    chance = random.Random(0)
    for _ in range(times):
        with serving(folder, [tickets], *options) as served:
            fate = asyncio.run(_ended_under_load(served, 16, 0.3 + chance.random()))
            assert served.process.wait(30) == 0
            log = served.log()
        assert fate.answered > 0
        assert not [lost for lost in fate.lost if lost != KNOCKED], fate
        assert not fate.wrong, fate
        assert fate.refused >= 16 - MOST_KNOCKED, fate
        statuses = [line["status"] for line in log if line["event"] == "request"]
        assert statuses.count(200) == len(statuses) == fate.answered
        assert (log[-1]["event"], log[-1]["answered"]) == ("ended", True)


@pytest.mark.parametrize("options", [(), ("--no-batching",)], ids=["batching", "no batching"])
def test_a_signal_under_load_loses_no_request(options: tuple[str, ...], tickets: Path, tmp_path: Path) -> None:
    assert_nothing_is_lost(tickets, tmp_path, 1, *options)


@pytest.mark.slow
def test_twenty_signals_under_load_lose_no_request(tickets: Path, tmp_path: Path) -> None:
    assert_nothing_is_lost(tickets, tmp_path, 20)


def test_a_large_request_that_was_taken_is_answered_after_the_signal(tickets: Path, tmp_path: Path) -> None:
    """Of seconds of work, of which most is still to be done."""
    body = json.dumps({"texts": [f"{LATE} {number} " * 50 for number in range(1000)]}).encode()
    with serving(tmp_path, [tickets], "--drain-seconds", 0.2) as served:

        async def ask() -> tuple[int, float]:
            parts = urlsplit(served.address)
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            writer.write(request(body))
            await writer.drain()
            await asyncio.sleep(0.1)
            served.process.send_signal(signal.SIGTERM)
            started = time.monotonic()
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
            answer = json.loads(await reader.readexactly(length))
            writer.close()
            assert len(answer["documents"]) == 1000
            return int(head[9:12]), time.monotonic() - started

        status, _ = asyncio.run(ask())
        assert status == 200
        assert served.process.wait(30) == 0


@contextlib.contextmanager
def not_reading(served: Served) -> Iterator[tuple[socket.socket, int]]:
    """A client that has taken the head of a large answer, and how long the rest is."""
    parts = urlsplit(served.address)
    asked = {"texts": ["x"] * 8000, "policy": "raw", "threshold": 0, "top": 20}
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(60)
        client.connect((parts.hostname, parts.port))
        client.sendall(request(json.dumps(asked).encode()))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += client.recv(1)
        yield client, int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])


def taken(client: socket.socket, length: int) -> int:
    """Bytes of an answer that still come."""
    count = 0
    with contextlib.suppress(ConnectionResetError):
        while count < length and (chunk := client.recv(1 << 20)):
            count += len(chunk)
    return count


def open_sockets(served: Served) -> int:
    """Of a server, as Linux shows them."""
    return sum(path.is_socket() for path in Path(f"/proc/{served.process.pid}/fd").iterdir())


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open connections are seen as Linux shows them")
def test_a_client_that_does_not_read_its_answer_is_disconnected(tickets: Path, tmp_path: Path) -> None:
    with serving(tmp_path, [tickets], "--max-texts", 9000, "--body-seconds", 1) as served:
        before = open_sockets(served)
        with not_reading(served) as (client, length):
            end = time.monotonic() + PATIENCE
            while open_sockets(served) > before:
                assert time.monotonic() < end
                time.sleep(0.05)
            assert taken(client, length) < length
        assert served.predict(LATE)


def test_what_does_not_come_to_an_end_holds_up_that_of_a_server_only_so_long(tickets: Path, tmp_path: Path) -> None:
    options = "--drain-seconds", 0, "--shutdown-seconds", 0.5, "--body-seconds", 60
    with serving(tmp_path, [tickets], *options) as served:
        parts = urlsplit(served.address)
        with socket.create_connection((parts.hostname, parts.port)) as client:
            client.sendall(request(BODY)[:-10])  # the rest never comes
            started = time.monotonic()
            assert served.stop() != 0
            assert time.monotonic() - started < 20  # 30 seconds is what it waits unless told so
        assert (served.log()[-1]["event"], served.log()[-1]["answered"]) == ("ended", False)


def test_a_client_that_reads_slowly_has_its_whole_answer(tickets: Path, tmp_path: Path) -> None:
    """Also where the system has so much of it that the server itself sees nothing go."""
    with (
        serving(tmp_path, [tickets], "--max-texts", 9000, "--body-seconds", 1) as served,
        not_reading(served) as (client, length),
    ):
        slowly = 0
        for _ in range(10):
            time.sleep(0.4)
            slowly += len(client.recv(8192))
        assert slowly + taken(client, length - slowly) == length


def test_a_client_that_does_not_read_its_answer_does_not_hold_up_the_end(tickets: Path, tmp_path: Path) -> None:
    with serving(tmp_path, [tickets], "--max-texts", 9000, "--drain-seconds", 0) as served, not_reading(served):
        started = time.monotonic()
        assert served.stop() == 0
        assert time.monotonic() - started < 20
        assert served.log()[-1]["answered"] is True


PATIENCE = 30
"""Seconds without anything new after which a server is stuck, however little of the machine it has."""

CLIENT = """
import socket, sys
sockets = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for _ in range(8)]
asked = sys.stdin.buffer.read()
for each in sockets: each.sendall(asked)
print("sent", flush=True)
sockets[0].recv(1) and input()
"""


def killed_clients(served: Served, times: int) -> None:
    """Processes that end without a word while their requests are computed."""
    port = str(urlsplit(served.address).port)
    sent = request(json.dumps({"texts": [f"{LATE} " * 100] * 500}).encode())
    for number in range(times):
        client = subprocess.Popen([sys.executable, "-c", CLIENT, port], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert client.stdin is not None
        assert client.stdout is not None
        with client.stdin, client.stdout:
            client.stdin.write(sent)
            client.stdin.close()
            client.stdout.readline()
            time.sleep(0.02 * (number % 3))
            client.kill()
            client.wait()


@pytest.mark.parametrize("times", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_clients_that_are_killed_leave_the_server_well(times: int, tickets: Path, tmp_path: Path) -> None:
    with serving(tmp_path, [tickets]) as served:
        before = served.predict(LATE)
        killed_clients(served, times)
        wait_until_nothing_waits(served)
        given_up = sum(line["texts"] for line in _ended(served) if line["status"] == CLIENT_GONE)
        assert _metric(served, "hitin_texts_total") < given_up  # what no one wants any more is not computed
        assert served.predict(LATE) == before
        assert not [line for line in served.log() if "failure" in line]
        assert "Traceback" not in served.errors.read_text()
        assert served.stop() == 0


def wait_until_nothing_waits(served: Served) -> None:
    """For as long as something happens between two looks: how quickly depends on what else the machine does."""
    seen, since = None, time.monotonic()
    while True:
        waiting = _metric(served, "hitin_waiting_texts")
        now = (waiting, _metric(served, "hitin_texts_total"), len(_ended(served)))
        if now != seen:
            seen, since = now, time.monotonic()
        elif not waiting:
            return
        assert time.monotonic() - since < PATIENCE, f"{waiting} texts wait, and nothing happens"
        time.sleep(0.2)


def _ended(served: Served) -> list[dict[str, Any]]:
    """What is logged of requests that came whole, and have ended."""
    return [line for line in served.log() if line["event"] == "request" and "texts" in line]


def _metric(served: Served, name: str) -> float:
    lines = served.get("/metrics", timeout=4 * PATIENCE).text.splitlines()  # megabytes of JSON may be read before it
    found = [float(line.split()[-1]) for line in lines if line.startswith(name)]
    assert found, f"the metrics tell nothing of {name}"
    return sum(found)
