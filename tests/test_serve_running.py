"""How a server starts, what it tells of itself, and how it ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from hitin.serve.logs import Log
from tests.conftest import Run
from tests.serving import LATE, Served, serving

SECRET = "a word that no log may hold"


def test_an_address_that_is_taken_is_told(tickets: Path, run: Run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run("serve", tickets, "--port", taken.getsockname()[1])
    assert result.exit_code == 2
    assert "is in use" in result.stderr
    assert "--port" in result.stderr


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid"])
def test_an_address_of_another_machine_is_told(tickets: Path, run: Run, host: str) -> None:
    result = run("serve", tickets, "--host", host, "--port", 0)
    assert result.exit_code == 2
    assert "--host" in result.stderr


def test_a_model_that_is_not_there_is_told(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hitin", "serve", str(tmp_path / "nothing"), "--port", "0"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 2
    assert "there is no such model" in result.stderr
    assert "Traceback" not in result.stderr


def test_options_that_make_no_sense_are_told(tickets: Path, tmp_path: Path, run: Run) -> None:
    for options in (["--batch-size", 0], ["--port", 99999], ["--api-key-file", tmp_path / "nothing"], ["--queue", 0]):
        result = run("serve", tickets, *options)
        assert result.exit_code == 2
        assert "Traceback" not in result.output


def test_help_has_examples_and_imports_nothing_heavy() -> None:
    program = (
        "import sys; from hitin.cli import app\n"
        "try: app(['serve', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'fastapi', 'uvicorn', 'prometheus_client', 'starlette'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "hitin serve model --open" in result.stdout


def test_without_the_extra_it_is_said_what_to_install(tickets: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = run("serve", tickets)
    assert result.exit_code == 2
    assert "pip install 'hitin[serve]'" in result.stderr


def logged(served: Served, **fields: Any) -> list[dict[str, Any]]:
    """The requests that were logged with these fields."""
    return [line for line in served.log() if fields.items() <= line.items()]


def test_requests_are_logged_without_their_text(served_tickets: Served) -> None:
    answer = served_tickets.post("/v1/predict", {"texts": [SECRET, "ab"]}, headers={"X-Request-ID": "my-own.id_1"})
    assert answer.headers["x-request-id"] == "my-own.id_1"
    served_tickets.post("/v1/explain", {"text": SECRET})
    served_tickets.post("/v1/predict", {"text": 3, SECRET: SECRET})
    served_tickets.get(f"/{SECRET}", params={"model": SECRET})
    served_tickets.get("/v1/taxonomy", params={"model": SECRET}, headers={"X-Request-ID": SECRET})
    (line,) = logged(served_tickets, request="my-own.id_1")
    assert line["method"] == "POST"
    assert line["path"] == "/v1/predict"
    assert line["status"] == 200
    assert (line["texts"], line["characters"]) == (2, len(SECRET) + 2)
    assert 0 < line["milliseconds"] < 60_000
    assert line["time"].endswith("Z")
    assert logged(served_tickets, path="other", status=404)
    assert SECRET not in served_tickets.errors.read_text()
    assert SECRET.split()[-1] + '"' not in served_tickets.errors.read_text()


def test_texts_are_logged_when_that_is_wanted(tickets: Path, tmp_path: Path) -> None:
    with serving(tmp_path, [tickets], "--log-texts") as served:
        served.predict(SECRET)
        served.wait_for("request")
        assert logged(served, said=[SECRET])
        assert served.stop() == 0


def test_what_was_done_is_counted(served_tickets: Served) -> None:
    def counts() -> dict[str, float]:
        lines = served_tickets.get("/metrics").text.splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}

    before = counts()
    served_tickets.predict(*["a"] * 130)
    served_tickets.get("/nothing/at/all")
    after = counts()
    for name, more in (
        ('hitin_requests_total{method="POST",path="/v1/predict",status="200"}', 1),
        ('hitin_requests_total{method="GET",path="other",status="404"}', 1),
        ('hitin_request_seconds_count{path="/v1/predict"}', 1),
        ('hitin_texts_total{model="tickets"}', 130),
        ('hitin_batch_texts_count{model="tickets"}', 3),
    ):
        assert after[name] - before.get(name, 0) == more, name
    assert after['hitin_waiting_texts{model="tickets"}'] == 0
    assert after["process_resident_memory_bytes"] > 1e7


def test_the_document_of_the_interface_is_complete(served_tickets: Served) -> None:
    document = served_tickets.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    assert {"/v1/predict", "/v1/explain", "/v1/taxonomy", "/v1/models", "/healthz", "/readyz"} <= set(document["paths"])
    for path in ("/v1/predict", "/v1/explain"):
        answers = document["paths"][path]["post"]["responses"]
        assert {"200", "400", "401", "404", "408", "413", "415", "422", "429", "503"} <= set(answers)
        error = answers["422"]["content"]["application/json"]["schema"]["$ref"]
        assert error.endswith("/ErrorAnswer")
    assert "HTTPValidationError" not in document["components"]["schemas"]


def test_a_full_queue_is_answered_with_when_to_come_again(tickets: Path, tmp_path: Path) -> None:
    with serving(tmp_path, [tickets], "--queue", 64, "--batch-size", 2) as served:
        statuses: list[tuple[int, str | None]] = []

        def ask() -> None:
            answer = served.post("/v1/predict", {"texts": [LATE * 200] * 60})
            statuses.append((answer.status_code, answer.headers.get("retry-after")))

        threads = [threading.Thread(target=ask) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {status for status, _ in statuses} == {200, 429}
        assert {after for status, after in statuses if status == 429} == {"1"}
        assert served.predict(LATE)


def test_a_client_that_goes_is_noted_and_harms_no_one(served_tickets: Served) -> None:
    host, _, port = served_tickets.address.removeprefix("http://").partition(":")
    body = json.dumps({"texts": [LATE * 100] * 900}).encode()
    head = "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nX-Request-ID: gone\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        served_tickets.wait_for_texts()
    end = time.monotonic() + 20
    while not logged(served_tickets, request="gone"):
        assert time.monotonic() < end
        time.sleep(0.02)
    assert logged(served_tickets, request="gone")[0]["status"] == 499
    assert served_tickets.predict(LATE)["documents"][0]["paths"] == ["Delivery > Late"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_after_what_was_taken(tickets: Path, tmp_path: Path, number: signal.Signals) -> None:
    with serving(tmp_path, [tickets], "--drain-seconds", 1.5) as served, served.client() as client:
        assert client.get("/readyz").json() == {"status": "ready"}
        found: list[httpx.Response] = []
        asking = threading.Thread(
            target=lambda: found.append(served.post("/v1/predict", {"texts": [LATE * 100] * 1000}))
        )
        asking.start()
        served.wait_for_texts()
        served.process.send_signal(number)
        served.wait_for("ending")
        answer = client.get("/readyz")
        assert (answer.status_code, answer.json()) == (503, {"status": "ending"})
        assert answer.headers["connection"] == "close"
        assert served.predict(LATE), "for a while it still takes requests"
        asking.join()
        assert found[0].status_code == 200
        assert len(found[0].json()["documents"]) == 1000
        assert served.process.wait(30) == 0
        assert "Traceback" not in served.errors.read_text()
        assert served.log()[-1]["event"] == "ended"


def test_a_connection_that_only_waits_does_not_hold_it_up(tickets: Path, tmp_path: Path) -> None:
    with serving(tmp_path, [tickets], "--drain-seconds", 0) as served, served.client() as client:
        client.get("/healthz")
        began = time.monotonic()
        assert served.stop() == 0
        assert time.monotonic() - began < 10


def test_a_second_signal_ends_it_at_once(tickets: Path, tmp_path: Path) -> None:
    with serving(tmp_path, [tickets], "--drain-seconds", 60) as served:
        served.process.send_signal(signal.SIGTERM)
        served.wait_for("ending")
        began = time.monotonic()
        assert served.stop() != 0
        assert time.monotonic() - began < 10


def test_log_lines_are_whole_and_ascii() -> None:
    lines: list[str] = []
    Log(lines.append)("event", name="ä\n\ud800")
    assert len(lines) == 1
    assert lines[0].isascii()
    assert lines[0].count("\n") == 1
    assert json.loads(lines[0])["name"] == "ä\n\ud800"


OFFER = "from hitin.commands.serve import offer_page; import sys; offer_page(sys.argv[1]); print('went on')"


def answered(tickets: Path, said: bytes, **environment: str) -> tuple[int, str]:
    """The exit code and what is seen of `offer_page` on a terminal on which a person says something."""
    import pty  # which not every system has

    terminal, theirs = pty.openpty()
    command = [sys.executable, "-c", OFFER, str(tickets)]
    left_out = {name: value for name, value in os.environ.items() if name != "CI"}
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=left_out | {"BROWSER": "true"} | environment
    ) as process:
        os.close(theirs)
        os.write(terminal, said)
        seen = b""
        while True:
            try:
                data = os.read(terminal, 4096)
            except OSError:  # it has ended
                break
            seen += data
            if b"serving at" in data:
                process.send_signal(signal.SIGINT)
    os.close(terminal)
    return process.returncode, seen.decode()


def test_a_person_is_asked_whether_to_open_the_page(tickets: Path) -> None:
    for said in (b"\n", b"n\n"):
        code, seen = answered(tickets, said)
        assert code == 0
        assert "Open its page" in seen
        assert "serving at" not in seen
        assert "went on" in seen
    code, seen = answered(tickets, b"y\n")
    assert code == 0
    assert "serving at http://127.0.0.1:" in seen


def test_no_one_is_asked_where_no_one_answers(tickets: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", OFFER, str(tickets)],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        check=True,
    )
    assert result.stdout == "went on\n"
    assert "Open" not in answered(tickets, b"y\n", CI="true")[1]
