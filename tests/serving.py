"""Real servers to test with: `hitin serve` in a process of its own, on a free port of loopback."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from hitin import HierarchicalTextClassifier
from hitin.export.exporting import export_model

REPOSITORY = Path(__file__).resolve().parents[1]
TICKETS = REPOSITORY / "examples" / "tickets"
LATE = "My parcel has not come yet, it is three days late"
_PATIENCE = 60  # seconds


@dataclass
class Served:
    """A server that is ready."""

    address: str
    process: "subprocess.Popen[bytes]"
    errors: Path
    """Where its standard error goes."""

    def client(self, **options: Any) -> httpx.Client:
        return httpx.Client(base_url=self.address, timeout=30, trust_env=False, **options)

    def post(self, path: str, asked: Any, **options: Any) -> httpx.Response:
        """Send JSON on a connection of its own."""
        with self.client() as client:
            return client.post(path, json=asked, **options)

    def get(self, path: str, **options: Any) -> httpx.Response:
        with self.client() as client:
            return client.get(path, **options)

    def predict(self, *texts: str, **asked: Any) -> dict[str, Any]:
        answer = self.post("/v1/predict", {"texts": texts, **asked})
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def log(self) -> list[dict[str, Any]]:
        """What it has logged so far, but for the lines for people."""
        lines = self.errors.read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def wait_for(self, event: str, count: int = 1) -> None:
        """Until it has logged an event so many times."""
        end = time.monotonic() + _PATIENCE
        while sum(line["event"] == event for line in self.log()) < count:
            assert time.monotonic() < end, f"no {event}: {self.errors.read_text(encoding='utf-8')[-2000:]}"
            time.sleep(0.02)

    def wait_for_texts(self) -> None:
        """Until texts of a request that was taken wait to be computed."""
        end = time.monotonic() + _PATIENCE
        while not re.search(r"^hitin_waiting_texts\{.*\} [1-9]", self.get("/metrics").text, re.MULTILINE):
            assert time.monotonic() < end
            time.sleep(0.01)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Its exit code, after a signal."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(_PATIENCE)


@contextmanager
def serving(folder: Path, models: Sequence[object], *options: object, **environment: str) -> Iterator[Served]:
    """`hitin serve MODELS OPTIONS` until the block ends; `folder` is for what it writes on standard error."""
    folder.mkdir(parents=True, exist_ok=True)
    errors = folder / f"serve-{time.monotonic_ns()}.log"
    command = [sys.executable, "-m", "hitin", "serve", *map(str, models), "--port", "0", *map(str, options)]
    with errors.open("wb") as file:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=file, env=os.environ | environment
        )
    try:
        yield Served(_address(process, errors), process, errors)
    finally:
        process.kill()
        process.wait()


def _address(process: "subprocess.Popen[bytes]", errors: Path) -> str:
    """Where it listens, when it is ready."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        for line in errors.read_text(encoding="utf-8").splitlines():
            if line.startswith("{") and json.loads(line)["event"] == "ready":
                address: str = json.loads(line)["address"]
                return address
        time.sleep(0.02)
    raise AssertionError(f"it does not serve: {errors.read_text(encoding='utf-8')[-2000:]}")


def train_tickets(folder: Path, **options: Any) -> Path:
    """A small model that knows its documents well, with decisions that were tuned on them."""
    lines = (TICKETS / "train.jsonl").read_text(encoding="utf-8").splitlines()
    documents = [json.loads(line) for line in lines]
    texts = [document["text"] for document in documents]
    labels = [document["label"] for document in documents]
    settings: dict[str, Any] = {"encoder": "bag", "min_count": 1, "epochs": 10, "word_dropout": 0.1} | options
    classifier = HierarchicalTextClassifier(TICKETS / "taxonomy.tsv", device="cpu", **settings)
    classifier.fit(texts * 8, labels * 8, validation=(texts, labels), out=folder)
    return folder


def copied(model: Path, to: Path) -> Path:
    """A copy of a model that a test may change."""
    shutil.copytree(model, to)
    return to


@pytest.fixture(scope="session")
def tickets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a model of tickets. To be left as it is."""
    return train_tickets(tmp_path_factory.mktemp("serving") / "tickets")


@pytest.fixture(scope="session")
def exported_tickets(tickets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with its export to ONNX inside."""
    model = copied(tickets, tmp_path_factory.mktemp("exported") / "tickets")
    export_model(str(model), None, int8=False)
    return model


@pytest.fixture(scope="session")
def served_tickets(tickets: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of that model for all tests that only ask it."""
    with serving(tmp_path_factory.mktemp("served"), [tickets]) as served:
        yield served
