"""The pages for people, taken apart: their blocks, what each of them is, and how it is run."""

import importlib.metadata
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from hitin.methods import METHODS
from tests.conftest import REPOSITORY, Run
from tests.serving import serving

PAGES = [
    *(REPOSITORY / name for name in ("README.md", "CONTRIBUTING.md", "examples/README.md", "examples/onnx/README.md")),
    *sorted((REPOSITORY / "docs").glob("*.md")),
]
KINDS = {"sh", "console", "python", "toml", "json", "text", "{toctree}"}
SLOW = "run by make test-slow"
REASONS = ("a GPU", "several machines", "licensed data")
"""What keeps a block from being run at all."""
TICKETS = REPOSITORY / "examples" / "tickets"


class Block(NamedTuple):
    """Text between fences, and the remark on the line above: `<!-- not run: needs a GPU -->`."""

    page: Path
    line: int
    remark: str
    kind: str
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.name}:{self.line}"

    @property
    def is_run_here(self) -> bool:
        return not self.remark.startswith(("not run", "run by"))


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in their order."""
    found, text = [], page.read_text(encoding="utf-8")
    for match in re.finditer(r"^(?:<!-- (.*) -->\n)?```(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        found.append(Block(page, line, match[1] or "", match[2], match[3]))
    return found


def commands(block: Block) -> list[str]:
    """The commands of a block, each on one line; of a console, what stands after the prompt."""
    lines = block.text.replace("\\\n", " ").splitlines()
    if block.kind == "console":
        return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def run_block(block: Block, run: Run, folder: Path) -> None:
    """Run what a block says, in a folder like that of the repository; `folder` is for files that it needs besides."""
    if block.kind == "python":
        _run_python(block)
    elif block.kind == "sh":
        for command in commands(block):
            _run_command(command, run)
    elif block.kind == "console":
        _run_console(block, folder)
    elif block.kind == "toml":
        _run_toml(block, run, folder)
    elif block.kind == "json":
        for part in _json_parts(block.text):
            json.loads(part)


def _run_python(block: Block) -> None:
    """In this process, which has torch already; methods that it makes known are forgotten again."""
    known = dict(METHODS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            exec(compile(block.text, block.place, "exec"), {"__name__": "__main__"})
    finally:
        METHODS.clear()
        METHODS.update(known)


def _run_command(command: str, run: Run) -> None:
    program, *words = shlex.split(command, comments=True)
    if program == "make":  # the target exists and its recipe can be laid out; CI runs the real thing
        subprocess.run(["make", "--dry-run", *words], check=True, capture_output=True)
    elif program == "pip":  # what it would install is there
        assert words[0] == "install"
        assert all(importlib.metadata.version(name) for name in words[1:])
    elif program == "hitin" and "|" not in words and "--launch" not in words and "ray" not in words:
        result = run(*words)
        assert result.exit_code == 0, f"{command}\n{result.output}"
    else:
        _run_in_shell(command)


def _run_in_shell(command: str) -> None:
    """By bash, with the programs of this environment."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    arguments = ["bash", "-o", "pipefail", "-c", command]
    done = subprocess.run(arguments, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"


def _run_console(block: Block, folder: Path) -> None:
    """`hitin serve` in a process of its own, on a free port, and what is asked of it."""
    serve, *asked = map(shlex.split, commands(block))
    assert serve[:2] == ["hitin", "serve"], block.place
    with serving(folder, [word for word in serve[2:] if word != "--open"]) as served:
        for words in asked:
            assert words[0] == "curl", block.place
            answer = served.post(urlsplit(words[-1]).path, json.loads(words[words.index("-d") + 1]))
            assert answer.status_code == 200, f"{block.place}: {answer.text}"


def _run_toml(block: Block, run: Run, folder: Path) -> None:
    """A comparison is laid out and not run; with settings a small model is trained for an epoch."""
    whole = block.remark.removeprefix("added to ")
    if whole != block.remark:
        file = Path(whole).with_suffix(".more.toml")
        file.write_text(Path(whole).read_text(encoding="utf-8") + block.text, encoding="utf-8")
        words = ["compare", file, "--dry-run"]
    else:
        assert set(tomllib.loads(block.text)) <= {"encoder", "method", "loss", "training", "decisions"}, block.place
        file = folder / f"{block.page.stem}-{block.line}.toml"
        file.write_text(block.text, encoding="utf-8")
        data = [TICKETS / "taxonomy.tsv", TICKETS / "train.jsonl"]
        words = ["train", *data, "--preset", file, "--epochs", 1, "--out", file.with_suffix("")]
    result = run(*words)
    assert result.exit_code == 0, f"{block.place}\n{result.output}"


def _json_parts(text: str) -> Iterator[str]:
    """The whole text, or where each line is a value of its own, the lines."""
    lines = text.splitlines()
    yield from lines if all(line.startswith("{") and line.endswith("}") for line in lines) else [text]
