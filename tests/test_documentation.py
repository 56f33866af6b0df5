"""Every command and Python block of README and docs is run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, Run

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def commands(page: Path) -> list[str]:
    lines = [line.split("  #")[0].strip() for block in blocks(page, "sh") for line in block.splitlines()]
    return [line for line in lines if line]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_commands_of_a_page_work_in_their_order(page: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    for command in commands(page):
        program, *arguments = shlex.split(command)
        if program == "make":  # the target exists and its recipe can be laid out; CI runs the real thing
            subprocess.run(["make", "--dry-run", *arguments], check=True, capture_output=True)
            continue
        assert program == "hitin"
        result = run(*arguments)
        assert result.exit_code == 0, f"{command}\n{result.output}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page: Path) -> None:
    for block in blocks(page, "python"):
        subprocess.run([sys.executable, "-W", "error", "-c", block], check=True, cwd=REPOSITORY, capture_output=True)


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, REPOSITORY / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
