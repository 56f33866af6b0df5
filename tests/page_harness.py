"""The page of the service as tests see it: models with many and with hostile labels, and what stands on the page."""

import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hitin import HierarchicalTextClassifier, Taxonomy
from tests.serving import Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

HOSTILE = ("<img src=x onerror=\"document.title='run'\">", "<script>document.title='run'</script>", "</title>&amp; \"'")
"""Names that a careless page would run."""
PATIENCE = 20  # seconds


def large_model(folder: Path, labels: int = 5000) -> Path:
    """A quick model of many labels on three levels, of which some have hostile names."""
    tops = [*HOSTILE, *(f"area {number}" for number in range(20))]
    middles = [f"group {number}" for number in range(labels // 20)]
    lows = [f"topic {number}" for number in range(labels - len(tops) - len(middles))]
    edges: list[tuple[str | None, str]] = [(None, top) for top in tops]
    edges += [(tops[number % len(tops)], name) for number, name in enumerate(middles)]
    edges += [(middles[number % len(middles)], name) for number, name in enumerate(lows)]
    taxonomy = Taxonomy.from_edges(edges)
    some = [*middles[:3], *lows[:40]]
    texts = [f"about {name.replace(' ', '')} only" for name in some]
    settings: dict[str, Any] = {"encoder": "bag", "method": "flat", "min_count": 1, "epochs": 2, "word_dropout": 0.0}
    classifier = HierarchicalTextClassifier(taxonomy, device="cpu", **settings)
    given = [[name] for name in some]
    classifier.fit(texts * 4, given * 4, validation=(texts[:8], given[:8]), out=folder)
    return folder


def crossed_model(folder: Path, *, reordered: bool = False) -> Path:
    """A model of a label under two parents, and of one that is called by its whole path; in another order if wanted."""
    edges = [(None, "Health"), (None, "Sport"), ("Health", "Injury"), ("Sport", "Injury"), ("Sport", "Sport > Ball")]
    edges = [*reversed(edges[:2]), *reversed(edges[2:])] if reordered else edges
    texts, given = ["a broken leg", "the ball is round", "good sleep"], [["Injury"], ["Sport > Ball"], ["Health"]]
    settings: dict[str, Any] = {"encoder": "bag", "min_count": 1, "epochs": 40, "word_dropout": 0.0}
    classifier = HierarchicalTextClassifier(Taxonomy.from_edges(edges), device="cpu", **settings)
    classifier.fit(texts * 8, given * 8, validation=(texts, given), out=folder)
    return folder


LONG = "a very long name " * 60
RIGHT_TO_LEFT = "\u05e2\u05d1\u05e8\u05d9\u05ea"


def odd_model(folder: Path) -> Path:
    """A model of labels with names that are very long, of other scripts, or of signs that are no letters."""
    edges = [(None, LONG), (LONG, "x" * 3000), (None, RIGHT_TO_LEFT), (RIGHT_TO_LEFT, "\U0001f4e6 parcels")]
    texts, given = ["one alpha", "two beta"], [["x" * 3000], ["\U0001f4e6 parcels"]]
    settings: dict[str, Any] = {"encoder": "bag", "min_count": 1, "epochs": 40, "word_dropout": 0.0}
    classifier = HierarchicalTextClassifier(Taxonomy.from_edges(edges), device="cpu", **settings)
    classifier.fit(texts * 8, given * 8, validation=(texts, given), out=folder)
    return folder


def opened(page: "Page", served: Served, *, model: str | None = None) -> "Page":
    """The page, when its tree is there."""
    page.goto(served.address)
    page.wait_for_selector(".row")
    if model is not None:
        with page.expect_response("**/v1/taxonomy*"):
            page.select_option("#model", model)
    return page


def classify(page: "Page", text: str) -> None:
    """Put a text into its field, and wait until its answer is shown."""
    with page.expect_response("**/v1/predict"):
        page.fill("#text", text)
        page.press("#text", "Control+Enter")
    wait_for_answer(page)


def wait_for_answer(page: "Page", *, to: str = "") -> None:
    """Until what was asked last is shown; of a text that is typed, the answer to all of it."""
    told = f"{len(to)} characters, answered" if to else "answered"
    until(page, f"document.querySelector('#told').textContent.includes('{told}')")


def choose(page: "Page", field: str, value: str) -> None:
    """Another policy or model, with its answer to the text."""
    with page.expect_response("**/v1/predict"):
        page.select_option(field, value)
    wait_for_answer(page)


def until(page: "Page", condition: str, *, patience: float = PATIENCE) -> None:
    """Wait for a condition. (`wait_for_function` needs `eval`, which the page does not allow.)"""
    end = time.monotonic() + patience
    while not page.evaluate(condition):
        assert time.monotonic() < end, f"never came true: {condition}"
        page.wait_for_timeout(20)


def rows(page: "Page") -> list[dict[str, Any]]:
    """The rows of the tree that are on the page, from the top."""
    found: list[dict[str, Any]] = page.evaluate(
        """() => [...document.querySelectorAll('.row:not(.more)')].map(row => ({
             name: row.querySelector('.name').textContent, share: row.querySelector('.share').textContent,
             lit: row.classList.contains('lit'), level: Number(row.getAttribute('aria-level')) }))"""
    )
    return found


def lit(page: "Page") -> set[str]:
    """The names of the labels that are given."""
    return {row["name"] for row in rows(page) if row["lit"]}


def slide(page: "Page", to: float) -> None:
    """Move the slider as a hand does."""
    page.evaluate(
        """to => { const slider = document.querySelector('#slider'); slider.value = to;
                   slider.dispatchEvent(new Event('input', { bubbles: true })); }""",
        to,
    )


@contextmanager
def no_request(page: "Page") -> Iterator[None]:
    """Nothing is asked of the server meanwhile."""
    asked: list[str] = []
    hear: Callable[[Any], None] = lambda request: asked.append(request.url)  # noqa: E731
    page.on("request", hear)
    yield
    page.wait_for_timeout(100)
    page.remove_listener("request", hear)
    assert asked == []


@contextmanager
def held(page: "Page", address: str) -> Iterator[None]:
    """What is asked for there is not answered before the block ends."""
    waiting: list[Any] = []
    page.route(address, lambda route: waiting.append(route))
    yield
    page.unroute(address)
    for route in waiting:
        with suppress(Exception):  # one that the page gave up
            route.continue_()


def share_of(words: str) -> float:
    """A probability as the page writes it."""
    return float(words.strip("<>%")) / 100


def upload(page: "Page", name: str, content: str | bytes, kind: str = "text/csv") -> None:
    payload: Any = {
        "name": name,
        "mimeType": kind,
        "buffer": content.encode() if isinstance(content, str) else content,
    }
    page.set_input_files("#file", payload)
    page.wait_for_selector("#documents:not([hidden])")


def run_all(page: "Page") -> None:
    """Classify the texts of a file, to the end."""
    page.click("#run")
    until(page, "document.querySelector('#running').hidden && !document.querySelector('#results').hidden")


def downloaded(page: "Page", button: str) -> str:
    with page.expect_download() as found:
        page.click(button)
    return Path(found.value.path()).read_text(encoding="utf-8")


def colours(css: str) -> list[Mapping[str, str]]:
    """The named colours of a style sheet, of light and of dark."""
    light, dark = (dict(re.findall(r"--([\w-]+): (#\w+)", part)) for part in css.split("prefers-color-scheme: dark"))
    return [light, light | dark]


def contrast(one: str, other: str) -> float:
    """That of two colours, as WCAG has it: from 1 to 21."""
    bright, dim = sorted((_brightness(one), _brightness(other)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def _brightness(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = digits if len(digits) == 6 else "".join(digit * 2 for digit in digits)
    parts = np.array([int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)])
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
