"""What people and programs around a server do: probes, compressed bodies, other runtimes, folders that are copied."""

import gzip
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema_rs
import numpy as np
import pytest

from hitin.decisions import Decisions
from hitin.errors import InputError
from hitin.serve.batching import Closed, Unbatched
from hitin.serve.models import Loading, Models
from hitin.serve.settings import ServeSettings
from tests.serving import LATE, Served, copied, serving, train_tickets

KEY = "a-key-that-no-one-guesses"


@pytest.mark.parametrize("path", ["/", "/page/page.css", "/healthz", "/readyz", "/metrics", "/openapi.json"])
def test_the_head_alone_of_what_can_be_read(served_tickets: Served, path: str) -> None:
    with served_tickets.client() as client:
        whole, head = client.get(path), client.head(path)
        assert client.get("/healthz").status_code == 200, "the connection goes on"
    assert (head.status_code, head.content) == (200, b"")
    names = ["content-type", "etag"] if path == "/metrics" else ["content-type", "etag", "content-length"]
    assert [head.headers.get(name) for name in names] == [whole.headers.get(name) for name in names]


def test_the_head_of_what_is_refused(tickets: Path, tmp_path: Path) -> None:
    with serving(tmp_path, [tickets], HITIN_API_KEY=KEY) as served, served.client() as client:
        statuses = {path: client.head(path) for path in ("/healthz", "/v1/models", "/nothing")}
        assert {path: each.status_code for path, each in statuses.items()} == {
            "/healthz": 200,
            "/v1/models": 401,
            "/nothing": 401,
        }
        assert not any(each.content for each in statuses.values())


def test_a_wrong_method_is_told_the_right_one(served_tickets: Served) -> None:
    with served_tickets.client() as client:
        answers = [client.get("/v1/predict"), client.head("/v1/explain"), client.delete("/v1/models")]
        answers.append(client.post("/openapi.json"))
    assert [each.status_code for each in answers] == [405] * 4
    assert [each.headers["allow"] for each in answers] == ["POST", "POST", "GET, HEAD", "GET, HEAD"]
    assert answers[0].json()["error"]["remedy"] == "Use POST."


def test_a_compressed_body_is_told_as_such(served_tickets: Served) -> None:
    body, headers = json.dumps({"text": LATE}).encode(), {"Content-Type": "application/json"}
    with served_tickets.client() as client:
        plain = client.post("/v1/predict", content=body, headers=headers | {"Content-Encoding": "identity"})
        small = client.post("/v1/predict", content=gzip.compress(body), headers=headers | {"Content-Encoding": "gzip"})
    assert plain.status_code == 200
    assert small.status_code == 415
    assert "compressed" in small.json()["error"]["message"]


def test_labels_are_explained_by_the_paths_that_answers_tell(served_tickets: Served) -> None:
    (path,) = served_tickets.predict(LATE)["documents"][0]["paths"]
    asked: dict[str, Any] = {"text": LATE, "labels": [path, "Late"]}
    by_path, by_name = served_tickets.post("/v1/explain", asked).json()["explanations"]
    assert path == "Delivery > Late"
    assert by_path == by_name
    for wrong in ("Delivery > Refund", "Late|Refund", "[" * 10_000, "a > " * 50_000):
        answer = served_tickets.post("/v1/explain", {"text": LATE, "labels": ["Late", wrong]})
        assert answer.status_code == 422
        assert answer.json()["error"]["message"] == "label 2 is not in the taxonomy"


@pytest.mark.parametrize("name", ["labels.example.org:8080", "http://labels.example.org", "*", "", "a b", "[::1]"])
def test_a_name_that_no_request_can_have_is_told_at_the_start(name: str) -> None:
    with pytest.raises(InputError, match="is not the name of a host"):
        ServeSettings(allowed_hosts=("labels.example.org", name))


def test_names_and_addresses_may_be_allowed() -> None:
    names = ("labels.example.org", "Intranet", "192.0.2.7", "::1", "2001:db8::7")
    assert ServeSettings(allowed_hosts=names).hosts == frozenset(name.lower() for name in names)


# What the OpenAPI document allows is what the server takes.

TOGETHER: list[dict[str, Any]] = [
    {},
    {"k": None},
    {"k": 2},
    {"k": 2, "policy": None},
    {"k": 2, "policy": "top-k"},
    {"k": 2, "policy": "raw"},
    {"k": None, "policy": "raw"},
    {"threshold": 0.5},
    {"threshold": 0.5, "policy": "top-down"},
    {"threshold": 0.5, "policy": "single-path"},
    {"threshold": None, "policy": "top-k"},
    {"threshold": 0.5, "policy": None},
]


