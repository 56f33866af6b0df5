"""A server under malformed requests: it refuses them, tells nothing of its insides, and goes on as if nothing was."""

import contextlib
import json
import random
import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.serving import LATE, Served, serving

BODY = json.dumps({"text": LATE}).encode()
HEAD = b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
SOUND = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY
HUGE = 100_000_000


CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]


class Attacked:
    """A server with what it answers when it is well."""

    def __init__(self, served: Served) -> None:
        self.served, self.right = served, served.predict(LATE)
        self.address = urlsplit(served.address)

    def connected(self, seconds: float = 10) -> socket.socket:
        return socket.create_connection((str(self.address.hostname), self.address.port or 0), timeout=seconds)

    def sent(self, data: bytes, *, wait: float = 0.1, first: float = 2) -> list[int]:
        """The statuses of what comes back until the connection ends, or nothing comes for a while."""
        found = b""
        with self.connected(first) as connection, contextlib.suppress(OSError):
            connection.sendall(data)
            while part := connection.recv(65536):
                found += part
                connection.settimeout(wait)
        return self.statuses(found)

    @staticmethod
    def statuses(found: bytes) -> list[int]:
        """Those of some answers, which tell nothing that they should not."""
        assert_discreet(found.decode("utf-8", errors="replace"))
        return [int(status) for status in re.findall(rb"HTTP/1\.1 (\d{3}) ", found)]

    def is_well(self) -> None:
        """It answers rightly, and neither its log nor its process tell of anything that went wrong."""
        assert self.served.predict(LATE) == self.right
        assert self.served.process.poll() is None
        assert_discreet(self.served.errors.read_text(encoding="utf-8"))
        for line in self.served.log():
            assert "failure" not in line, line
            assert line.get("status", 0) < 500, line

    @property
    def most_held(self) -> int:
        """The most memory that it has held, in bytes."""
        status = Path(f"/proc/{self.served.process.pid}/status").read_text(encoding="ascii")
        found = re.search(r"^VmHWM:\s*(\d+) kB", status, re.MULTILINE)
        assert found
        return 1024 * int(found[1])


def assert_discreet(text: str) -> None:
    for word in ("Traceback", 'File "', "site-packages"):
        assert word not in text, text


@pytest.fixture(scope="module")
def attacked(tickets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    with serving(tmp_path_factory.mktemp("attacked"), [tickets], "--body-seconds", 1) as served:
        yield Attacked(served)


# By the OpenAPI document.


def fuzzed(attacked: Attacked, examples: int) -> None:
    """So many requests, as they should be and not, of all operations, the same ones every time; most of them of those
    that have a body, for of the others there is little to ask."""
    schema = schemathesis.openapi.from_url(f"{attacked.served.address}/openapi.json")
    operations: list[Any] = [operation.ok() for operation in schema.get_all_operations()]  # type: ignore[union-attr]
    assert {operation.path for operation in operations} >= {"/v1/predict", "/v1/explain", "/v1/taxonomy", "/v1/models"}
    sent = 0
    for operation in operations:
        share = examples // 4 if operation.method == "post" else examples // 20
        for mode in GenerationMode:
            with contextlib.suppress(Unsatisfiable):  # there is nothing to get wrong in some
                sent += _asked(attacked, operation.as_strategy(generation_mode=mode), max(1, share))
    assert sent >= examples


def _asked(attacked: Attacked, strategy: Any, examples: int) -> int:
    """How many requests were sent, all of which were answered as the document says."""
    sent = []

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=strategy)
    def ask(case: Any) -> None:
        response = case.call(base_url=attacked.served.address)
        sent.append(response.status_code)
        assert_discreet(response.text)
        case.validate_response(response, checks=CHECKS)

    ask()
    return len(sent)


def test_whatever_the_document_allows_or_not_is_answered_as_it_says(attacked: Attacked) -> None:
    fuzzed(attacked, 60)
    attacked.is_well()


