"""What a person does with the demo's model on the page, from the first diagnosis to the last download."""

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hitin.commands.demo import run_demo
from hitin.watcher import Watcher
from tests.browser import in_a_browser
from tests.page_harness import choose, classify, downloaded, lit, no_request, opened, run_all, slide, upload
from tests.serving import serving

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = in_a_browser
PATH = {"06 Diseases of the nervous system", "G40-G47 Episodic and paroxysmal disorders", "G43 Migraine"}


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_a_diagnosis_a_slider_a_second_model_and_a_file_of_two_hundred_rows(
    page: "Page", tickets: Path, tmp_path: Path
) -> None:
    demo = run_demo(tmp_path / "demo", Watcher())
    lines = demo.data.test.read_text(encoding="utf-8").splitlines()[:200]
    texts = [json.loads(line)["text"] for line in lines]
    with serving(tmp_path / "served", [f"icd10={demo.model}", f"tickets={tickets}"]) as served:
        opened(page, served)
        classify(page, "migraine with flashing lights")
        assert lit(page) == PATH
        with no_request(page):
            slide(page, 1.0)
        assert lit(page) < PATH
        page.click("#as-tuned")
        assert lit(page) == PATH
        choose(page, "#model", "tickets")
        assert not lit(page) & PATH
        choose(page, "#model", "icd10")
        assert lit(page) == PATH
        made = io.StringIO()
        csv.writer(made).writerows([["text"], *([text] for text in texts)])
        upload(page, "terms.csv", made.getvalue())
        run_all(page)
        got = [json.loads(line) for line in downloaded(page, "#as-jsonl").splitlines()]
        told = served.post("/v1/predict", {"texts": texts}).json()["documents"]
        assert [each["paths"] for each in got] == [each["paths"] for each in told]
        read = list(csv.DictReader(io.StringIO(downloaded(page, "#as-csv").removeprefix("\ufeff"))))
        assert [row["predicted paths"] for row in read] == [" | ".join(each["paths"]) for each in told]
