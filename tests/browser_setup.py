"""`python -m tests.browser_setup`: find a Chromium for the tests, or install one, and keep its path or the reason.

Never an error: where there is none, the tests that need one skip with the reason.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.browser import FLAGS, KEPT, NAMES

_DOWNLOAD, _APT, _START = 300, 300, 60  # seconds that each may take


def main(kept: Path = KEPT) -> None:
    reasons: list[str] = []
    for path in _found(reasons):
        reason = _reason_not_to_start(path)
        if reason is None:
            kept.write_text(path + "\n", encoding="utf-8")
            return
        reasons.append(f"{path} does not start ({reason})")
    told = "no Chromium for the tests: " + "; ".join(reasons)
    kept.write_text(told + "\n", encoding="utf-8")
    sys.stderr.write(told + "\n")


def _found(reasons: list[str]) -> Iterator[str]:
    """Browsers to try: those that are there, playwright's own, and the system's; each fetched when its turn comes."""
    known = _known()
    yield from known
    if not known:
        reasons.append("none is installed")
    failed = _failure([sys.executable, "-m", "playwright", "install", "chromium"], _DOWNLOAD)
    if failed:
        reasons.append(f"playwright cannot fetch one ({failed})")
    elif own := _playwrights():
        yield own
    failed = _by_apt()
    if failed:
        reasons.append(f"apt-get cannot install one ({failed})")
    yield from (path for path in _known() if path not in known)


def _known() -> list[str]:
    return [path for path in map(shutil.which, NAMES) if path]


def _playwrights() -> str | None:
    """Where playwright keeps the one that it fetched."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def _by_apt() -> str | None:
    """Why it did not work."""
    if shutil.which("apt-get") is None:
        return "there is none"
    if os.geteuid() != 0:
        return "that takes root"
    for words in (["update"], ["install", "-y", "--no-install-recommends", "chromium"]):
        if failed := _failure(["apt-get", "-q", *words], _APT):
            return failed
    return None


def _reason_not_to_start(path: str) -> str | None:
    """Opens an empty page as the tests do."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [path, "--headless=new", *FLAGS, f"--user-data-dir={profile}", "--dump-dom", "about:blank"]
        return _failure(command, _START)


def _failure(command: Sequence[str], seconds: int) -> str | None:
    """The last line of what a command says when it fails."""
    quiet = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, env=quiet, errors="replace"
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {seconds} s"
    except OSError as error:
        return str(error)
    lines = (done.stderr or done.stdout).strip().splitlines()
    return None if done.returncode == 0 else (lines[-1].strip() if lines else f"exit code {done.returncode}")


if __name__ == "__main__":
    main()
