"""The `hitin` command as a process of its own, which may be killed, and the small training that it is given."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from typer.testing import CliRunner

from hitin.cli import app
from hitin.model_folder import DECISIONS, TAXONOMY, TRAINING
from hitin.neural import TOKENIZER
from tests import training_harness
from tests.conftest import REPOSITORY
from tests.training_harness import TINY, Moment, are_equal, documents, leftovers, log_lines, saved_weights, train_into

PATIENCE = 300  # seconds
HITIN = (sys.executable, "-m", "hitin")


@dataclass(frozen=True)
class Ended:
    """How a process ended, and what it said."""

    code: int
    out: str
    errors: str

    @property
    def was_killed(self) -> bool:
        return self.code == -signal.SIGKILL

    def told(self) -> str:
        """The one error of a command that could not go on, which is no crash."""
        assert self.code == 2, (self.code, self.errors)
        assert "Traceback" not in self.errors, self.errors
        assert len(re.findall("^error: ", self.errors, re.MULTILINE)) == 1, self.errors
        return self.errors[self.errors.index("error: ") :]


def environment(more: Mapping[str, str]) -> dict[str, str]:
    quiet = {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "HITIN_CACHE": "off"}
    return {**os.environ, **quiet, **more}


def run(
    words: Sequence[object],
    folder: Path | None = None,
    moment: Moment | None = None,
    number: int = signal.SIGKILL,
    *,
    within: Sequence[str] = (),
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Ended:
    """`hitin WORDS` to its end; when the moment has come in the folder, a signal goes to it and its children."""
    process = start(words, within=within, variables=variables)
    try:
        while moment is not None and folder is not None and process.poll() is None:
            if moment(folder):
                os.killpg(process.pid, number)
                break
            time.sleep(0.001)
        out, errors = process.communicate(timeout=PATIENCE)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    return Ended(process.returncode, out, errors)


def run_here(words: Sequence[object]) -> Ended:
    """`hitin WORDS` in this process, which has imported everything."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    return Ended(result.exit_code, result.stdout, result.stderr)


def start(
    words: Sequence[object], *, within: Sequence[str] = (), variables: Mapping[str, str] = MappingProxyType({})
) -> "subprocess.Popen[str]":
    """In a session of its own, so that a signal reaches all that it starts; `within` stands before the command."""
    return subprocess.Popen(
        [*within, *HITIN, *map(str, words)],
        cwd=REPOSITORY,
        env=environment(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def write_data(folder: Path, count: int = 40, val: int = 20) -> None:
    """The taxonomy and documents of the harness, as files."""
    folder.mkdir(parents=True, exist_ok=True)
    training_harness.TAXONOMY.write(folder / "taxonomy.json")
    for name, (texts, labels) in (("train", documents(count)), ("val", documents(val, seed=1))):
        lines = [json.dumps({"text": text, "label": found}) + "\n" for text, found in zip(texts, labels, strict=True)]
        (folder / f"{name}.jsonl").write_text("".join(lines))


def train_words(data: Path, out: Path, *more: object, **options: Any) -> list[object]:
    """`train` with the settings of the harness and a checkpoint after every step."""
    chosen = {name: value for name, value in TINY.items() if name != "validation"} | {"checkpoint_seconds": 0} | options
    settings = [word for name, value in chosen.items() for word in ("--set", f"{name}={_toml(value)}")]
    files = [data / "taxonomy.json", data / "train.jsonl", "--val", data / "val.jsonl"]
    return ["train", *files, "--out", out, "--device", "cpu", *settings, *more]


def _toml(value: object) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def whole(folder: Path, **options: Any) -> Path:
    """The folder of a training that nothing disturbs, in this process."""
    train_into(str(folder), dict(options))
    return folder


def check_same(folder: Path, undisturbed: Path) -> None:
    """The same weights, decisions and log, and nothing else in the folders."""
    assert are_equal(saved_weights(folder), saved_weights(undisturbed))
    for name in (TAXONOMY, DECISIONS, TOKENIZER):
        assert (folder / name).read_bytes() == (undisturbed / name).read_bytes(), name
    assert log_lines(folder / TRAINING) == log_lines(undisturbed / TRAINING)
    assert not leftovers(folder)
    for inside in (".", TRAINING):
        assert names(folder / inside) == names(undisturbed / inside)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
