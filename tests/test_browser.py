"""The browser of the tests: pages that complain are told, and a machine without a browser is told why."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import browser_setup
from tests.browser import Pages
from tests.browser import pages as pages_fixture

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCHEME = "matchMedia('(prefers-color-scheme: dark)').matches"


def test_a_page_has_the_size_and_the_colours_that_were_asked_for(pages: Pages) -> None:
    small = pages(width=390, height=700, dark=True)
    small.set_content("<title>hello</title>")
    assert (small.title(), small.evaluate("[innerWidth, innerHeight]")) == ("hello", [390, 700])
    assert small.evaluate(SCHEME)
    assert not pages().evaluate(SCHEME)


def test_what_is_expected_on_the_console_is_no_complaint(pages: Pages) -> None:
    page = pages(expected="as it should")
    page.evaluate("console.error('fails as it should')")


@pytest.mark.parametrize("script", ["console.error('broken')", "setTimeout(() => { throw Error('broken') })"])
def test_errors_of_a_page_fail_the_test_that_opened_it(browser: "Browser", script: str) -> None:
    opening = pages_fixture.__wrapped__(browser)  # type: ignore[attr-defined]
    page: Page = next(opening)()
    page.evaluate(script)
    page.wait_for_timeout(50)
    with pytest.raises(AssertionError, match="broken"):
        next(opening)


def test_nothing_from_elsewhere_can_be_fetched(pages: Pages) -> None:
    page = pages(expected="ERR_NAME_NOT_RESOLVED")
    assert page.evaluate("fetch('http://example.com/').then(() => 'fetched', () => 'refused')") == "refused"


def test_a_machine_that_gets_no_browser_is_told_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the one that is there does not start, playwright reaches no one and apt-get knows no packages."""
    for name, line in (("chromium", "a library is missing"), ("apt-get", "E: Unable to locate package chromium")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{line}' >&2\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("PLAYWRIGHT_DOWNLOAD_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "browsers"))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    browser_setup.main(tmp_path / "browser.txt")
    told = (tmp_path / "browser.txt").read_text()
    for part in ("a library is missing", "playwright cannot fetch one", "Unable to locate package chromium"):
        assert part in told


def test_the_first_browser_that_starts_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, code in (("chromium", 1), ("google-chrome", 0)):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {code}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    browser_setup.main(tmp_path / "browser.txt")
    assert (tmp_path / "browser.txt").read_text().strip() == str(tmp_path / "google-chrome")
