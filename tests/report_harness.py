"""Reports to test with, and a real browser to open them in."""

import base64
import hashlib
import html
import json
import re
import subprocess
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hitin import Taxonomy
from hitin.calibration import Reliability
from hitin.metrics import Tally, differences
from hitin.report import About, BaselineScores, Report, ReportBuilder, ReportDocument
from hitin.report.examples import AnyDocument
from tests.browser import BROWSER
from tests.page_harness import contrast

if TYPE_CHECKING:
    from playwright.sync_api import Page

Table = NDArray[np.bool_]

ABOUT = About("a model", "HiTIN", "TextRCNN", "A label is given at 0.5, with all above it.", ("test.jsonl",))


@dataclass
class Answers:
    """Documents with what a model said of them."""

    taxonomy: Taxonomy
    documents: Sequence[AnyDocument]
    probabilities: NDArray[np.float32]
    given: Table
    truth: Table

    def report(self, *, train_counts: NDArray[np.int64] | None = None, worst: int = 50, chunk: int = 1000) -> Report:
        """Collected as the command does it, beside a baseline that gives fewer labels."""
        builder = ReportBuilder(self.taxonomy, train_counts=train_counts, worst=worst)
        tally, other, reliability = Tally(self.taxonomy), Tally(self.taxonomy), Reliability(self.taxonomy)
        for start in range(0, len(self.documents), chunk):
            part = slice(start, start + chunk)
            given, truth, probabilities = self.given[part], self.truth[part], self.probabilities[part]
            builder.add(self.documents[part], probabilities, given, truth)
            tally.add(given, truth, probabilities)
            other.add(probabilities > 0.9, truth, probabilities)
            reliability.add(probabilities, truth)
        baseline = BaselineScores("fewer labels", other.scores(resamples=50), differences(tally, other, resamples=50))
        return builder.finish(
            tally.scores(resamples=50), about=ABOUT, reliability=reliability.to_json(), baselines=[baseline]
        )


def answers(labels: int, documents: int, *, seed: int = 0, names: dict[int, str] | None = None) -> Answers:
    """A model that knows frequent labels better, on a taxonomy of three levels and a few labels with two parents."""
    chance = np.random.default_rng(seed)
    called = [(names or {}).get(number, f"label {number}") for number in range(labels)]
    tops = max(labels // 30, 2)
    parent = [None if each < tops else called[chance.integers(0, max(tops, each // 8))] for each in range(labels)]
    edges = [*zip(parent, called, strict=True), (called[0], called[-1]), (called[1], called[-1])]
    taxonomy = Taxonomy.from_edges(edges)
    frequency = 1 / np.arange(1, labels + 1)
    truth = np.zeros((documents, labels), dtype=np.bool_)
    for row in truth:
        some = chance.choice(labels, chance.integers(1, 4), p=frequency / frequency.sum())
        row[list(taxonomy.closure(some))] = True
    skill = np.log1p(truth.sum(axis=0)) - 1
    logits = np.where(truth, skill, -4) + chance.normal(0, 1.3, truth.shape)
    probabilities = (1 / (1 + np.exp(-logits))).astype(np.float32)
    texts = [ReportDocument(f"text of document {number}. " * 30, f"d{number}") for number in range(documents)]
    return Answers(taxonomy, texts, probabilities, probabilities > 0.5, truth)


HELPERS = """
const rows = () => [...document.querySelectorAll('.tree .row')];
const name = row => row.querySelector('.name').textContent;
const row = text => rows().find(each => name(each) === text);
const texts = selector => [...document.querySelectorAll(selector)].map(each => each.textContent);
const text = selector => document.querySelector(selector).textContent;
const press = key => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
const type = (selector, value, kind = 'input') => {
  const field = document.querySelector(selector);
  field.value = value;
  field.dispatchEvent(new Event(kind));
};
const tick = () => new Promise(done => setTimeout(done, 300));
const inTree = row => {
  const box = row.closest('.tree').getBoundingClientRect(), at = row.getBoundingClientRect();
  return at.top >= box.top && at.bottom <= box.bottom;
};
"""


def browse(page: str, folder: Path, script: str, *, fragment: str = "") -> Any:
    """Open a page from a file, run a script in it and answer what that returns; anything on the console is an error.

    Time is the browser's own, which jumps to the next timer.
    """
    test = f"""(async () => {{
      {HELPERS}
      const answer = document.createElement('pre');
      answer.id = 'answer';
      answer.textContent = JSON.stringify(await (async () => {{ {script} }})());
      document.body.append(answer);
    }})();"""
    allowed = re.sub(r"script-src '[^']+'", lambda match: f"{match[0]} '{_hash(test)}'", page, count=1)
    path = folder / "page.html"
    path.write_text(allowed.replace("</body>", f"<script>{test}</script></body>"), encoding="utf-8")
    done = _run(folder, path.as_uri() + fragment, "--dump-dom", "--virtual-time-budget=20000")
    found = re.findall(r'<pre id="answer">(.*?)</pre>', done, re.DOTALL)
    assert found, "the script did not come to its end"
    return json.loads(html.unescape(found[0]))


def shown(page: "Page", text: str, folder: Path) -> "Page":
    """A browser's page with a page of ours in it, opened from a file."""
    path = folder / "shown.html"
    path.write_text(text, encoding="utf-8")
    page.goto(path.as_uri())
    return page


def assert_edges(page: "Page") -> None:
    """Fields can be seen: WCAG 1.4.11 asks for 3:1."""
    style = "fields => fields.map(getComputedStyle).map(style => [style.borderTopColor, style.backgroundColor])"
    found = page.locator("input, select").evaluate_all(style)
    assert found
    for colours in found:
        edge, inside = ("#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", each)) for each in colours)
        assert contrast(edge, inside) >= 3


def picture_bytes(page: str, folder: Path, *, dark: bool = False) -> NDArray[np.uint8]:
    """A screenshot, as the uncompressed lines of its PNG."""
    path = folder / "page.html"
    path.write_text(page, encoding="utf-8")
    scheme = f"--blink-settings=preferredColorScheme={0 if dark else 1}"
    _run(folder, path.as_uri(), f"--screenshot={folder / 'page.png'}", scheme, "--virtual-time-budget=5000")
    png, lines, at = (folder / "page.png").read_bytes(), b"", 8
    while at < len(png):
        size, kind = int.from_bytes(png[at : at + 4]), png[at + 4 : at + 8]
        lines += png[at + 8 : at + 8 + size] if kind == b"IDAT" else b""
        at += size + 12
    return np.frombuffer(zlib.decompress(lines), dtype=np.uint8)


def _run(folder: Path, address: str, *flags: str) -> str:
    assert BROWSER
    usual = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--no-first-run"]
    usual += [
        f"--user-data-dir={folder / 'profile'}",
        "--window-size=1400,1000",
        "--host-resolver-rules=MAP * ~NOTFOUND",
    ]
    usual += ["--enable-logging=stderr", "--log-level=0"]
    command = [BROWSER, *usual, *flags, address]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60, encoding="utf-8")
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return done.stdout


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
