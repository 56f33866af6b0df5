"""What a server refuses, and how it says so: too much, malformed, without the key, under a foreign name."""

import contextlib
import gc
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin.errors import InputError
from hitin.serve.refusals import Refusal, encoded
from hitin.serve.settings import Limits, ServeSettings
from hitin.serve.strict_json import parse
from tests.conftest import Run
from tests.serving import LATE, Served, serving

JSON = {"Content-Type": "application/json"}
KEY = "a-key-that-no-one-guesses"


def send(served: Served, content: bytes, headers: dict[str, str] = JSON, path: str = "/v1/predict") -> httpx.Response:
    with served.client() as client:
        return client.post(path, content=content, headers=headers)


def refused(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    """What is told, in the one form of all errors."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-request-id"]
    told: dict[str, Any] = answer.json()["error"]
    assert set(told) == {"kind", "message", "remedy"}
    assert told["kind"] == kind
    assert "Traceback" not in answer.text
    return told


@pytest.mark.parametrize(
    ("content", "status", "kind"),
    [
        (b"", 422, "bad-request"),
        (b"null", 422, "bad-request"),
        (b"[1]", 422, "bad-request"),
        (b"{}", 422, "bad-request"),
        (b'{"text": null}', 422, "bad-request"),
        (b'{"text": 3}', 422, "bad-request"),
        (b'{"texts": "one"}', 422, "bad-request"),
        (b'{"texts": []}', 422, "bad-request"),
        (b'{"texts": [1]}', 422, "bad-request"),
        (b'{"text": "a", "texts": ["a"]}', 422, "bad-request"),
        (b'{"text": "a", "nonsense": 1}', 422, "bad-request"),
        (b'{"text": "a", "\\ud800": 1}', 422, "bad-request"),
        (b'{"text": "a", "threshold": 1.1}', 422, "bad-request"),
        (b'{"text": "a", "threshold": 1e999}', 422, "bad-request"),
        (b'{"text": "a", "threshold": "0.3"}', 422, "bad-request"),
        (b'{"text": "a", "stop": true}', 422, "bad-request"),
        (b'{"text": "a", "policy": "best"}', 422, "bad-request"),
        (b'{"text": "a", "policy": "raw", "k": 3}', 422, "bad-option"),
        (b'{"text": "a", "policy": "top-k", "k": 0}', 422, "bad-request"),
        (b'{"text": "a", "policy": "top-k", "k": 1000000000000000000000}', 422, "bad-request"),
        (b'{"text": "a", "policy": "top-k", "threshold": 0.5}', 422, "bad-option"),
        (b'{"text": "a", "threshold": NaN}', 400, "bad-json"),
        (b'{"text": "a", "threshold": ' + b"9" * 5000 + b"}", 400, "bad-json"),
        (b'{"text": "a", "text": "b"}', 400, "bad-json"),
        (b'{"text": "\xff"}', 400, "bad-json"),
        (b'{"text": "a"', 400, "bad-json"),
        (b"[" * 100_000, 400, "bad-json"),
        (b'{"a":' * 100_000, 400, "bad-json"),
        (b'{"text": "a", "model": "another"}', 404, "no-model"),
        (b'{"text": "a", "model": "\\ud800"}', 404, "no-model"),
    ],
)
def test_what_is_malformed_is_refused(served_tickets: Served, content: bytes, status: int, kind: str) -> None:
    refused(send(served_tickets, content), status, kind)


@pytest.mark.parametrize("text", ["\\ud800 half", "\\u0000", "", " ", "\\ufeff", "\\u202e"])
def test_odd_texts_are_answered(served_tickets: Served, text: str) -> None:
    answer = send(served_tickets, f'{{"text": "{text}"}}'.encode())
    assert answer.status_code == 200, answer.text
    assert send(served_tickets, f'{{"text": "{text}"}}'.encode(), path="/v1/explain").status_code == 200


@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)))
def test_bodies_are_read_as_json_or_refused(value: Any) -> None:
    body = json.dumps(value).encode()
    is_sound = not any(word in body for word in (b"NaN", b"Infinity"))
    try:
        assert parse(body) == value
    except Refusal as refusal:
        assert refusal.status == 400
        assert not is_sound or b"NaN" in json.dumps(value).encode()


def test_garbage_is_not_looked_for_while_a_body_is_read() -> None:
    """It took ten times as long as reading, during which no one was answered."""
    looks: list[bool] = []  # whether it may be, when the body is taken

    class Body(bytes):
        def decode(self, *_: Any) -> str:
            looks.append(gc.isenabled())
            return super().decode()

    gc.enable()
    assert parse(Body(b"{}")) == {}
    assert looks == [False]


@pytest.mark.parametrize("body", [b"{}", b"{", b'{"a": NaN}'])
@pytest.mark.parametrize("was_enabled", [True, False])
def test_garbage_is_looked_for_as_before_when_a_body_is_read(body: bytes, was_enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if was_enabled else gc.disable)()
        with contextlib.suppress(Refusal):
            parse(body)
        assert gc.isenabled() == was_enabled
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize("kind", ["", "text/plain", "application/json; charset=latin-1", "application/xml"])
def test_only_json_is_read(served_tickets: Served, kind: str) -> None:
    headers = {"Content-Type": kind} if kind else {}
    refused(send(served_tickets, b'{"text": "a"}', headers), 415, "wrong-type")


@pytest.mark.parametrize("kind", ["application/json", "Application/JSON", "application/json; charset=utf-8"])
def test_json_is_read_however_it_is_spelt(served_tickets: Served, kind: str) -> None:
    assert send(served_tickets, b'{"text": "a"}', {"Content-Type": kind}).status_code == 200


def test_paths_and_methods_that_there_are_not(served_tickets: Served) -> None:
    for path in ("/v1", "/v1/predict/", "//v1/models", "/docs", "/redoc", "/v1/..%2fmodels", "/%00", "/" + "a" * 5000):
        refused(served_tickets.get(path), 404, "no-page")
    with served_tickets.client() as client:
        for method, path, allowed in (("GET", "/v1/predict", "POST"), ("DELETE", "/v1/models", "GET, HEAD")):
            answer = client.request(method, path)
            refused(answer, 405, "wrong-method")
            assert answer.headers["allow"] == allowed
    refused(served_tickets.get("/v1/taxonomy", params={"model": "another"}), 404, "no-model")


def test_too_much_is_refused_before_it_is_computed(served_tickets: Served) -> None:
    for asked, status, kind in (
        ({"texts": ["a"] * 1001}, 413, "too-many-texts"),
        ({"texts": [[]] * 1001}, 413, "too-many-texts"),  # counted before they are looked at
        ({"text": "a" * 200_001}, 413, "too-long"),
        ({"texts": ["a"] * 17, "limits": True}, 422, "too-many-texts"),
    ):
        refused(served_tickets.post("/v1/predict", asked), status, kind)
    long = "a" * 200_001
    assert "the text has" in served_tickets.post("/v1/predict", {"texts": [long]}).text
    assert "text 2 has" in served_tickets.post("/v1/predict", {"texts": ["a", long]}).text
    refused(served_tickets.post("/v1/explain", {"text": "a", "labels": ["Late"] * 17}), 422, "bad-request")
    assert served_tickets.predict(*["a"] * 1000)["documents"][999]


def in_parts(size: int) -> Iterator[bytes]:
    for _ in range(size // 65536):
        yield b" " * 65536


@pytest.mark.parametrize("has_length", [True, False])
def test_a_body_that_is_too_large_is_refused_and_the_answer_arrives(served_tickets: Served, has_length: bool) -> None:
    size = 32 << 20
    content = b" " * size if has_length else in_parts(size)
    with served_tickets.client() as client:
        refused(client.post("/v1/predict", content=content, headers=JSON), 413, "too-large")
    assert served_tickets.predict(LATE)


@pytest.fixture(scope="module")
def narrow(tickets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that has a key and takes little."""
    options = ("--max-body", 2000, "--max-texts", 3, "--max-characters", 100, "--body-seconds", 0.5)
    with serving(tmp_path_factory.mktemp("narrow"), [tickets], *options, HITIN_API_KEY=KEY) as served:
        yield served


def test_limits_can_be_chosen(narrow: Served) -> None:
    headers = JSON | {"X-API-Key": KEY}
    for content, kind in (
        (json.dumps({"texts": ["a"] * 4}), "too-many-texts"),
        (json.dumps({"text": "a" * 101}), "too-long"),
        (json.dumps({"text": "a" * 3000}), "too-large"),
    ):
        refused(send(narrow, content.encode(), headers), 413, kind)
    assert send(narrow, json.dumps({"texts": ["a" * 100] * 3}).encode(), headers).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-API-Key": ""},
        {"X-API-Key": KEY[:-1]},
        {"X-API-Key": KEY + "x"},
        {"X-API-Key": "\xff"},
        {"Authorization": KEY},
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": "Bearer"},
        {"Authorization": f"Bearer {KEY.upper()}"},
    ],
)
def test_without_the_key_nothing_is_told(narrow: Served, headers: dict[str, str]) -> None:
    sent = {name: value.encode("latin-1") for name, value in headers.items()}
    for path in ("/v1/models", "/v1/taxonomy", "/metrics", "/openapi.json", "/v1/nothing"):
        answer = narrow.get(path, headers=sent)
        assert refused(answer, 401, "no-key" if not headers else "wrong-key")["remedy"]
        assert answer.headers["www-authenticate"] == "Bearer"
    answer = send(narrow, b'{"text": "a"}', JSON | headers) if "\xff" not in str(headers) else answer
    assert answer.status_code == 401


