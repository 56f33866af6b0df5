"""A real browser for the tests: where Chromium is, or why there is none; and its pages, by playwright.

`make browser` looks for one, or installs one (`tests/browser_setup.py`), and keeps what came of it.
"""

import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
KEPT = Path(sys.prefix) / "browser.txt"
"""What `make browser` found: the path of a browser, or the reason why there is none."""
_NOT_LOOKED = "there is no Chromium or Chrome on this machine; make browser installs one"


def browser_or_reason() -> tuple[str | None, str]:
    """The browser's path, or the reason why there is none."""
    if found := next(filter(None, map(shutil.which, NAMES)), None):
        return found, ""
    kept = KEPT.read_text(encoding="utf-8").strip() if KEPT.is_file() else _NOT_LOOKED
    return (kept, "") if Path(kept).is_file() else (None, kept)


BROWSER, WHY_NOT = browser_or_reason()
in_a_browser = pytest.mark.skipif(BROWSER is None, reason=WHY_NOT or "unused")

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-extensions", "--no-first-run", "--disable-dev-shm-usage")
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
"""A page that asks for anything from elsewhere fails, and says so on the console."""

Pages = Callable[..., "Page"]


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """One for the tests of a file; not for longer: while it is there, `asyncio.run` cannot be used in this thread."""
    if BROWSER is None:
        pytest.skip(WHY_NOT)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=BROWSER, args=[*FLAGS, OFFLINE])
        yield found
        found.close()


@pytest.fixture
def pages(browser: "Browser") -> Iterator[Pages]:
    """Opens empty pages, each in a context of its own: `pages(width=390, height=800, dark=True)`.

    An error on the console or one that no one caught fails the test when it ends, unless it matches `expected`.
    """
    made: list[tuple[Page, list[str], str | None]] = []

    def open_page(
        *, width: int = 1280, height: int = 900, dark: bool = False, expected: str | None = None, **context: Any
    ) -> "Page":
        scheme: Any = "dark" if dark else "light"
        own = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, **context)
        page, complaints = own.new_page(), list[str]()
        page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        made.append((page, complaints, expected))
        return page

    yield open_page
    for page, _, _ in made:
        page.context.close()
    told = [text for _, complaints, expected in made for text in complaints if not _is_expected(text, expected)]
    assert not told, f"the browser complained: {told}"


@pytest.fixture
def page(pages: Pages) -> "Page":
    """An empty page of the usual size."""
    return pages()


def _is_expected(text: str, expected: str | None) -> bool:
    return expected is not None and re.search(expected, text) is not None
