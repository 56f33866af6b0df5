"""Many clients at once on loopback, each on a connection of its own that stays open; and a server to ask.

The clients write plain HTTP on sockets: on two cores that the server needs, httpx would take more of them for a request
than the server does.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

JSON = b"application/json"
Check = Callable[[int, bytes], str | None]
"""Tells what is wrong with the answer to a request, by its number."""


@dataclass
class Load:
    """What became of the requests."""

    milliseconds: list[float] = field(default_factory=list)
    """Of those that were answered, the whole way."""
    statuses: Counter[int] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    """What was wrong with answers."""
    lost: Counter[str] = field(default_factory=Counter)
    """Requests that were sent and not answered, by what happened."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of the server, where it was looked at."""

    @property
    def a_second(self) -> float:
        return len(self.milliseconds) / max(self.seconds, 1e-9)

    def percentile(self, percent: float) -> float:
        return float(np.percentile(self.milliseconds, percent)) if self.milliseconds else float("nan")

    @property
    def is_clean(self) -> bool:
        return set(self.statuses) == {200} and not self.wrong and not self.lost


def request(body: bytes, path: str = "/v1/predict") -> bytes:
    """A POST as it is sent."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    return head.encode() + b"\r\n\r\n" + body


def under_load(address: str, bodies: Sequence[bytes], *, clients: int, seconds: float, check: Check) -> Load:
    """Each client sends the next request when it has the answer to its last one."""
    return asyncio.run(_under_load(address, bodies, clients, seconds, check))


async def _under_load(address: str, bodies: Sequence[bytes], clients: int, seconds: float, check: Check) -> Load:
    load, started = Load(), time.perf_counter()
    requests = [request(body) for body in bodies]
    work = (_client(address, requests, number, started + seconds, load, check) for number in range(clients))
    await asyncio.gather(*work)
    load.seconds = time.perf_counter() - started
    return load


async def _client(address: str, requests: Sequence[bytes], first: int, until: float, load: Load, check: Check) -> None:
    number, connection = first * len(requests) // 64, None
    try:
        while time.perf_counter() < until:
            number = (number + 1) % len(requests)
            connection = connection or await _connected(address)
            started = time.perf_counter()
            try:
                status, body, stays = await exchange(*connection, requests[number])
            except (OSError, asyncio.IncompleteReadError) as error:
                load.lost[type(error).__name__] += 1
                return
            load.milliseconds.append(1e3 * (time.perf_counter() - started))
            load.statuses[status] += 1
            if status == 200 and (problem := check(number, body)):
                load.wrong[problem] += 1
            if not stays:
                connection[1].close()
                connection = None
    except OSError:
        return  # it listens no more
    finally:
        if connection:
            connection[1].close()


async def _connected(address: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parts = urlsplit(address)
    return await asyncio.open_connection(parts.hostname, parts.port)


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, sent: bytes) -> tuple[int, bytes, bool]:
    """The status, the body, and whether the connection stays open."""
    writer.write(sent)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    found = re.search(rb"\r\ncontent-length: (\d+)", head)
    body = await reader.readexactly(int(found[1]) if found else 0)
    return int(head[9:12]), body, b"\r\nconnection: close" not in head


@dataclass(frozen=True)
class Server:
    """`hitin serve` in a process of its own."""

    address: str
    process: "subprocess.Popen[bytes]"
    log: Path

    @property
    def resident(self) -> int:
        """Bytes of memory that it holds."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        found = re.search(r"^VmRSS:\s*(\d+) kB", status, re.MULTILINE)
        assert found
        return 1024 * int(found[1])

    @property
    def cpu_seconds(self) -> float:
        """What it has taken of all cores, which tells the same on a busy machine."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def server(model: Path, *options: object) -> Iterator[Server]:
    """Ready to be asked; ended by SIGTERM."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        words = [sys.executable, "-m", "hitin", "serve", f"model={model}", "--port", "0", *map(str, options)]
        with log.open("wb") as errors:
            process = subprocess.Popen(words, stderr=errors, stdout=subprocess.DEVNULL, env=os.environ)
        try:
            yield Server(_address(process, log), process, log)
            process.send_signal(signal.SIGTERM)
            process.wait(60)
        finally:
            process.kill()
            process.wait()


def _address(process: "subprocess.Popen[bytes]", log: Path) -> str:
    """From its log, when it is ready."""
    while process.poll() is None:
        for line in log.read_text(encoding="utf-8").splitlines():
            with suppress(ValueError, TypeError):
                told = json.loads(line)
                if told["event"] == "ready":
                    return str(told["address"])
        time.sleep(0.05)
    raise SystemExit(f"the server ended: {log.read_text(encoding='utf-8')}")
