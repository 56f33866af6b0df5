"""The package: what it exports, how fast it starts, and that its wheel installs into an empty environment."""

import ast
import importlib.metadata
import json
import os
import resource
import subprocess
import sys
import tomllib
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.main import get_command

import hitin
from hitin.cli import app, let_idle_threads_sleep
from tests.conftest import REPOSITORY

HEAVY = ("torch", "transformers", "accelerate", "tokenizers", "safetensors", "numba", "sklearn", "pandas", "pyarrow")


def test_every_public_name_can_be_imported() -> None:
    assert sorted(hitin.__all__) == dir(hitin)
    for name in hitin.__all__:
        assert getattr(hitin, name) is not None
    assert hitin.coding_tree.coding_tree is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hitin.nothing  # noqa: B018


def test_the_version_is_that_of_the_distribution() -> None:
    assert importlib.metadata.version("hitin") == hitin.__version__


def verbs(command: object, name: str = "") -> Iterator[str]:
    """A command and all below it, as they are typed."""
    yield name
    for verb, below in getattr(command, "commands", {}).items():
        yield from verbs(below, f"{name} {verb}".strip())


HELP = list(verbs(get_command(app)))


@pytest.mark.parametrize("arguments", [[*typed.split(), "--help"] for typed in HELP], ids=HELP)
def test_help_imports_nothing_heavy_and_answers_in_half_a_second(arguments: list[str]) -> None:
    script = f"""
import json, sys
from hitin.cli import app
try:
    app({arguments!r})
except SystemExit:
    pass
heavy = [name for name in {HEAVY!r} if name in sys.modules]
sys.stderr.write(json.dumps(heavy))
"""
    for _ in range(3):  # the best of three: what it needs, not what else the machine does
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert all(word in done.stdout for word in arguments)
        assert json.loads(done.stderr) == []
        if after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 0.5:
            return
    raise AssertionError("it takes more than half a second")


def test_idle_threads_sleep_unless_the_user_says_how_they_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOMP_SPINCOUNT", "1")  # so that it is put back afterwards
    for before, after in (
        ({}, "1000"),
        ({"GOMP_SPINCOUNT": "7"}, "7"),
        ({"OMP_WAIT_POLICY": "active"}, None),
    ):
        for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
            monkeypatch.delenv(name, raising=False)
        for name, value in before.items():
            monkeypatch.setenv(name, value)
        let_idle_threads_sleep()
        assert os.environ.get("GOMP_SPINCOUNT") == after


def test_only_the_command_line_imports_commands() -> None:
    """Data flows one way: what the service, bulk scoring and comparisons need stands beside them, not above them."""
    source = REPOSITORY / "src" / "hitin"
    allowed = {source / "cli.py", source / "__main__.py", *source.glob("commands/*.py")}
    wrong = [
        f"{path.relative_to(source)}: {name}"
        for path in sorted(set(source.rglob("*.py")) - allowed)
        for name in _imported(path)
        if f"{name}.".startswith(("hitin.commands.", "hitin.cli."))
    ]
    assert not wrong


def _imported(path: Path) -> Iterator[str]:
    """The modules that a file imports anywhere, and the names from them."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)


def test_importing_hitin_imports_nothing_heavy() -> None:
    script = (
        f"import hitin, sys; print([name for name in {(*HEAVY, 'numpy', 'rich', 'typer')!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_core_dependencies_are_those_of_the_design() -> None:
    names = sorted(requirement.split(">=")[0] for requirement in _dependencies())
    assert names == ["accelerate", "numpy", "rich", "safetensors", "tokenizers", "torch", "typer"]


def _dependencies() -> list[str]:
    found: list[str] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]["dependencies"]
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize("with_torch", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_wheel_installs_into_an_empty_environment(with_torch: bool, tmp_path: Path) -> None:
    """What does without torch, which takes minutes to install, in an environment that has all else."""
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pip",
            "wheel",
            "--quiet",
            "--no-deps",
            "--no-build-isolation",
            "-w",
            tmp_path,
            REPOSITORY,
        ],
        check=True,
    )
    (wheel,) = tmp_path.glob("hitin-*.whl")
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if with_torch:
        torch = importlib.metadata.version("torch").split("+")[0]  # the same build as ours: no second download
        subprocess.run([*pip, f"torch=={torch}"], check=True, capture_output=True)
        subprocess.run([*pip, wheel], check=True, capture_output=True)
    else:
        light = [each for each in _dependencies() if not each.startswith(("torch", "accelerate"))]
        subprocess.run([*pip, *light], check=True, capture_output=True)
        subprocess.run([*pip, "--no-deps", wheel], check=True, capture_output=True)

    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    shown = subprocess.run(
        [tmp_path / "env" / "bin" / "hitin", "--help"], check=True, capture_output=True, text=True, env=environment
    )
    assert "check" in shown.stdout
    script = "import hitin; print(hitin.__file__, hitin.Taxonomy.from_edges([('A', 'B')]))"
    imported = subprocess.run(
        [python, "-c", script], check=True, capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert str(tmp_path / "env") in imported.stdout
    assert "2 labels" in imported.stdout
    assert any((tmp_path / "env").rglob("hitin/py.typed"))