@pytest.mark.parametrize("headers", [{"X-API-Key": KEY}, {"Authorization": f"Bearer {KEY}"}])
def test_with_the_key_all_is_told(narrow: Served, headers: dict[str, str]) -> None:
    for path in ("/v1/models", "/v1/taxonomy", "/metrics", "/openapi.json"):
        assert narrow.get(path, headers=headers).status_code == 200
    schemes = narrow.get("/openapi.json", headers=headers).json()["components"]["securitySchemes"]
    assert set(schemes) == {"bearer", "key"}


def test_the_page_and_the_state_need_no_key(narrow: Served) -> None:
    for path in ("/", "/healthz", "/readyz"):
        assert narrow.get(path).status_code == 200


def test_a_key_comes_from_a_file_too(tickets: Path, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    with serving(tmp_path, [tickets], "--api-key-file", tmp_path / "key") as served:
        assert served.get("/v1/models").status_code == 401
        assert served.get("/v1/models", headers={"X-API-Key": KEY}).status_code == 200
        assert KEY not in served.errors.read_text()


def raw(served: Served, *parts: bytes, pause: float = 0.0, patience: float = 10) -> bytes:
    """All that is answered to these bytes until the connection ends."""
    host, _, port = served.address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=patience) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        found = b""
        with contextlib.suppress(ConnectionResetError):
            while data := connection.recv(65536):
                found += data
        return found


