"""Every command and Python block of README and docs is run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY, Run

PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def blocks(page: Path) -> list[tuple[str, str]]:
    """The language and the text of each block that is run, in the order of the page."""
    return re.findall(r"^```(sh|python)\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_and_python_of_a_page_work_in_their_order(
    page: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(REPOSITORY)
    for language, text in blocks(page):
        if language == "python":
            subprocess.run([sys.executable, "-W", "error", "-c", text], check=True, capture_output=True)
            continue
        for command in filter(None, (line.split("  #")[0].strip() for line in text.splitlines())):
            _run_command(command, run)


def _run_command(command: str, run: Run) -> None:
    program, *arguments = shlex.split(command)
    if program == "make":  # the target exists and its recipe can be laid out; CI runs the real thing
        subprocess.run(["make", "--dry-run", *arguments], check=True, capture_output=True)
        return
    assert program == "hitin"
    result = run(*arguments)
    assert result.exit_code == 0, f"{command}\n{result.output}"


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, REPOSITORY / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
