"""The page of a comparison: what it holds, that nothing in it can run, and how it works in a real browser."""

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from hitin.compare.cells import cells_of
from hitin.compare.drawing import Axes, Bar, Point, bars, curve, scatter
from hitin.compare.figures import figures
from hitin.compare.page import to_html
from hitin.compare.results import Results, gather
from hitin.compare.words import amount, duration, p_text, short_number, ticks
from tests.browser import Pages, in_a_browser
from tests.comparison_harness import (
    FLAT,
    HEIGHTS,
    HITIN,
    LINEAR,
    RANDOM,
    comparison,
    data_set,
    keys,
    plan,
    row,
    titled,
    write_cell,
)
from tests.report_harness import browse, picture_bytes, shown

ATTACK = "</script><img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"
SVG = "{http://www.w3.org/2000/svg}"


def results(folder: Path, title: str = "bag", *, data: tuple[str, ...] = ("one", "two")) -> Results:
    sets = [data_set(name, title=name.capitalize(), published="wos" if name == "one" else None) for name in data]
    wanted = plan([LINEAR, FLAT, HITIN, RANDOM, *HEIGHTS], sets, published="textrcnn")
    wanted = titled(wanted, title) if title != "bag" else wanted
    cells = comparison(folder, wanted, {"linear": 0.2, "flat": 0.12, "hitin": 0.1}, documents=150)
    return gather(wanted, cells, folder, resamples=200)


