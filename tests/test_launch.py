"""`hitin train --launch`, torchrun and accelerate: real processes that speak with one voice and leave no one behind."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from hitin import launching
from hitin.errors import HitinError, InputError
from hitin.labelled import Reading, read_data
from hitin.model_folder import TRAINING, WEIGHTS
from hitin.training.interrupts import Interrupts
from hitin.training.loop import CHECKPOINT
from tests.conftest import REPOSITORY, Run
from tests.training_harness import saved_weights
from tests.waiting import until

TICKETS = REPOSITORY / "examples" / "tickets"
TRAIN = ["train", str(TICKETS / "taxonomy.tsv"), str(TICKETS / "train.jsonl"), "--encoder", "bag", "--device", "cpu"]
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1", "HITIN_CACHE": "off"}
LONG = ["--epochs", "100000", "--set", "patience=0", "--set", "checkpoint_seconds=0.5"]


def start(*arguments: object, module: str = "hitin", folder: Path = REPOSITORY, **said: str) -> subprocess.Popen[str]:
    """A command in a session of its own, as one that a person types; `said` is put into its environment."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=folder, env=ENVIRONMENT | said, start_new_session=True, **pipes)  # type: ignore[call-overload,no-any-return]


def ended(process: subprocess.Popen[str], timeout: float = 200) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def children(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(each) for each in found]


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def all_gone(processes: list[int]) -> bool:
    return not any(Path(f"/proc/{each}").exists() for each in processes)


# What `make test` runs.


def test_two_processes_train_one_model_and_tell_of_it_once(tmp_path: Path) -> None:
    process = start(*TRAIN, "--epochs", 2, "--out", "model", "--launch", 2, "--json", folder=tmp_path)
    code, out, err = ended(process)
    assert code == 0, err
    assert json.loads(out)["epochs"] == 2
    lines = err.splitlines()
    assert len(lines) == len(set(lines)), err
    assert sum("epoch 1/2" in line for line in lines) == 1
    assert sum("sync_norm" in line for line in lines) == 1
    assert {path.name for path in tmp_path.iterdir()} == {"model"}
    assert saved_weights(tmp_path / "model")


def test_what_is_wrong_is_told_once_with_its_exit_code(tmp_path: Path) -> None:
    process = start("train", "none.tsv", "none.jsonl", "--out", "model", "--launch", 2, folder=tmp_path)
    code, out, err = ended(process)
    assert (code, out) == (2, "")
    assert err.count("error: ") == 1
    assert "none.tsv" in err
    assert "Traceback" not in err
    assert not [*tmp_path.iterdir()]


def test_one_process_is_a_plain_run_and_none_is_refused(tmp_path: Path, run: Run) -> None:
    assert run(*TRAIN, "--epochs", 1, "--out", tmp_path / "model", "--launch", 1).exit_code == 0
    assert run(*TRAIN, "--out", tmp_path / "other", "--launch", 0).exit_code == 2
    assert "--launch" in run("train", "--help").stdout


def test_a_launcher_within_a_launcher_is_refused(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "7")
    result = run(*TRAIN, "--out", tmp_path / "model", "--launch", 2)
    assert result.exit_code == 2
    assert "Leave out --launch" in result.stderr