@pytest.mark.slow
def test_five_hundred_requests_by_the_document_are_answered_as_it_says(attacked: Attacked) -> None:
    fuzzed(attacked, 500)
    attacked.is_well()


# Byte by byte.


def mutated(chance: random.Random) -> bytes:
    """A sound request with some bytes changed, cut out, put in or repeated."""
    data = bytearray(SOUND)
    for _ in range(chance.randint(1, 4)):
        start = chance.randrange(len(data))
        end = min(len(data), start + chance.randint(0, 12))
        noise = bytes(chance.choices(range(256), k=chance.randint(1, 8)))
        new: bytes = chance.choice([b"", noise, bytes(data[start:end]) * 3])
        data[start:end] = new + chance.choice([b"", b"\r\n", b"\0", b":", b" ", b"\xff", b"%2e", b"\n"])
    return bytes(data)


def assert_mutations_are_refused(attacked: Attacked, count: int, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(count):
        data = mutated(chance)
        statuses = attacked.sent(data, wait=0.05, first=0.1)
        assert all(status < 500 for status in statuses), data
    attacked.is_well()


def test_requests_with_changed_bytes_are_refused_or_answered(attacked: Attacked) -> None:
    assert_mutations_are_refused(attacked, 60, seed=0)


@pytest.mark.slow
def test_five_hundred_requests_with_changed_bytes_are_refused_or_answered(attacked: Attacked) -> None:
    assert_mutations_are_refused(attacked, 500, seed=1)


def posted(*headers: bytes, body: bytes = BODY, start: bytes = b"POST /v1/predict HTTP/1.1\r\n") -> bytes:
    return start + b"".join(header + b"\r\n" for header in (b"Host: 127.0.0.1", *headers)) + b"\r\n" + body


JSON = b"Content-Type: application/json"
LENGTH = b"Content-Length: %d" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked"
CHUNKS = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
SMUGGLED = b"0\r\n\r\nGET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

HEADERS: dict[str, tuple[bytes, set[int]]] = {
    "many": (posted(JSON, LENGTH, *(b"X-%d: a" % number for number in range(5000))), {200, 400, 431}),
    "long": (posted(JSON, LENGTH, b"X: " + b"a" * 1_000_000), {400, 431}),
    "a long name": (posted(JSON, LENGTH, b"X" * 100_000 + b": a"), {200, 400, 431}),
    "two lengths": (posted(JSON, LENGTH, b"Content-Length: 3"), {400}),
    "the same length twice": (posted(JSON, LENGTH, LENGTH), {200, 400}),
    "a list of lengths": (posted(JSON, b"Content-Length: 3, 3"), {400, 422}),
    "a negative length": (posted(JSON, b"Content-Length: -1"), {400}),
    "a signed length": (posted(JSON, b"Content-Length: +%d" % len(BODY)), {400}),
    "a length of letters": (posted(JSON, b"Content-Length: 0x10"), {400}),
    "a length of 10^30": (posted(JSON, b"Content-Length: 1" + b"0" * 30), {400, 413}),
    "chunks and a length": (posted(JSON, LENGTH, CHUNKED, body=CHUNKS), {400}),
    "chunks within chunks": (posted(JSON, CHUNKED, CHUNKED, body=CHUNKS), {400, 501}),
    "unknown coding": (posted(JSON, b"Transfer-Encoding: gzip, chunked", body=CHUNKS), {400, 501}),
    "coding with a tab": (posted(JSON, b"Transfer-Encoding:\tchunked", body=CHUNKS), {200, 400}),
    "coding with a letter more": (posted(JSON, b"Transfer-Encoding: xchunked", body=CHUNKS), {400, 501}),
    "a chunk of 2^64": (posted(JSON, CHUNKED, body=b"f" * 16 + b"\r\nab"), {400, 408, 413}),
    "a chunk of nonsense": (posted(JSON, CHUNKED, body=b"zz\r\nab\r\n0\r\n\r\n"), {400}),
    "a negative chunk": (posted(JSON, CHUNKED, body=b"-1\r\nab\r\n0\r\n\r\n"), {400}),
    "an endless chunk head": (posted(JSON, CHUNKED, body=b"1" * 300_000), {400, 413}),
    "a request within": (posted(JSON, LENGTH, CHUNKED, body=SMUGGLED), {400}),
    "a line within a value": (posted(JSON, LENGTH, b"X-Request-ID: a\r\n\tSet-Cookie: b"), {200, 400}),
    "a lone return": (posted(JSON, LENGTH, b"X-Request-ID: a\rSet-Cookie: b"), {400}),
    "a lone line end": (posted(JSON, LENGTH, b"X-Request-ID: a\nSet-Cookie: b"), {200, 400}),
    "a NUL": (posted(JSON, LENGTH, b"X: a\0b"), {400}),
    "no name": (posted(JSON, LENGTH, b": a"), {400}),
    "a space before the colon": (posted(JSON, LENGTH, b"X : a"), {400}),
    "no colon": (posted(JSON, LENGTH, b"nonsense"), {400}),
    "bytes": (posted(JSON, LENGTH, b"X-Request-ID: \xff\xfe\x80"), {200, 400}),
    "a foreign host": (SOUND.replace(b"127.0.0.1", b"evil.example"), {421}),
    "a host with a path": (SOUND.replace(b"127.0.0.1", b"127.0.0.1/../evil"), {400, 421}),
    "no host": (SOUND.replace(b"Host: 127.0.0.1\r\n", b""), {400, 421}),
    "an upgrade": (posted(JSON, LENGTH, b"Upgrade: websocket", b"Connection: Upgrade"), {200, 400, 426}),
    "an upgrade to HTTP/2": (posted(JSON, LENGTH, b"Upgrade: h2c", b"Connection: Upgrade, HTTP2-Settings"), {200, 400}),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", {400, 421, 505}),
    "HTTP/0.9": (b"GET /\r\n\r\n", {400}),
    "HTTP/9.9": (SOUND.replace(b"HTTP/1.1", b"HTTP/9.9"), {200, 400, 505}),
    "a long method": (SOUND.replace(b"POST", b"P" * 10_000), {400, 405}),
    "a strange method": (SOUND.replace(b"POST", b"\x01\x02"), {400}),
    "TLS": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500), {400}),
    "expecting": (posted(JSON, LENGTH, b"Expect: 100-continue"), {100, 200}),
    "expecting nonsense": (posted(JSON, LENGTH, b"Expect: miracles"), {200, 400, 417}),
    "compressed": (posted(JSON, LENGTH, b"Content-Encoding: gzip"), {200, 400, 415}),
    "another charset": (posted(b"Content-Type: application/json; charset=utf-16", LENGTH), {415}),
    "a form": (posted(b"Content-Type: multipart/form-data; boundary=x", LENGTH), {415}),
    "a key of bytes": (posted(JSON, LENGTH, b"Authorization: Bearer \xff\xfe"), {200, 400}),
}  # fmt: skip


