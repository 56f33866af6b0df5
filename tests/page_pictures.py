"""The pictures of docs/page.md, made of the demo's model: `python -m tests.page_pictures MODEL`."""

import argparse
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.browser import BROWSER, FLAGS, WHY_NOT
from tests.page_harness import classify, opened, run_all, upload
from tests.serving import REPOSITORY, Served, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PICTURES = REPOSITORY / "docs" / "pictures"
TEXT = "Acute myocardial infarction of the anterior wall with heart failure"
DIAGNOSES = [
    TEXT,
    "Open bite of the left hand, initial encounter",
    "Type 2 diabetes with kidney complications",
    "Closed fracture of the lower end of the radius",
    "Bacterial pneumonia",
    "Fear of flying",
    "Malignant melanoma of the skin of the back",
    "Migraine with aura",
    "Fall from a ladder at home",
    "Allergic rhinitis due to pollen",
]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("model", type=Path, help="the folder of the demo's model")
    model = arguments.parse_args().model
    if BROWSER is None:
        raise SystemExit(WHY_NOT)
    from playwright.sync_api import sync_playwright

    PICTURES.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(Path(folder), [f"icd10={model}"]) as served,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=BROWSER, args=[*FLAGS])
        page_light(browser, served)
        page_dark(browser, served)
        page_narrow(browser, served)
        page_table(browser, served)
        browser.close()


def page_light(browser: "Browser", served: Served) -> None:
    """The tree that lights up; then the words that decided, and their weights."""
    page = shown(browser, served, height=760)
    keep(page, "page-light")
    explained(page)
    page.click("#why summary")
    page.locator("#why").screenshot(path=PICTURES / "page-words.png")


def page_dark(browser: "Browser", served: Served) -> None:
    page = shown(browser, served, dark=True, height=800)
    explained(page)
    keep(page, "page-dark")


def page_narrow(browser: "Browser", served: Served) -> None:
    page = shown(browser, served, width=360, height=1300)
    keep(page, "page-narrow")


def page_table(browser: "Browser", served: Served) -> None:
    page = shown(browser, served, height=900)
    upload(page, "diagnoses.jsonl", "\n".join(json.dumps({"text": text}) for text in DIAGNOSES))
    run_all(page)
    page.locator("#results .link").nth(4).click()
    page.wait_for_timeout(600)
    keep(page, "page-table")


def shown(browser: "Browser", served: Served, *, width: int = 1200, height: int = 900, dark: bool = False) -> "Page":
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    page = opened(context.new_page(), served)
    classify(page, TEXT)
    return page


def explained(page: "Page") -> None:
    page.click("#explain")
    page.wait_for_selector("#words .word")


def keep(page: "Page", name: str) -> None:
    page.wait_for_timeout(300)
    page.evaluate("document.activeElement.blur()")
    page.mouse.move(0, 0)
    page.screenshot(path=PICTURES / f"{name}.png")


if __name__ == "__main__":
    main()