class Elements(HTMLParser):
    """Counts elements and sees that each is closed where it should be."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.styles = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        self.styles += any(name == "style" for name, _ in attrs)
        if tag not in ("meta", "rect", "line", "circle", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("rect", "line", "circle", "path"):
            assert self.open.pop() == tag


def test_the_page_is_whole_and_has_every_table_and_figure(tmp_path: Path) -> None:
    found = results(tmp_path)
    page = to_html(found)
    elements = Elements(page)
    assert elements.open == []
    assert elements.seen.count("table") == 2 * 4
    assert elements.seen.count("figure") == elements.seen.count("svg") == 2 * 6 + 2 * 2
    assert "hitin compare compare.toml" in page
    assert "height = 3" in page  # what was run
    assert elements.styles == 0  # the policy would not let them


def test_the_page_loads_nothing_and_no_title_can_run_a_script(tmp_path: Path) -> None:
    page = to_html(results(tmp_path, f"{ATTACK} @@data@@ \ud800 \x00", data=("one",)))
    page.encode()
    elements = Elements(page)
    assert elements.seen.count("script") == 1
    assert "img" not in elements.seen
    assert "default-src 'none'" in page
    outside = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(https?:)?//[a-z]+\.|@import|url\(|fetch\(|XMLHttp", outside)
    assert "@@data@@" in page


def test_a_page_without_results_or_without_hitin_is_written(tmp_path: Path) -> None:
    wanted = plan([LINEAR, FLAT], [data_set("one")])
    page = to_html(gather(wanted, cells_of(wanted, tmp_path, keys(wanted)), tmp_path, resamples=10))
    assert "No table has a row of HiTIN." in page
    assert Elements(page).seen.count("figure") == 0
    assert not re.search(r"\bnan\b|None", page.split("<main>")[1])


# Figures.


def test_figures_are_xml_with_all_their_numbers_in_words(tmp_path: Path) -> None:
    found = results(tmp_path, data=("one",))
    main, ablation = found.views
    drawn = [*figures(main, main.data[0]), *figures(ablation, ablation.data[0])]
    for figure in drawn:
        picture = ElementTree.fromstring(figure.svg)
        assert picture.attrib["role"] == "img"
        assert picture.findtext(f"{SVG}title") == figure.title
        told = picture.findtext(f"{SVG}desc") or ""
        hints = [mark.attrib["data-hint"] for mark in picture.iter(f"{SVG}g") if "data-hint" in mark.attrib]
        assert hints
        assert all(hint in told for hint in hints)
    heights = ElementTree.fromstring(drawn[-1].svg)
    assert [text.text for text in heights.iter(f"{SVG}text")].count("3") == 1
    assert len(list(heights.iter(f"{SVG}circle"))) == 2 * 3
    assert len([path for path in heights.iter(f"{SVG}path") if path.attrib["class"] == "whisker"]) == 3


def test_the_encoder_and_the_rest_are_parts_of_a_bar_where_both_are_known(tmp_path: Path) -> None:
    wanted = plan([replace(FLAT, seeds=(0,)), replace(HITIN, seeds=(0,))], [data_set("one")])
    cells = comparison(tmp_path, wanted, {}, without=["flat", "hitin"])
    truth = np.ones((3, 12), dtype=np.bool_)
    for cell in cells:
        parameters = {"trainable": 1_000_000, "encoder": 900_000}
        write_cell(cell, truth, {"tuned": truth, "half": truth}, parameters=parameters)
    (view,) = gather(wanted, [], tmp_path, resamples=10).views
    assert not list(figures(view, view.data[0]))
    (tmp_path / "data" / "one.npz").unlink()
    np.savez(tmp_path / "data" / "one.npz", truth=np.packbits(truth, axis=1), labels=np.array(12))
    (view,) = gather(wanted, cells, tmp_path, resamples=10).views
    figure = next(each for each in figures(view, view.data[0]) if "parameters" in each.title and "bar" in each.svg)
    assert figure.about == "Dark: the text encoder; light: the rest."
    assert "1,000,000 parameters (900,000 of the text encoder, 100,000 of the rest)" in figure.svg
    widths = [
        float(width) for width in re.findall(r'class="bar part\d" x="[\d.]+" y="\d+" width="([\d.]+)"', figure.svg)
    ]
    assert widths[0] == pytest.approx(9 * widths[1], rel=0.01)


def test_points_lie_where_axes_say_and_no_names_on_each_other() -> None:
    points = [Point(f"row {number}", 10.0 ** (4 + number), 50 + number, 0.5, "hint") for number in range(4)]
    points += [Point("another", 1e7, 53.01, None, "hint"), Point(ATTACK, 1e7, 53, None, "x" * 400)]
    picture = ElementTree.fromstring(scatter("t", points, Axes("x", "y", is_log=True), [(1e4, "10k"), (1e7, "10M")]))
    dots = [dot for dot in picture.iter(f"{SVG}circle") if dot.attrib["class"] == "dot"]
    across = [float(dot.attrib["cx"]) for dot in dots[:4]]
    assert np.diff(across) == pytest.approx([across[1] - across[0]] * 3, abs=0.2)  # logarithmic
    names = [text for text in picture.iter(f"{SVG}text") if text.attrib.get("class") == "name"]
    assert len(names) == 6
    assert all(len(name.text or "") <= 22 for name in names)


@pytest.mark.parametrize("rows", [8, 20])
def test_no_name_lies_on_another_name_or_on_a_point(rows: int) -> None:
    chance = np.random.default_rng(rows)
    points = [
        Point(f"a method of name {number}", 10 ** chance.normal(7.4, 0.1), chance.normal(84, 0.3), 0.2, "hint")
        for number in range(rows)
    ] + [Point("linear", 1e5, 70, None, "hint")]
    picture = ElementTree.fromstring(scatter("t", points, Axes("x", "y", is_log=True), [(1e5, "100k"), (1e8, "100M")]))
    boxes = []
    for text in picture.iter(f"{SVG}text"):
        if text.attrib.get("class") == "name":
            x, y, wide = float(text.attrib["x"]), float(text.attrib["y"]), 6.5 * len(text.text or "")
            left = x - wide if text.attrib.get("text-anchor") == "end" else x
            boxes.append((left, y - 9, left + wide, y + 3))
    assert len(boxes) >= min(rows, 15)
    dots = [dot for dot in picture.iter(f"{SVG}circle") if dot.attrib["class"] == "dot"]
    centres = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in dots]
    boxes += [(x - 5, y - 5, x + 5, y + 5) for x, y in centres]
    names = len(boxes) - len(dots)
    for place, one in enumerate(boxes[:names]):
        for other in boxes[place + 1 :]:
            assert one[0] >= other[2] or other[0] >= one[2] or one[1] >= other[3] or other[1] >= one[3]


def test_figures_of_one_value_or_of_nothing_are_drawn() -> None:
    same = [Point("a", 5.0, 80.0, None, "h"), Point("b", 5.0, 80.0, None, "h")]
    ElementTree.fromstring(scatter("t", same, Axes("x", "y", is_log=True), [(5.0, "5")]))
    ElementTree.fromstring(curve("t", same, Axes("x", "y"), [(5.0, "5")]))
    ElementTree.fromstring(bars("t", [Bar("a", (0.0,), "0", "none")]))


@pytest.mark.parametrize("value", [0.0, 100.0])
def test_no_mark_of_an_axis_is_beyond_what_scores_can_be(value: float) -> None:
    same = [Point("a", 5.0, value, 0.3, "h"), Point("b", 6.0, value, None, "h")]
    picture = ElementTree.fromstring(curve("t", same, Axes("x", "y"), []))
    marks = [float(text.text or "") for text in picture.iter(f"{SVG}text") if text.attrib.get("text-anchor") == "end"]
    assert len(marks) > 1
    assert all(0 <= mark <= 100 for mark in marks)


def test_numbers_in_words() -> None:
    assert [duration(seconds) for seconds in (8.13, 81.2, 725, 7500)] == ["8.1 s", "81 s", "12.1 min", "2.1 h"]
    assert [short_number(value) for value in (950, 15e6, 1.5e6, 2e9)] == ["950", "15M", "1.5M", "2G"]
    assert [p_text(p) for p in (0.00019, 0.0042, 0.0496, 1.0)] == ["< 0.001", "< 0.01", "= 0.050", "= 1.00"]
    assert amount("peak_memory_bytes", 3e8) == "0.30 GB"
    millions = [amount("trainable_parameters", value) for value in (83, 83_225, 1_450_000, 23_449_250, 116_403_205)]
    assert millions == ["8e-05 M", "0.08 M", "1.45 M", "23.4 M", "116 M"]
    assert amount("documents_per_second", 0.51) == "0.51"
    assert ticks(79.3, 86.1) == [80, 82, 84, 86]
    assert all(79.99 <= value <= 80.02 for value in ticks(79.99, 80.02))


# The page at work.


@in_a_browser
def test_tables_are_sorted_by_a_click_and_hints_are_shown(tmp_path: Path) -> None:
    script = """
    const seen = { title: document.title, loaded: performance.getEntriesByType('resource').length };
    const table = document.querySelector('table.results');
    const names = () => [...table.tBodies].map(body => [...body.rows].map(row => row.cells[0].textContent));
    const head = () => table.querySelectorAll('thead tr:last-child th')[1];
    seen.before = names();
    head().querySelector('button').click();
    seen.falling = [head().getAttribute('aria-sort'), names()];
    head().querySelector('button').click();
    seen.rising = [head().getAttribute('aria-sort'), names()];
    const tip = document.querySelector('.tip'), cell = table.querySelector('tbody td[data-hint]');
    cell.dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
    seen.tip = [tip.hidden, tip.textContent === cell.dataset.hint, tip.textContent];
    document.body.dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
    seen.gone = tip.hidden;
    const dot = document.querySelector('figure .mark'); dot.focus();
    if (!document.hasFocus()) dot.dispatchEvent(new FocusEvent('focusin', { bubbles: true })); // no window yet
    seen.dot = [tip.hidden, tip.textContent];
    const box = tip.getBoundingClientRect();
    seen.inside = box.left >= 0 && box.right <= window.innerWidth && box.top >= 0;
    seen.figures = document.querySelectorAll('figure svg').length;
    seen.wide = document.documentElement.scrollWidth <= window.innerWidth;
    return seen;
    """
    seen = browse(to_html(results(tmp_path / "results")), tmp_path, script)
    assert seen["title"] == "Comparison: compare"
    assert seen["loaded"] == 0
    ours, theirs = seen["before"]
    assert ours == ["linear", "flat", "HiTIN"]
    assert len(theirs) == 5
    assert seen["falling"][0] == "descending"
    assert seen["falling"][1][0] == ["HiTIN", "flat", "linear"]
    assert seen["falling"][1][1][0] == "HiTIN (published)"
    assert seen["rising"] == ["ascending", [names[::-1] for names in seen["falling"][1]]]
    assert seen["tip"][:2] == [False, True]
    assert "1 seed" in seen["tip"][2]
    assert seen["gone"]
    assert seen["dot"][0] is False
    assert "parameters" in seen["dot"][1]
    assert seen["inside"]
    assert seen["figures"] == 16
    assert seen["wide"]


@in_a_browser
def test_a_phone_shows_the_page_without_moving_it_sideways(tmp_path: Path) -> None:
    inside = to_html(results(tmp_path / "results", f"a long title of some data set {'x' * 120}"))
    page = inside.replace("default-src 'none'", "default-src 'none'; frame-src *")
    script = """
    const frame = document.createElement('iframe');
    frame.width = 360; frame.height = 800;
    frame.srcdoc = document.documentElement.outerHTML.replace(/<script[^]*?<\\/script>/g, '');
    await new Promise(done => { frame.onload = done; document.body.append(frame); });
    const inner = frame.contentDocument.documentElement;
    return { wide: inner.scrollWidth, tables: frame.contentDocument.querySelectorAll('table').length };
    """
    seen = browse(page, tmp_path, script)
    assert seen["wide"] <= 360  # less by the bar at the side
    assert seen["tables"] == 8


@in_a_browser
def test_hints_of_numbers_are_reached_by_keyboard(pages: Pages, tmp_path: Path) -> None:
    page = shown(pages(width=500), to_html(results(tmp_path / "results")), tmp_path)
    press, tip = page.keyboard.press, page.locator(".tip")
    page.locator("table.results").first.locator("th button").last.focus()
    press("Tab")
    here = "document.activeElement.matches('td') ? document.activeElement.dataset.hint : null"
    told = []
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowUp"):
        press(key)
        page.wait_for_timeout(50)  # it has scrolled
        assert tip.inner_text() == page.evaluate(here)
        told.append(tip.inner_text())
    assert len(set(told)) == 5
    press("Escape")
    assert not tip.is_visible()
    press("Tab")
    assert page.evaluate(here) is None  # one of a table is enough


@in_a_browser
def test_words_of_a_method_are_not_broken_where_a_table_is_wide(pages: Pages, tmp_path: Path) -> None:
    long = row("x", "flat", title="TextRCNN, broken normalisation", seeds=(0,), dropout=0.3)
    wanted = plan([long, HITIN], [data_set(f"set{number}") for number in range(5)])
    cells = comparison(tmp_path / "results", wanted, {}, documents=30)
    text = to_html(gather(wanted, cells, tmp_path / "results", resamples=20))
    page = shown(pages(width=900), text, tmp_path)
    lines = """heads => heads.flatMap(head => [...head.textContent.matchAll(/[^ ]+/g)].map(word => {
        const range = document.createRange();
        range.setStart(head.firstChild, word.index);
        range.setEnd(head.firstChild, word.index + word[0].length);
        return range.getClientRects().length;
    }))"""
    assert set(page.locator("table.results >> nth=0 >> tbody th").evaluate_all(lines)) == {1}


@in_a_browser
def test_all_tables_are_printed_whole(pages: Pages, tmp_path: Path) -> None:
    page = shown(pages(width=718), to_html(results(tmp_path / "results")), tmp_path)  # A4 within its margins
    page.emulate_media(media="print")
    assert (
        page.locator("table.results").evaluate_all("tables => tables.map(each => each.checkVisibility())") == [True] * 8
    )
    assert page.locator("pre").first.evaluate("each => each.checkVisibility()")
    edges = page.locator(".panel.scroll").evaluate_all(
        "panels => panels.map(each => [each.scrollWidth - each.clientWidth, getComputedStyle(each).overflowX])"
    )
    assert edges == [[0, "visible"]] * 8


@in_a_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_the_page_is_painted_in_light_and_dark(dark: bool, tmp_path: Path) -> None:
    lines = picture_bytes(to_html(results(tmp_path / "results", data=("one",))), tmp_path, dark=dark)
    assert len(np.unique(lines)) > 100  # a blank page has a handful


@in_a_browser
def test_hostile_titles_are_shown_as_they_are(tmp_path: Path) -> None:
    hostile = row("x", "flat", title=ATTACK, seeds=(0,), dropout=0.3)
    wanted = titled(plan([hostile, HITIN], [data_set("one")]), f"{ATTACK} \u202e")
    cells = comparison(tmp_path / "results", wanted, {}, documents=60)
    page = to_html(gather(wanted, cells, tmp_path / "results", resamples=50))
    script = """
    return { title: document.title, row: text('table.results tbody th'),
      made: document.querySelectorAll('img, main script').length };
    """
    seen = browse(page, tmp_path, script)
    assert seen["title"] == "Comparison: compare"
    assert seen["row"] == ATTACK
    assert seen["made"] == 0