@pytest.fixture(scope="module")
def top_k(tickets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A model whose own policy is top-k, under which k needs no policy."""
    model = copied(tickets, tmp_path_factory.mktemp("top-k") / "tickets")
    (model / "decisions.json").write_text(Decisions("top-k").to_json())
    with serving(model.parent, [model]) as served:
        yield served


@pytest.mark.parametrize("options", TOGETHER, ids=str)
@pytest.mark.parametrize("path", ["predict", "explain"])
def test_what_goes_together_is_as_the_document_says(top_k: Served, options: dict[str, Any], path: str) -> None:
    document = top_k.get("/openapi.json").json()
    schema = {"$ref": f"#/components/schemas/{path.title()}Request", "components": document["components"]}
    asked = {"text": LATE, **options}
    is_allowed = jsonschema_rs.Draft202012Validator(schema).is_valid(asked)
    assert (top_k.post(f"/v1/{path}", asked).status_code == 200) == is_allowed


# Models that onnxruntime computes, and folders that change.


def onnx_models(model: Path) -> Models:
    return Models.load([str(model)], Loading(device="cpu", runtime="onnx"))


def test_how_many_documents_an_exported_model_learnt_from_is_told(exported_tickets: Path, tickets: Path) -> None:
    models, by_torch = onnx_models(exported_tickets), Models.load([str(tickets)], Loading(device="cpu"))
    (served,), (original,) = models.all(), by_torch.all()
    assert served.summary(None)["runtime"] == "onnx"
    assert served.summary(None)["documents"] == original.summary(None)["documents"] == 8 * 30
    models.close()
    by_torch.close()


def test_explanations_are_of_the_model_that_predicts_or_none(exported_tickets: Path, tmp_path: Path) -> None:
    model = copied(exported_tickets, tmp_path / "tickets")
    with serving(tmp_path, [model], "--runtime", "onnx") as served:
        train_tickets(model, method="flat", epochs=1)  # trained anew, and not exported yet
        served.wait_for("model not loaded anew")
        assert served.predict(LATE)["documents"][0]["paths"] == ["Delivery > Late"]
        answer = served.post("/v1/explain", {"text": LATE})
        assert answer.status_code == 422
        assert answer.json()["error"]["kind"] == "no-explanation"
        assert "another" in answer.json()["error"]["message"]


def test_a_folder_is_loaded_whichever_of_its_files_is_copied_last(tickets: Path, tmp_path: Path) -> None:
    model = copied(tickets, tmp_path / "tickets")
    other = train_tickets(tmp_path / "other", method="flat", epochs=1)
    models = Models.load([str(model)], Loading(device="cpu"))
    shutil.copy(other / "model.json", model)
    assert models.look() == []
    assert models.problems
    for file in ("run.toml", "taxonomy.json", "tokenizer.json", "history.json", "model.safetensors"):
        shutil.copy(other / file, model)
    assert models.look() == ["tickets"]
    assert not models.problems
    models.close()


def test_a_service_without_batches_that_closes_says_so_at_any_moment() -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    wrong: list[BaseException] = []

    def ask(computing: Unbatched) -> None:
        try:
            while True:
                computing.submit(["a"])
        except Closed:
            pass
        except BaseException as error:
            wrong.append(error)

    try:
        for _ in range(60):
            computing = Unbatched(lambda texts: np.zeros((len(texts), 1), np.float32), queue=10**6, threads=1)
            asking = [threading.Thread(target=ask, args=[computing]) for _ in range(4)]
            for each in asking:
                each.start()
            computing.close()
            for each in asking:
                each.join()
    finally:
        sys.setswitchinterval(before)
    assert wrong == []


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_models_are_loaded_ends_it_without_a_crash(
    tickets: Path, tmp_path: Path, number: signal.Signals
) -> None:
    port = free_port()
    models = [f"model-{each}={tickets}" for each in range(200)]  # which take a while
    command = [sys.executable, "-m", "hitin", "serve", *models, "--port", str(port), "--drain-seconds", "0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    answer, end = None, time.monotonic() + 60
    while answer is None and time.monotonic() < end:
        try:
            answer = httpx.get(f"http://127.0.0.1:{port}/readyz", trust_env=False, timeout=5)
        except httpx.TransportError:
            time.sleep(0.05)
    assert answer is not None
    assert answer.json() == {"status": "loading"}
    maps = Path(f"/proc/{process.pid}/maps")
    while maps.exists() and "libtorch" not in maps.read_text():  # until it has begun; only Linux tells
        assert time.monotonic() < end
        time.sleep(0.02)
    process.send_signal(number)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "terminate" not in told
    assert json.loads(told.splitlines()[-1])["event"] == "ended"
