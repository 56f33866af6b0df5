"""What stands before the application: an error of its own tells nothing, and only so many explanations wait."""

import asyncio
import json
import threading
from typing import Any

import pytest

from hitin.serve.app import application
from hitin.serve.guard import Application, Guard
from hitin.serve.logs import Log
from hitin.serve.measures import Measures
from hitin.serve.refusals import Refusal
from hitin.serve.service import Service
from hitin.serve.settings import Limits, ServeSettings

SECRET = "a word that no log may hold"
SETTINGS = ServeSettings(limits=Limits(explanations=2))


def asked(guard: Application, path: str = "/v1/models", method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body that an ASGI application answers."""
    sent: list[Any] = []

    async def receive() -> Any:
        await asyncio.sleep(60)

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "http_version": "1.1",
        "scheme": "http",
        "headers": [(b"host", b"localhost")],
    }
    asyncio.run(guard(scope, receive, send))  # type: ignore[arg-type]
    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], headers, b"".join(message.get("body", b"") for message in sent[1:])


async def failing(*_: Any) -> None:
    raise ValueError(SECRET)


def test_an_error_of_the_service_tells_nothing_but_where_to_look() -> None:
    lines: list[str] = []
    status, headers, body = asked(Guard(failing, SETTINGS, Measures(), Log(lines.append)))
    assert status == 500
    told = json.loads(body)["error"]
    assert told["kind"] == "internal"
    assert headers["x-request-id"] in told["remedy"]
    (line,) = map(json.loads, lines)
    assert (line["status"], line["failure"], line["request"]) == (500, "ValueError", headers["x-request-id"])
    assert any("failing" in place for place in line["at"])
    assert SECRET not in lines[0] + body.decode()


def test_an_error_within_a_route_tells_nothing_either(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Service) -> None:
        raise KeyError(SECRET)

    lines: list[str] = []
    monkeypatch.setattr(Service, "list_models", fail)
    status, headers, body = asked(application(Service([], SETTINGS, Log(lines.append))))
    assert (status, json.loads(body)["error"]["kind"]) == (500, "internal")
    assert headers["content-security-policy"]
    (line,) = map(json.loads, lines)
    assert line["failure"] == "KeyError"
    assert SECRET not in lines[0] + body.decode()


def test_while_models_are_loaded_it_lives_but_is_not_ready() -> None:
    guard = application(Service([], SETTINGS, Log(lambda _: None)))
    assert asked(guard, "/healthz")[0] == 200
    assert asked(guard, "/readyz")[0] == 503
    status, headers, body = asked(guard)
    assert (status, json.loads(body)["error"]["kind"], headers["retry-after"]) == (503, "loading", "1")


def test_only_some_explanations_wait_and_they_are_made_one_after_the_other() -> None:
    service = Service([], SETTINGS, Log(lambda _: None))
    gate, at_once, most = threading.Event(), [0], [0]

    def work() -> int:
        at_once[0] += 1
        most[0] = max(most[0], at_once[0])
        assert gate.wait(20)
        at_once[0] -= 1
        return 1

    async def many() -> list[Any]:
        tasks = [asyncio.create_task(service._in_turn(work)) for _ in range(5)]
        await asyncio.sleep(0.05)
        tasks[1].cancel()  # its client has gone
        gate.set()
        return await asyncio.gather(*tasks, return_exceptions=True)

    first, gone, second, *others = asyncio.run(many())
    assert (first, second) == (1, 1)
    assert isinstance(gone, asyncio.CancelledError)
    assert all(isinstance(other, Refusal) and other.status == 429 for other in others)
    assert most == [1]
    gate.set()
    assert asyncio.run(service._in_turn(work)) == 1, "there is room again"
    service.close()