@pytest.mark.parametrize("kind", HEADERS)
def test_headers_that_are_abused_are_refused(kind: str, attacked: Attacked) -> None:
    data, expected = HEADERS[kind]
    statuses = attacked.sent(data)
    assert statuses, "nothing was answered"
    assert set(statuses) <= expected
    assert len([status for status in statuses if status != 100]) == 1, "it took one request for two"
    attacked.is_well()


@pytest.mark.parametrize("headers", [b"a\r\nSet-Cookie: b=c", b"a\nSet-Cookie: b=c", b"a%0d%0aSet-Cookie: b"])
def test_no_header_of_an_answer_is_made_by_the_client(headers: bytes, attacked: Attacked) -> None:
    with attacked.connected() as connection:
        connection.sendall(posted(JSON, LENGTH, b"X-Request-ID: " + headers, b"Connection: close"))
        found = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b"set-cookie" not in found.lower()


PATHS: dict[str, bytes] = {
    "up": b"/../../etc/passwd",
    "up, encoded": b"/..%2f..%2fetc%2fpasswd",
    "up, encoded twice": b"/page/%252e%252e%252f%252e%252e%252fmodels.py",
    "up from the page": b"/page/../app.py",
    "up from the page, encoded": b"/page/..%2fapp.py",
    "up from the page, backwards": b"/page/..\\..\\app.py",
    "up from the page, half encoded": b"/page/%2e%2e/app.py",
    "absolute": b"/page//etc/passwd",
    "absolute, encoded": b"/page/%2fetc%2fpasswd",
    "two slashes": b"//evil.example/page/page.js",
    "NUL": b"/page/page.js%00.css",
    "a real NUL": b"/page/\0",
    "bytes": b"/page/\xff\xfe",
    "bytes, encoded": b"/page/%ff%fe",
    "half a percent": b"/page/%",
    "nonsense percent": b"/page/%zz",
    "very long": b"/" + b"a" * 100_000,
    "very many": b"/" + b"a/" * 20_000,
    "an address": b"http://evil.example/",
    "a star": b"*",
    "nothing": b"",
    "a long question": b"/v1/taxonomy?model=" + b"a" * 60_000,
    "many questions": b"/v1/taxonomy?" + b"a=b&" * 10_000,
    "a question of bytes": b"/v1/taxonomy?model=%ff%00%0d%0a",
    "a device": b"/page/CON",
    "its Python": b"/page/__init__.py",
    "a folder": b"/page/",
    "a fragment": b"/#/../secret",
}  # fmt: skip


