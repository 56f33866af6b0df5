"""Many documents on the page of the service: files of all kinds, the table, and what is downloaded."""

import csv
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser import Pages, in_a_browser
from tests.conftest import Run, Write
from tests.page_harness import classify, downloaded, lit, opened, run_all, slide, until, upload
from tests.serving import LATE, TICKETS, Served

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = in_a_browser


def texts_of(page: "Page") -> list[str]:
    """What stands in the column of texts."""
    found: list[str] = page.evaluate("[...document.querySelectorAll('#results .link')].map(each => each.textContent)")
    return found


def table(documents: int) -> str:
    """CSV with an id, a text and a column that a spreadsheet would compute."""
    texts = [json.loads(line)["text"] for line in (TICKETS / "train.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [[f"t{row}", f'{texts[row % len(texts)]} ({row}, "quoted")', f"=1+{row}"] for row in range(documents)]
    made = io.StringIO()
    csv.writer(made).writerows([["id", "text", "remark"], *rows])
    return made.getvalue()


def predicted(run: Run, model: Path, file: Path) -> list[dict[str, Any]]:
    done = run("predict", model, file, "--with-text")
    assert done.exit_code == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_two_hundred_rows_are_classified_and_downloaded_as_hitin_predict_has_them(
    page: "Page", served_tickets: Served, tickets: Path, run: Run, write: Write
) -> None:
    content = table(200)
    opened(page, served_tickets)
    upload(page, "rows.csv", content)
    assert page.inner_text("#documents-title") == "rows.csv: 200 texts"
    run_all(page)
    assert "200 texts classified" in page.inner_text("#made-with")
    assert len(texts_of(page)) == 100
    page.click("#next-page")
    assert page.inner_text("#page-words") == "101 to 200 of 200"
    expected = predicted(run, tickets, write("rows.csv", content))
    got = [json.loads(line) for line in downloaded(page, "#as-jsonl").splitlines()]
    for mine, theirs in zip(got, expected, strict=True):
        assert {**mine, "scores": None} == {**theirs, "scores": None}
        assert mine["scores"] == pytest.approx(theirs["scores"], rel=1e-3)
    read = list(csv.DictReader(io.StringIO(downloaded(page, "#as-csv").removeprefix("\ufeff"))))
    assert [row["predicted paths"].split(" | ") for row in read] == [each["paths"] or [""] for each in expected]
    assert [row["predicted labels"].split(" | ") for row in read] == [each["labels"] or [""] for each in expected]
    assert [row["text"] for row in read] == [each["text"] for each in expected]
    assert read[7]["remark"] == "'=1+7", "a spreadsheet must not compute it"


def test_a_row_that_is_chosen_lights_up_the_tree(page: "Page", served_tickets: Served) -> None:
    opened(page, served_tickets)
    upload(page, "rows.csv", f"text\nThe battery is flat within an hour\n{LATE}\n")
    run_all(page)
    page.get_by_role("button", name=LATE).click()
    page.wait_for_selector(".row.lit")
    assert page.input_value("#text") == LATE
    assert "Late" in lit(page)


def test_what_the_slider_says_holds_for_the_rows(page: "Page", served_tickets: Served) -> None:
    opened(page, served_tickets)
    classify(page, LATE)
    slide(page, 0.99)
    upload(page, "rows.csv", table(10))
    run_all(page)
    few = sum(len(json.loads(line)["labels"]) for line in downloaded(page, "#as-jsonl").splitlines())
    slide(page, 0.01)
    run_all(page)
    many = sum(len(json.loads(line)["labels"]) for line in downloaded(page, "#as-jsonl").splitlines())
    assert few < many
    assert "0.01" in page.inner_text("#made-with")


TEXTS = ['one, two; "three"', "two\nlines of\ttext", "Grüße – wie gehen Sie?"]


def quoted(separator: str, *, end: str = "\r\n") -> str:
    made = io.StringIO()
    writer = csv.writer(made, delimiter=separator, lineterminator=end)
    writer.writerows([["number", "what was said"], *([number, text] for number, text in enumerate(TEXTS))])
    return made.getvalue()


FILES: dict[str, tuple[str, bytes]] = {
    "commas": ("a.csv", quoted(",").encode()),
    "semicolons": ("a.csv", quoted(";", end="\n").encode()),
    "tabs": ("a.tsv", quoted("\t").encode()),
    "tabs in a .csv": ("a.csv", quoted("\t", end="\r").encode()),
    "a mark in front": ("a.csv", quoted(",").encode("utf-8-sig")),
    "UTF-16": ("a.csv", quoted(";").encode("utf-16")),
    "Windows": ("a.csv", quoted(";").encode("cp1252")),
    "JSON lines": ("a.jsonl", "\n".join(json.dumps({"n": 1, "text": text}) for text in TEXTS).encode()),
}


@pytest.mark.parametrize("kind", FILES)
def test_files_of_many_kinds_hold_the_same_texts(page: "Page", served_tickets: Served, kind: str) -> None:
    opened(page, served_tickets)
    upload(page, *FILES[kind])
    run_all(page)
    assert [json.loads(line)["text"] for line in downloaded(page, "#as-jsonl").splitlines()] == TEXTS


def test_another_column_can_be_chosen_and_a_header_taken_for_a_text(page: "Page", served_tickets: Served) -> None:
    opened(page, served_tickets)
    upload(page, "a.csv", "short,a long text of many words\nb,c\n")
    assert not page.is_checked("#header")
    page.select_option("#column", "0")
    run_all(page)
    assert texts_of(page) == ["short", "b"]
    page.check("#header")
    run_all(page)
    assert texts_of(page) == ["b"]


def test_rows_of_other_lengths_are_told(page: "Page", served_tickets: Served) -> None:
    opened(page, served_tickets)
    upload(page, "a.csv", "id,text\n1,one\n2,two, and more\n3,three\n")
    assert "2 rows with fewer cells" in page.inner_text("#documents-title")


def test_a_file_of_lines_is_one_text_or_many(page: "Page", served_tickets: Served) -> None:
    opened(page, served_tickets)
    upload(page, "a.txt", f"{LATE}\nand more\n", kind="text/plain")
    page.wait_for_selector(".row.lit")
    assert page.input_value("#text") == f"{LATE}\nand more"
    page.select_option("#reading", "lines")
    run_all(page)
    assert texts_of(page) == [LATE, "and more"]


def test_a_dropped_file_is_read(page: "Page", served_tickets: Served) -> None:
    opened(page, served_tickets)
    page.evaluate(
        """text => {
             const dataTransfer = new DataTransfer(), how = { dataTransfer, bubbles: true, cancelable: true };
             dataTransfer.items.add(new File([text], 'one.txt', { type: 'text/plain' }));
             for (const kind of ['dragover', 'drop']) document.body.dispatchEvent(new DragEvent(kind, how)); }""",
        LATE,
    )
    page.wait_for_selector(".row.lit")
    assert page.input_value("#text") == LATE
    assert page.is_hidden("#documents")


def test_a_text_that_is_refused_stops_no_other(pages: Pages, served_tickets: Served) -> None:
    page = opened(pages(expected="413"), served_tickets)
    upload(page, "a.csv", f"text\n{LATE}\n{'word ' * 50_000}\nmy battery\n")
    run_all(page)
    assert page.inner_text("#made-with").startswith("2 of 3 texts classified")
    assert "1 refused" in page.inner_text("#made-with")
    assert page.inner_text("#results .problem") == "The text has 250,000 characters. A text has at most 200,000."
    assert page.locator("#results tr .paths div").count() >= 2


def test_a_file_that_cannot_be_read_is_told_and_leaves_the_one_of_before(page: "Page", served_tickets: Served) -> None:
    opened(page, served_tickets)
    classify(page, LATE)
    upload(page, "a.csv", "text\nfirst\n")
    for name, content, told in (("a.jsonl", b"no json\n", "JSON lines"), ("b.txt", b" \n", "no text in b.txt")):
        page.set_input_files("#file", {"name": name, "mimeType": "text/plain", "buffer": content})
        until(page, f"document.querySelector('#message').textContent.includes('{told}')")
        assert page.inner_text("#documents-title") == "a.csv: 1 text"
        run_all(page)
        assert texts_of(page) == ["first"]
    assert page.input_value("#text") == LATE


def test_a_header_alone_is_no_text(page: "Page", served_tickets: Served) -> None:
    opened(page, served_tickets)
    upload(page, "a.csv", "text\n")
    assert page.inner_text("#documents-title") == "a.csv: 0 texts"
    assert page.is_disabled("#run")


def test_a_long_run_tells_how_far_it_is_and_can_be_cancelled(page: "Page", served_tickets: Served) -> None:
    opened(page, served_tickets)
    upload(page, "rows.csv", table(20_000))
    page.click("#run")
    until(page, "document.querySelector('#results tbody').rows.length === 100")
    assert "of 20,000, " in page.inner_text("#progress-words")
    page.click("#cancel")
    until(page, "document.querySelector('#running').hidden")
    assert "of 20,000 texts classified" in page.inner_text("#made-with")
    done = downloaded(page, "#as-jsonl").splitlines()
    assert 100 <= len(done) < 20_000


@pytest.mark.slow
def test_twenty_thousand_rows_are_classified(page: "Page", served_tickets: Served) -> None:
    opened(page, served_tickets)
    upload(page, "rows.csv", table(20_000))
    page.click("#run")
    until(page, "document.querySelector('#running').hidden", patience=300)
    assert len(downloaded(page, "#as-jsonl").splitlines()) == 20_000
    page.select_option("#order", "unsure")
    assert page.inner_text("#page-words") == "1 to 100 of 20,000"
