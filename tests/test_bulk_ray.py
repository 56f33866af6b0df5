"""The engine ray: the answers of the local engine, also when workers die, on a cluster too; nothing is left running."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hitin.bulk import Request, score_folder
from hitin.bulk.ray_engine import Cluster, ScoringActor, Share, share_out
from hitin.errors import InputError, MissingExtraError
from tests.conftest import Run
from tests.test_bulk import TEXTS, files_of, read_answers, write_documents

pytest.importorskip("ray", reason="the extra ray is not installed")

MARK = "HITIN_TEST_MARK"
PATIENCE = 120  # seconds


def bytes_of(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in files_of(out)}


def write_shards(folder: Path, shards: int, rows: int) -> Path:
    for shard in range(shards):
        texts = [f"{TEXTS[row % len(TEXTS)]} {shard} {row}" for row in range(rows)]
        write_documents(folder / f"{shard:03}.{'parquet' if shard % 2 else 'jsonl'}", texts)
    return folder


def test_answers_are_those_of_the_local_engine_and_what_fails_fails_alone(
    tickets: Path, tmp_path: Path, run: Run
) -> None:
    given, out, local = write_shards(tmp_path / "in", 4, 7), tmp_path / "out", tmp_path / "local"
    bad = given / "deep" / "bad.jsonl"
    bad.parent.mkdir()
    bad.write_text('{"text": "a"}\n{"text": \n')
    ray = ("--engine", "ray", "--workers", 1)
    result = run("predict", tickets, given, "--out", out, *ray)
    assert result.exit_code == 1, result.output
    assert f"failed: {bad}:2: the JSON is broken" in result.stderr
    assert result.stdout == ""
    assert run("predict", tickets, given, "--out", local).exit_code == 1
    assert len(bytes_of(out)) == 4
    assert bytes_of(out) == bytes_of(local)
    bad.unlink()
    again = run("predict", tickets, given, "--out", out, *ray)  # for which Ray is not started
    assert (again.exit_code, "4 files finished before" in again.stderr) == (0, True)


def test_what_workers_get_is_what_there_is() -> None:
    def shared(nodes: Sequence[dict[str, float]], workers: int | None, shards: int = 100, device: str = "cpu") -> Share:
        return share_out(nodes, workers, shards, device)

    assert shared([{"CPU": 2.0}], None) == Share(1, 2.0)
    assert shared([{"CPU": 2.0}], 2) == Share(2, 1.0)
    assert shared([{"CPU": 8.0}], None, shards=3) == Share(3, 2.0)
    assert shared([{"CPU": 8.0}, {"CPU": 4.0}], 2) == Share(2, 4.0)
    assert shared([{"CPU": 4.0}] * 2, 1) == Share(1, 4.0)  # a worker is on one machine
    assert shared([{"CPU": 2.0}], 4) == Share(4, 0.5)
    assert shared([{"CPU": 8.0, "GPU": 2.0}], None, device="auto") == Share(2, 1.0, 1)
    with pytest.raises(InputError, match="3 workers need a GPU each"):
        shared([{"CPU": 8.0, "GPU": 2.0}], 3, device="cuda")


def test_a_worker_tells_what_concerns_all_and_ray_does_not_try_it_again(
    tickets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    request, out = Request(str(tickets)), tmp_path / "out"
    file = write_documents(tmp_path / "a.jsonl", TEXTS)
    batch = {"shard": [json.dumps({"file": str(file), "name": "in/a.jsonl"})]}

    def told(asked: dict[str, Any]) -> dict[str, Any]:
        (row,) = ScoringActor(request, str(out), asked, 1)(batch)["told"]
        found: dict[str, Any] = json.loads(row)
        return found

    assert told({"model": "another"})["stopped"]["kind"] == "other-model"
    asked = request.identity(request.load())
    out.mkdir()
    (out / "in").write_text("in the way of a folder")
    assert told(asked)["stopped"]["kind"] == "unwritable"
    (out / "in").unlink()
    assert told(asked)["finished"]["rows"] == len(TEXTS)
    file.write_text("{")
    (out / "in" / "a.jsonl").unlink()
    assert (told(asked)["failed"], told(asked)["error"]["line"]) == ("in/a.jsonl", 1)


def test_an_address_at_which_no_one_answers_is_told(tickets: Path, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("RAY_gcs_rpc_server_reconnect_timeout_s", "1")
    given, before = write_shards(tmp_path / "in", 1, 1), signal.getsignal(signal.SIGTERM)
    with pytest.raises(InputError) as error:
        score_folder(Request(str(tickets)), [given], tmp_path / "out", engine="ray", cluster=Cluster("no such address"))
    assert error.value.kind == "no-ray"
    assert signal.getsignal(signal.SIGTERM) is before  # which Ray has set


def test_without_ray_the_extra_is_named_and_earlier_answers_stay(
    tickets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = write_shards(tmp_path / "in", 1, 1)
    score_folder(Request(str(tickets)), [given], tmp_path / "out")
    before = sorted(tmp_path.rglob("*"))
    again = partial(score_folder, Request(str(tickets)), [given], tmp_path / "out", engine="ray", overwrite=True)
    with pytest.raises(InputError, match="cannot be used"):
        again(cluster=Cluster("127.0.0.1:1"))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"hitin\[ray\]"):
        again()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("address", ["127.0.0.1:1", "[::1]:1", "no such host:6379", "127.0.0.1:77777", f"{'x' * 70}:1"])
@pytest.mark.timeout(30)
def test_a_port_at_which_no_one_listens_is_told_at_once(address: str, tickets: Path, tmp_path: Path) -> None:
    given = write_shards(tmp_path / "in", 1, 1)
    with pytest.raises(InputError, match="cannot be used") as error:
        score_folder(Request(str(tickets)), [given], tmp_path / "out", engine="ray", cluster=Cluster(address))
    assert error.value.kind == "no-ray"


# With real processes that end.


@contextmanager
def command(*words: object, **more: str) -> "Iterator[subprocess.Popen[str]]":
    """`hitin` in a session of its own, whose processes can be told by their environment."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", MARK: f"{time.time_ns()}"} | more
    process = subprocess.Popen(
        [sys.executable, "-m", "hitin", *map(str, words)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield process
        _wait(lambda: not _marked(environment[MARK]), "its processes end")
    finally:
        for number in {process.pid, *_marked(environment[MARK])}:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                continue
        process.wait()


def _marked(mark: str) -> list[int]:
    """The processes with this mark in their environment."""
    return [number for number in _processes() if f"{MARK}={mark}".encode() in _read(number, "environ")]


def _processes() -> list[int]:
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def _read(process: int, name: str) -> bytes:
    try:
        return Path(f"/proc/{process}/{name}").read_bytes()
    except OSError:  # it has ended, or is another's
        return b""


def _wait(happens: Any, what: str) -> None:
    end = time.monotonic() + PATIENCE
    while not happens():
        assert time.monotonic() < end, f"{what}: not within {PATIENCE} s"
        time.sleep(0.01)


def _writer(out: Path) -> int | None:
    """The process that writes a file of answers."""
    for number in _processes():
        try:
            opened = [str(each.readlink()) for each in Path(f"/proc/{number}/fd").iterdir()]
        except OSError:
            continue
        if any(name.startswith(str(out)) and name.endswith(".part") for name in opened):
            return number
    return None


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_worker_that_is_killed_is_replaced_and_its_shard_done_again(tickets: Path, tmp_path: Path) -> None:
    given, out = write_shards(tmp_path / "in", 6, 20_000), tmp_path / "out"
    local = score_folder(Request(str(tickets)), [given], tmp_path / "local")
    killed: list[int] = []
    with command("predict", tickets, given, "--out", out, "--engine", "ray", "--workers", 2) as process:
        for _ in range(2):
            _wait(lambda: _writer(out) not in (None, *killed), "a worker writes")
            number = _writer(out)
            assert number is not None
            os.kill(number, signal.SIGKILL)
            killed.append(number)
        _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert local.rows == 120_000
    assert bytes_of(out) == bytes_of(tmp_path / "local")
    assert not list(out.rglob("*.part"))


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_runs_on_when_the_command_ends_and_the_next_goes_on(
    number: int, tickets: Path, tmp_path: Path, run: Run
) -> None:
    given, out = write_shards(tmp_path / "in", 6, 10_000), tmp_path / "out"
    with command("predict", tickets, given, "--out", out, "--engine", "ray", "--workers", 1) as process:
        _wait(lambda: files_of(out) if out.exists() else None, "a shard is finished")
        os.kill(process.pid, number)
        process.communicate()
    assert process.returncode != 0
    assert 0 < len(files_of(out)) < 6
    assert run("predict", tickets, given, "--out", out).exit_code == 0  # by the other engine
    for name in files_of(out):
        answers = read_answers(out / name)
        assert [answer["id"] for answer in answers] == [f"{name}:{row}" for row in range(10_000)]


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A cluster of one machine, this one, that runs on its own, with a token of its own."""
    ray = str(Path(sys.executable).with_name("ray"))
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", secrets.token_hex(32))
    environment = os.environ | {"OMP_NUM_THREADS": "1", "RAY_USAGE_STATS_ENABLED": "0", MARK: f"{time.time_ns()}"}
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ("--head", f"--port={port}", "--num-cpus=2", "--include-dashboard=false")
    memory = "--object-store-memory=100000000"
    subprocess.run([ray, "start", *options, memory], check=True, capture_output=True, env=environment)
    yield f"127.0.0.1:{port}"
    for number in _marked(environment[MARK]):
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            continue


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_cluster_is_joined_and_left_as_it_was(cluster: str, exported_tickets: Path, tmp_path: Path) -> None:
    given, out = write_shards(tmp_path / "in", 6, 500), tmp_path / "out"
    arguments = ("--engine", "ray", "--address", cluster, "--workers", 2, "--runtime", "onnx")
    for _ in range(2):  # the second finds all done
        with command("predict", exported_tickets, given, "--out", out, *arguments) as process:
            _, errors = process.communicate()
        assert process.returncode == 0, errors
    score_folder(Request(str(exported_tickets), runtime="onnx"), [given], tmp_path / "local")
    assert bytes_of(out) == bytes_of(tmp_path / "local")
    status = subprocess.run(
        [str(Path(sys.executable).with_name("ray")), "status", "--address", cluster], capture_output=True, check=True
    )
    assert b"Active" in status.stdout


# Memory.


def _peak(process: "subprocess.Popen[str]", found: list[int]) -> None:
    """The most kilobytes that the processes of a session hold together, while they run."""
    while process.poll() is None:
        marks = [word for word in _read(process.pid, "environ").split(b"\0") if word.startswith(MARK.encode())]
        total = 0
        for number in _marked(marks[0].decode().split("=")[1]) if marks else []:
            lines = _read(number, "smaps_rollup").decode().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
        found.append(total)
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("engine", ["local", "ray"])
def test_memory_does_not_grow_with_the_documents(engine: str, tickets: Path, tmp_path: Path) -> None:
    peaks = []
    for shards in (2, 20):
        given, out = write_shards(tmp_path / f"in{shards}", shards, 10_000), tmp_path / f"out{shards}"
        found: list[int] = []
        with command("predict", tickets, given, "--out", out, "--engine", engine) as process:
            watching = threading.Thread(target=_peak, args=(process, found))
            watching.start()
            _, errors = process.communicate()
            watching.join()
        assert process.returncode == 0, errors
        assert f"{shards * 10_000:,} documents of {shards} files answered" in errors
        peaks.append(max(found))
    assert peaks[1] < 1.25 * peaks[0] + 50_000, peaks  # kilobytes
