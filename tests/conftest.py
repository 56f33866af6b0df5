"""Helpers of all tests: files in a temporary folder, the command through its runner, the shared data."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

# One thread a test process, and its children: several of them run side by side. Before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["HITIN_CACHE"] = "off"  # of the user, which tests leave alone
# Tests interrupt what they run, and a shell lets what it runs in the background ignore that: `make test &`.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

import pytest
from hypothesis import settings
from typer.testing import CliRunner, Result

from hitin.cli import app
from tests.browser import browser, page, pages
from tests.serving import exported_tickets, served_tickets, tickets

__all__ = ["browser", "exported_tickets", "page", "pages", "served_tickets", "tickets"]  # fixtures

settings.register_profile("hitin", deadline=None)  # how long an example takes says more of the machine than of the code
settings.load_profile("hitin")

REPOSITORY = Path(__file__).resolve().parents[1]
SHARED = REPOSITORY.parent / "shared"

Write = Callable[..., Path]
Run = Callable[..., Result]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write text (as UTF-8) or bytes to a file and answer its path."""

    def write_file(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture
def run() -> Run:
    """Run the `hitin` command; the result has `exit_code`, `stdout` and `stderr`."""

    def run_command(*arguments: object) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    return run_command


@pytest.fixture
def shared() -> Path:
    """The folder of real data beside the checkout, which a user's machine does not have."""
    if not (SHARED / "data").is_dir():
        pytest.skip("the shared data is not on this machine")
    return SHARED / "data"
