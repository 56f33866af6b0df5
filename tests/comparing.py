"""A small comparison for tests: its file, its documents, and the processes of a command that runs it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hitin.compare.cells import Cell, cells_of
from hitin.compare.comparison import Comparison, prepare
from hitin.compare.plan import read_plan
from tests.conftest import REPOSITORY
from tests.training_harness import TAXONOMY, documents

TINY = (
    "epochs = 3, batch_size = 8, embedding = 8, hidden = 4, layers = 1, filters = 4, kernels = [2, 3], width = 8, "
    "min_count = 1, learning_rate = 0.02, patience = 0"
)
DATA = """
[data.tiny]
taxonomy = "taxonomy.json"
train = "train.jsonl"
val = ["val.jsonl"]
test = "test.jsonl"
"""


def write_documents(folder: Path, count: int = 60) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    TAXONOMY.write(folder / "taxonomy.json")
    for name, size, seed in (("train", count, 0), ("val", 30, 1), ("test", 40, 2)):
        pairs = zip(*documents(size, seed), strict=True)
        lines = [json.dumps({"text": text, "label": labels}) + "\n" for text, labels in pairs]
        (folder / f"{name}.jsonl").write_text("".join(lines))


def table(more: str = "", methods: str = '["flat", "hitin"]', settings: str = TINY, head: str = "") -> str:
    """A file with one table; `more` stands at its end."""
    return f"{head}\n{DATA}\n[tables.first]\nmethods = {methods}\nsettings = {{ {settings} }}\n{more}\n"


def comparison(folder: Path, text: str = "", **options: Any) -> Comparison:
    """A file with its documents in a folder, results in `out` beside them."""
    if not (folder / "train.jsonl").exists():
        write_documents(folder)
    (folder / "run.toml").write_text(text or table())
    return prepare(folder / "run.toml", folder / "out", devices=["cpu"], **options)


def planned(folder: Path, text: str, key: str = "documents") -> list[Cell]:
    """The cells of a file, whose documents need not be there."""
    (folder / "run.toml").write_text(text)
    plan = read_plan(folder / "run.toml")
    return cells_of(plan, folder / "out", {data.name: key for data in plan.data})


# A command that runs.


def start(folder: Path, *options: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "hitin", "compare", str(folder / "run.toml"), "--out", str(folder / "out")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [*command, "--device", "cpu", *options],
        cwd=REPOSITORY,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """The exit code, and all it said."""
    out, errors = process.communicate(timeout=200)
    return process.returncode, out + errors


def when(process: "subprocess.Popen[str]", happens: Callable[[], bool]) -> None:
    """Wait for something while a process runs."""
    end = time.monotonic() + 100
    while not happens():
        assert process.poll() is None, finish(process)
        assert time.monotonic() < end
        time.sleep(0.005)


def child_of(process: "subprocess.Popen[str]") -> int:
    """The process of the cell under way."""
    listed = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return int(listed[-1])


def kill_child(process: "subprocess.Popen[str]") -> None:
    os.kill(child_of(process), signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