def test_a_body_that_comes_too_slowly_is_given_up(narrow: Served) -> None:
    head = f"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {KEY}\r\nContent-Length: 100\r\n"
    found = raw(narrow, head.encode() + b"Content-Type: application/json\r\n\r\n", b"{", b'"', b"t", pause=0.2)
    assert found.startswith(b"HTTP/1.1 408 ")
    assert b'"kind":"too-slow"' in found


def test_headers_that_come_too_slowly_are_given_up(narrow: Served) -> None:
    assert raw(narrow, b"GET /healthz HTTP/1.1\r\n", b"Host: loc") == b""
    assert raw(narrow, b"") == b""


def test_a_connection_that_only_waits_is_kept(narrow: Served) -> None:
    with narrow.client() as client:
        client.get("/healthz")
        time.sleep(1)
        client.get("/healthz")
        (pooled,) = client._transport._pool.connections  # type: ignore[attr-defined]
        assert "Request Count: 2" in repr(pooled)


@pytest.mark.parametrize(
    "sent",
    [
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 200_000,
    ],
)
def test_what_is_not_http_is_refused_in_the_same_form(served_tickets: Served, sent: bytes) -> None:
    head, _, body = raw(served_tickets, sent).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"x-request-id" in head
    assert json.loads(body)["error"]["kind"] == "bad-request"


def test_only_its_own_names_call_a_server_on_loopback(served_tickets: Served) -> None:
    for host in ("localhost", "LOCALHOST:1", "127.0.0.1:8000", "[::1]:80"):
        assert served_tickets.get("/v1/models", headers={"Host": host}).status_code == 200
    for host in ("example.org", "localhost.example.org", "127.0.0.1.example.org:80", "[::2]", ""):
        assert served_tickets.get("/v1/models", headers={"Host": host}).status_code == 421
    assert served_tickets.get("/healthz", headers={"Host": "10.1.2.3"}).status_code == 200


def test_an_empty_key_is_refused_wherever_it_comes_from(
    tickets: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is that of a file which is not there, and would leave the service open."""
    (tmp_path / "key").write_text("\n")
    from_file = run("serve", tickets, "--port", 0, "--api-key-file", tmp_path / "key")
    monkeypatch.setenv("HITIN_API_KEY", "")
    monkeypatch.setattr("hitin.serve.running.run", lambda *_, **__: True)
    from_environment = run("serve", tickets, "--port", 0)
    assert (from_file.exit_code, from_environment.exit_code) == (2, 2)
    assert "the API key cannot be sent in a header" in from_environment.stderr
    assert from_environment.stderr == from_file.stderr


def test_names_that_are_allowed_call_a_server_and_no_others(tickets: Path, tmp_path: Path) -> None:
    names = "labels.example.org", "Other.example.org"
    with serving(tmp_path, [tickets], *(word for name in names for word in ("--allowed-host", name))) as served:
        for host in ("labels.example.org", "LABELS.example.org:80", "other.example.org"):
            assert served.get("/v1/models", headers={"Host": host}).status_code == 200
        for host in ("localhost", "example.org", "x.labels.example.org"):
            assert served.get("/v1/models", headers={"Host": host}).status_code == 421


def test_names_can_be_allowed() -> None:
    assert ServeSettings(allowed_hosts=("Example.org",)).hosts == frozenset({"example.org"})
    assert ServeSettings(host="0.0.0.0").hosts is None
    assert "127.0.0.5" in (ServeSettings(host="127.0.0.5").hosts or ())


@pytest.mark.parametrize(
    "options",
    [
        {"port": -1},
        {"port": 65536},
        {"batch_size": 0},
        {"api_key": ""},
        {"api_key": "a b"},
        {"api_key": "ä"},
        {"drain_seconds": -1},
        {"reload_every": float("nan")},
    ],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        ServeSettings(**options)


@pytest.mark.parametrize("options", [{"body": 0}, {"texts": 0}, {"queue": -1}, {"body_seconds": 0}])
def test_limits_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Limits(**options)


def test_halves_of_characters_in_names_can_be_sent() -> None:
    assert json.loads(encoded({"\ud800": 1})) == {"\ud800": 1}
    assert encoded({"ä": 1}) == '{"ä":1}'.encode()