@pytest.mark.parametrize("words", [["-"], ["pipe"], [TICKETS / "train.jsonl", "--vectors", "pipe"]])
def test_what_is_read_once_is_refused_where_several_processes_read(
    words: list[object], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    result = run(*TRAIN[:2], *words, "--out", "model", "--launch", 2)
    assert result.exit_code == 2
    assert "read once" in result.stderr
    assert "Name a file" in result.stderr


def test_a_pipe_is_refused_under_another_launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setenv("WORLD_SIZE", "2")
    for file in ("-", str(tmp_path / "pipe")):
        with pytest.raises(InputError, match="is read once, and every process reads the documents"):
            read_data(TRAIN[1], [file], (), Reading())


def by_hand(folder: Path, *commands: list[object]) -> list[tuple[int, str, str]]:
    """What came of processes that train together, each with words of its own and no launcher that outlives them."""
    said = {"WORLD_SIZE": str(len(commands)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    started = [
        start(*words, folder=folder, **said, RANK=str(rank), LOCAL_RANK=str(rank))
        for rank, words in enumerate(commands)
    ]
    return [ended(each) for each in started]


@pytest.mark.parametrize(
    ("main", "other"),
    [
        pytest.param([], ["--set", "linear_teacher=0.3"], id="a teacher"),
        pytest.param([], [TICKETS / "train.jsonl"], id="more documents"),
        pytest.param(["--baseline", "linear"], [], id="a baseline", marks=pytest.mark.slow),
    ],
)
def test_a_process_with_something_else_is_refused_before_others_wait_for_it(
    main: list[object], other: list[object], tmp_path: Path
) -> None:
    words = [*TRAIN, "--epochs", 1, "--out", "model"]
    outcomes = by_hand(tmp_path, [*words, *main], [*words, *other])
    assert [code for code, _, _ in outcomes] == [2, 2], outcomes
    told = "".join(err for _, _, err in outcomes)
    assert "Traceback" not in told
    assert "error: a process has other documents, settings or word vectors" in told
    assert not [*tmp_path.iterdir()]


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for device in ("cuda", "auto"):
        with pytest.raises(InputError, match="needs a GPU for each process") as error:
            launching.launch(2, [], device)
        assert "--launch 1, or --device cpu" in str(error.value)


def test_cores_are_shared_out_unless_the_user_did(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(launching.THREADS, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(7)))
    with launching._environment(2):
        assert os.environ[launching.THREADS] == "3"
    with launching._environment(20):
        assert os.environ[launching.THREADS] == "1"
    assert launching.THREADS not in os.environ
    monkeypatch.setenv(launching.THREADS, "5")
    with launching._environment(2):
        assert os.environ[launching.THREADS] == "5"


def test_the_process_that_began_it_gives_the_exit_code() -> None:
    assert launching._exit_code({1: launching.LOST, 0: 2}, 2) == 2
    assert launching._exit_code({1: -signal.SIGTERM, 0: 2}, 2) == 2
    with pytest.raises(HitinError, match="do not hear each other any more"):
        launching._exit_code({1: launching.LOST}, 2)
    with pytest.raises(HitinError, match=r"process 2 of 3 was ended from outside \(SIGKILL\)"):
        launching._exit_code({0: launching.LOST, 1: -signal.SIGKILL, 2: -signal.SIGTERM}, 3)


def test_under_a_launcher_the_same_signal_may_come_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    interrupts = Interrupts()
    interrupts._note(signal.SIGINT, None)
    interrupts._note(signal.SIGTERM, None)
    assert interrupts.wanted
    interrupts._noted = time.monotonic() - 10
    with pytest.raises(KeyboardInterrupt):
        interrupts._note(signal.SIGINT, None)  # the person has said so again


# Long ones.


@pytest.fixture
def training(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path, list[int]]]:
    """A long training by two processes, which has saved its state: the command, its model's folder, the processes."""
    process = start(*TRAIN, *LONG, "--out", tmp_path / "model", "--launch", 2)
    state = tmp_path / "model" / TRAINING / CHECKPOINT
    until(lambda: state.is_file() or process.poll() is not None, 120)
    workers = children(process.pid)
    assert len(workers) == 2
    yield process, tmp_path / "model", workers
    for each in (process.pid, *workers):
        if Path(f"/proc/{each}").exists():
            os.kill(each, signal.SIGKILL)
    if process.returncode is None or (process.stdout and not process.stdout.closed):
        process.communicate()


Training = tuple[subprocess.Popen[str], Path, list[int]]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("whom", ["parent", "all"])
def test_a_signal_saves_once_and_tells_how_to_go_on(training: Training, number: int, whom: str) -> None:
    process, folder, workers = training
    for each in (process.pid, *(workers if whom == "all" else ())):
        os.kill(each, number)
    code, out, err = ended(process)
    assert (code, out) == (130, ""), err
    assert err.count("stopped") == 1
    assert err.count("Go on with: hitin train") == 1
    assert "--launch 2" in err
    assert "Traceback" not in err
    assert all_gone(workers)
    assert (folder / TRAINING / CHECKPOINT).is_file()
    arguments = [*TRAIN, *LONG, "--out", folder]
    again = start(*arguments)  # by itself
    lines = []
    assert again.stderr is not None
    while "another number of processes, 2 before, 1 now" not in (line := again.stderr.readline()):
        lines.append(line)
        assert line, lines
    again.kill()
    ended(again)
    assert any("going on after" in line for line in lines)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_second_signal_ends_everything_soon(training: Training) -> None:
    process, _, workers = training
    os.kill(workers[1], signal.SIGSTOP)  # it will not finish its step
    os.kill(process.pid, signal.SIGINT)
    time.sleep(3)
    assert process.poll() is None
    os.kill(workers[1], signal.SIGCONT)
    os.kill(process.pid, signal.SIGINT)
    code, _, err = ended(process, timeout=20)
    assert code == 130
    assert "Traceback" not in err
    until(lambda: all_gone(workers), 10)


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("victim", [0, 1])
def test_the_end_of_one_process_ends_the_others_and_is_told(training: Training, victim: int) -> None:
    process, folder, workers = training
    os.kill(workers[victim], signal.SIGKILL)
    code, _, err = ended(process, timeout=60)
    assert code == 2, err
    assert err.count("error: ") == 1
    assert "SIGKILL" in err
    assert "Traceback" not in err
    until(lambda: all_gone(workers), 10)
    assert (folder / TRAINING / CHECKPOINT).is_file()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_one_is_left_behind_where_the_launcher_itself_is_killed(training: Training) -> None:
    process, folder, workers = training
    process.kill()
    until(lambda: all_gone(workers), 60)
    assert (folder / TRAINING / CHECKPOINT).is_file()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("module", ["torch.distributed.run", "accelerate.commands.launch"])
def test_other_launchers_do_as_well(module: str, tmp_path: Path) -> None:
    said = ["--nproc-per-node", 2, "--standalone"] if "torch" in module else ["--cpu", "--num_processes", 2]
    if "accelerate" in module:
        said += [
            "--num_machines",
            1,
            "--mixed_precision",
            "no",
            "--dynamo_backend",
            "no",
            "--num_cpu_threads_per_process",
            1,
        ]
    arguments = [*said, "-m", "hitin", *TRAIN, "--epochs", 2, "--out", tmp_path / "model", "--json"]
    code, out, err = ended(start(*arguments, module=module))
    assert code == 0, err
    assert json.loads(out)["epochs"] == 2
    assert (tmp_path / "model" / WEIGHTS).is_file()


def machines(tmp_path: Path, *arguments: object, is_fixed: bool = False) -> list[subprocess.Popen[str]]:
    """Two agents of torchrun on this machine, as on two: with folders of their own, of which they share nothing.

    With `is_fixed`, it is the first that has the main process.
    """
    port, started = free_port(), []
    for number in range(2):
        folder = tmp_path / f"machine-{number}"
        folder.mkdir(exist_ok=True)
        rendezvous = ["--rdzv-backend", "c10d", "--rdzv-id", "test", "--rdzv-endpoint", f"127.0.0.1:{port}"]
        if is_fixed:
            rendezvous = ["--master-addr", "127.0.0.1", "--master-port", port]
        said = ["--nnodes", 2, "--nproc-per-node", 1, "--node-rank", number, *rendezvous, "--local-addr", "127.0.0.1"]
        everything = [*said, "-m", "hitin", *TRAIN, *arguments, "--out", "model"]
        started.append(start(*everything, module="torch.distributed.run", folder=folder))
    return started


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_machines_need_not_share_a_disk(tmp_path: Path) -> None:
    steady = ["--set", "norm=layer", "--set", "dropout=0", "--set", "leaf_dropout=0", "--set", "word_dropout=0"]
    outcomes = [ended(each) for each in machines(tmp_path, *steady, "--epochs", 3)]
    assert [code for code, _, _ in outcomes] == [0, 0], outcomes
    made = [number for number in range(2) if (tmp_path / f"machine-{number}" / "model").is_dir()]
    assert len(made) == 1  # the main process may be on either
    assert [bool(out) for _, out, _ in outcomes] == [number in made for number in range(2)]
    assert ended(start(*TRAIN, *steady, "--epochs", 3, "--out", tmp_path / "one"))[0] == 0
    one, two = saved_weights(tmp_path / "one"), saved_weights(tmp_path / f"machine-{made[0]}" / "model")
    for name, weight in one.items():
        torch.testing.assert_close(weight, two[name], atol=1e-4, rtol=1e-4)


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_state_is_sent_to_machines_that_have_it_not(tmp_path: Path) -> None:
    state = tmp_path / "machine-0" / "model" / TRAINING / CHECKPOINT
    before = machines(tmp_path, *LONG, is_fixed=True)
    until(state.is_file, 120)
    before[1].terminate()  # one machine is enough to stop all
    outcomes = [ended(each) for each in before]
    assert "stopped; the state is saved" in outcomes[0][2]
    assert "Go on with the same command on all machines" in outcomes[0][2]
    assert [path.name for path in (tmp_path / "machine-1").iterdir()] == []
    size, again = len(state.read_bytes()), machines(tmp_path, *LONG, is_fixed=True)
    assert again[0].stderr is not None
    while "going on after" not in (line := again[0].stderr.readline()):
        assert line
    again[0].terminate()
    for each in again:
        ended(each)
    assert len(state.read_bytes()) == pytest.approx(size, abs=4096)


SEEDS = range(3)


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_two_processes_train_the_demo_to_the_f1_of_one(tmp_path: Path) -> None:
    """Within 0.5 points on the test documents, in the mean over seeds.

    Dropout has chances of its own in each process, so that with one seed the two differ as the models of two seeds do,
    by up to a point of macro-F1.
    """
    pytest.importorskip("simple_icd_10_cm")
    assert ended(start("data", "icd10", "--out", tmp_path / "data"))[0] == 0
    taxonomy, train, val, test = (
        tmp_path / "data" / name for name in ("taxonomy.tsv", "train.jsonl", "val.jsonl", "test.jsonl")
    )
    found: dict[str, list[dict[str, float]]] = {"one": [], "two": []}
    for name, more in (("one", []), ("two", ["--launch", 2])):
        for seed in SEEDS:
            model = tmp_path / f"{name}-{seed}"
            said = ["train", taxonomy, train, "--val", val, "--preset", "icd10", "--seed", seed, "--device", "cpu"]
            code, _, err = ended(start(*said, *more, "--out", model), timeout=2400)
            assert code == 0, err
            code, out, err = ended(start("evaluate", model, test, "--device", "cpu", "--json"), timeout=600)
            assert code == 0, err
            found[name].append(json.loads(out))
    for score in ("micro_f1", "macro_f1"):
        one, two = (sum(each[score] for each in found[name]) / len(SEEDS) for name in found)
        assert abs(one - two) < 0.005, (score, one, two)