@pytest.mark.parametrize("kind", PATHS)
def test_paths_lead_nowhere_else(kind: str, attacked: Attacked) -> None:
    found = b""
    with attacked.connected() as connection:
        connection.settimeout(3)
        connection.sendall(b"GET " + PATHS[kind] + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(65536):
                found += part
    assert b"root:" not in found
    assert b"import " not in found
    (status,) = attacked.statuses(found)
    harmless = {200} if kind in ("a fragment", "an address", "many questions") else set[int]()
    assert status in {400, 404, 405, 414, 421, 422} | harmless, found[:300]
    attacked.is_well()


# Bodies.


def streamed(attacked: Attacked, head: bytes, *, chunked: bool) -> tuple[list[int], int]:
    """The answer to a body of a hundred megabytes, and how much of it was sent before the connection ended."""
    part = b" " * 1_000_000
    piece = b"%x\r\n%b\r\n" % (len(part), part) if chunked else part
    sent, found = 0, b""
    with attacked.connected(20) as connection, contextlib.suppress(OSError):
        connection.sendall(head)
        for _ in range(HUGE // len(part)):
            connection.sendall(piece)
            sent += len(part)
        while got := connection.recv(65536):
            found += got
    return attacked.statuses(found), sent


@pytest.mark.parametrize("chunked", [False, True])
def test_a_hundred_megabytes_are_refused_without_being_held(chunked: bool, attacked: Attacked) -> None:
    before = attacked.most_held
    head = posted(JSON, CHUNKED if chunked else b"Content-Length: %d" % HUGE, body=b"")
    statuses, _ = streamed(attacked, head, chunked=chunked)
    assert statuses == [413]
    assert attacked.most_held - before < 60_000_000
    attacked.is_well()


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_never_ends_is_given_up(chunked: bool, attacked: Attacked) -> None:
    """One byte now and then."""
    with attacked.connected(10) as connection:
        connection.sendall(posted(JSON, CHUNKED if chunked else b"Content-Length: 1000", body=b""))
        started, found = time.monotonic(), b""
        connection.settimeout(0.05)
        while time.monotonic() - started < 8 and not found:
            with contextlib.suppress(TimeoutError):
                connection.sendall(b"1\r\n{\r\n" if chunked else b"{")
                found = connection.recv(65536)
    assert attacked.statuses(found) == [408]
    attacked.is_well()


def test_forty_slow_bodies_keep_no_one_waiting(attacked: Attacked) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(40):
            connection = stack.enter_context(attacked.connected())
            connection.sendall(posted(JSON, b"Content-Length: 1000", body=b"{"))
        started = time.monotonic()
        attacked.is_well()
        assert time.monotonic() - started < 2


BODIES: dict[str, bytes] = {
    "deep lists": b'{"text": ' + b"[" * 1_000_000,
    "deep objects": b'{"text": ' * 500_000,
    "deep and whole": b'{"texts": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "not UTF-8": b'{"text": "\xc3\x28\xff"}',
    "UTF-16": json.dumps({"text": "a"}).encode("utf-16"),
    "with a mark": b"\xef\xbb\xbf" + BODY,
    "half a character": b'{"text": "\\ud800"}',
    "NUL": b'{"text": "a\\u0000b"}',
    "a bare NUL": b'{"text": "a\0b"}',
    "a huge number": b'{"text": "a", "threshold": 1e999999999}',
    "digits": b'{"text": "a", "k": ' + b"9" * 1_000_000 + b"}",
    "many names": b"{" + b",".join(b'"n%d": 1' % number for number in range(100_000)) + b"}",
    "the same name often": b'{"text": "a"' + b', "text": "a"' * 100_000 + b"}",
    "many wrong texts": b'{"texts": [' + b"1," * 3_000_000 + b"1]}",
    "many wrong labels": b'{"text": "a", "labels": [' + b"1," * 3_000_000 + b"1]}",
    "many texts": json.dumps({"texts": ["a"] * 100_000}).encode(),
    "a long text": json.dumps({"text": "a " * 2_000_000}).encode(),
    "a text in place of a list": b'{"texts": "abc"}',
    "objects for texts": b'{"texts": [{"text": "a"}]}',
    "nothing": b"",
    "null": b"null",
    "a string": b'"text"',
    "two values": BODY + BODY,
    "a comment": b'{"text": "a"} // done',
    "a tail": b'{"text": "a",}',
    "prototype": b'{"text": "a", "__proto__": {"admin": true}, "__class__": 1}',
    "names of models": b'{"text": "a", "model": "../../etc/passwd"}',
    "a list for a model": b'{"text": "a", "model": ["tickets"]}',
    "labels that there are not": b'{"text": "a", "labels": ["nonsense"]}',
}  # fmt: skip


@pytest.mark.parametrize("path", [b"/v1/predict", b"/v1/explain"])
@pytest.mark.parametrize("kind", BODIES)
def test_bodies_that_are_malformed_are_refused(kind: str, path: bytes, attacked: Attacked) -> None:
    body = BODIES[kind]
    start = b"POST " + path + b" HTTP/1.1\r\n"
    sound = kind in ("half a character", "NUL", "with a mark")
    with attacked.connected() as connection:
        connection.sendall(
            posted(JSON, b"Content-Length: %d" % len(body), b"Connection: close", start=start, body=body)
        )
        found = b"".join(iter(lambda: connection.recv(65536), b""))
    (status,) = attacked.statuses(found)
    assert status in ({200} if sound else {400, 404, 413, 422}), found[:300]
    attacked.is_well()


# Clients that go away.


def assert_gone_clients_leave_no_trace(attacked: Attacked, places: range) -> None:
    for place in places:
        connection = attacked.connected()
        connection.sendall(SOUND[:place])
        if place % 2:  # at once, with a reset
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        connection.close()
    attacked.is_well()


def test_clients_may_go_away_in_the_middle(attacked: Attacked) -> None:
    assert_gone_clients_leave_no_trace(attacked, range(0, len(SOUND) + 1, 7))


@pytest.mark.slow
def test_clients_may_go_away_at_every_byte(attacked: Attacked) -> None:
    for _ in range(5):
        assert_gone_clients_leave_no_trace(attacked, range(len(SOUND) + 1))


def test_requests_one_after_the_other_in_one_go_are_answered_each(attacked: Attacked) -> None:
    assert attacked.sent(SOUND * 5) == [200] * 5


def test_hundreds_of_idle_connections_keep_no_one_out(attacked: Attacked) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(attacked.connected())
        attacked.is_well()
