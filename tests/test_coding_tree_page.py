"""The page of a coding tree at work in a real browser."""

import base64
import hashlib
import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from hitin import Taxonomy
from hitin.coding_tree import CodingTree
from hitin.coding_tree.drawing import to_html
from tests.browser import BROWSER, Pages, in_a_browser
from tests.report_harness import assert_edges, shown
from tests.strategies import taxonomies
from tests.test_coding_tree_drawing import ATTACK, TOPICS, big, island, topics
from tests.test_coding_tree_writing import coding_trees

HELPERS = """
const rows = pane => [...document.querySelectorAll(`#${pane}-pane .row`)];
const name = row => row.querySelector('.name').textContent;
const row = (pane, text) => rows(pane).find(row => name(row) === text);
const names = (pane, kind = '') => [...document.querySelectorAll(`#${pane}-pane .row${kind}`)].map(name);
const press = key => document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
const on = pane => document.querySelector(`#${pane}-pane`);
const tick = () => new Promise(done => setTimeout(done, 300));
const inView = row => {
  const box = row.closest('.tree').getBoundingClientRect(), at = row.getBoundingClientRect();
  return at.top >= box.top && at.bottom <= box.bottom;
};
"""


def browse(page: str, folder: Path, script: str, *, fragment: str = "", real_time: bool = False) -> Any:
    """Open a page, run a script in it, and answer what that returns; anything on the console is an error.

    Time is the browser's own, which jumps to the next timer, unless it is measured; then nothing can be awaited.
    """
    assert BROWSER
    test = f"""<script>(async () => {{
      {HELPERS}
      const answer = document.createElement('pre');
      answer.id = 'answer';
      answer.textContent = JSON.stringify(await (async () => {{ {script} }})());
      document.body.append(answer);
    }})();</script>"""
    given = re.findall(r"(script-src '[^']+')", page)[0]
    digest = base64.b64encode(hashlib.sha256(test[8:-9].encode()).digest()).decode()
    allowed = page.replace(given, f"{given} 'sha256-{digest}'").replace("</body>", f"{test}</body>")
    path = folder / "page.html"
    path.write_text(allowed, encoding="utf-8")
    flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-extensions", "--no-first-run"]
    flags += [f"--user-data-dir={folder / 'profile'}", "--window-size=1400,900"]
    flags += [] if real_time else ["--virtual-time-budget=20000"]
    flags += ["--enable-logging=stderr", "--log-level=0", "--dump-dom"]
    done = subprocess.run(
        [BROWSER, *flags, path.as_uri() + fragment], capture_output=True, check=True, timeout=60, encoding="utf-8"
    )
    assert not [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    found = re.findall(r'<pre id="answer">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, "the script did not come to its end"
    return json.loads(html.unescape(found[0]))


@in_a_browser
def test_both_panes_are_drawn_and_a_click_on_one_side_finds_the_label_on_the_other(tmp_path: Path) -> None:
    script = """
    const seen = { tree: names('tree'), taxonomy: names('taxonomy') };
    seen.hint = document.querySelector('#hint').textContent;
    seen.badges = rows('taxonomy').map(row => row.querySelector('.badge')?.textContent ?? '');
    for (const pane of ['tree', 'taxonomy']) on(pane).querySelector('.none-open').click();
    seen.collapsed = [names('tree'), names('taxonomy')];
    rows('tree')[1].querySelector('.twisty').click();
    seen.opened = names('tree');
    rows('tree')[2].querySelector('.twisty').click();
    row('tree', 'Café culture').click();
    seen.found = [names('taxonomy'), names('taxonomy', '.chosen'), document.querySelector('#status').textContent];
    row('taxonomy', 'Science').click();
    seen.back = [names('tree'), names('tree', '.chosen')];
    rows('tree')[0].click();
    seen.lit = [names('taxonomy', '.lit'), names('taxonomy').includes('Opera')];
    rows('tree')[0].click();
    seen.again = names('tree').includes('Science');
    const to = on('taxonomy').querySelector('.to');
    to.value = '2'; to.dispatchEvent(new Event('input'));
    seen.levels = names('taxonomy');
    on('tree').querySelector('.all').click();
    seen.all = names('tree');
    row('taxonomy', 'Music').querySelector('.twisty').click(); await tick();
    seen.bar = row('taxonomy', 'Science').querySelector('.bar').title;
    seen.extra = row('tree', 'Root').querySelector('.note').textContent;
    return seen;
    """
    seen = browse(to_html(topics(with_root=True), TOPICS), tmp_path, script)
    assert seen["tree"][0] == "3 labels"
    assert seen["taxonomy"].count("Acoustics") == 2  # under both of its parents
    assert [pair for pair in zip(seen["taxonomy"], seen["badges"], strict=True) if pair[1]] == [
        ("Science", "1"),
        ("Acoustics", "2"),
        ("Arts", "2"),
    ]
    assert "there the coding tree cuts" in seen["hint"]
    assert seen["collapsed"] == [["3 labels", "6 labels"], ["Science", "Arts"]]
    assert seen["opened"] == ["3 labels", "6 labels", "3 labels", "3 labels"]
    assert seen["found"][:2] == [["Science", "Arts", "Music", "Café culture"], ["Café culture"]]
    assert seen["found"][2] == "Arts › Café culture — group 2"
    assert seen["back"][1] == ["Science"]
    assert seen["lit"] == [["Science", "Physics", "Chemistry"], False]
    assert not seen["again"]
    assert "Acoustics" in seen["levels"]
    assert "Opera" not in seen["levels"]
    assert sorted(set(seen["all"]) - {"3 labels", "6 labels"}) == sorted([*TOPICS.labels, "Root"])
    assert seen["bar"] == "With the 3 labels below, in 2 groups: 3 in 1, 1 in 2"
    assert seen["extra"] == "not in the taxonomy"


@in_a_browser
def test_a_search_from_the_address_opens_and_marks_the_label_in_both_panes(tmp_path: Path) -> None:
    tree, taxonomy = big(3000)
    labels = [*taxonomy.labels[:-1], "Straße in Łódź"]
    tree = CodingTree(tree.child_to_parent, entropy=1, flat_entropy=2, labels=labels)
    taxonomy = Taxonomy(labels, np.array(taxonomy.edges), taxonomy.level_sizes)
    script = """
    const query = document.querySelector('#query'), state = () => document.querySelector('#count').textContent;
    const seen = { value: query.value, count: state() };
    for (const pane of ['tree', 'taxonomy']) {
      const [found] = document.querySelectorAll(`#${pane}-pane .match.current`);
      seen[pane] = [name(found), [...found.querySelectorAll('mark')].map(mark => mark.textContent), inView(found)];
    }
    query.value = 'LABEL 299'; query.dispatchEvent(new Event('input')); await tick();
    seen.many = state(); seen.hash = location.hash;
    const enter = shiftKey => query.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', shiftKey }));
    enter(false); seen.next = [state(), names('tree', '.current'), names('taxonomy', '.current')];
    enter(true); enter(true); seen.last = state();
    query.value = 'nothing like it'; query.dispatchEvent(new Event('input')); await tick();
    seen.none = [state(), names('tree', '.match').length, document.querySelector('#next').disabled];
    location.hash = '#q=label+7'; await tick();
    seen.linked = [query.value, state()];
    return seen;
    """
    seen = browse(to_html(tree, taxonomy), tmp_path, script, fragment="#q=strasse+lodz")
    assert seen["value"] == "strasse lodz"
    assert seen["count"] == "1 of 1 match"
    assert seen["tree"] == seen["taxonomy"] == ["Straße in Łódź", ["Straße", "Łódź"], True]
    matches = [label for label in labels if "299" in label]
    assert seen["many"] == f"1 of {len(matches)} matches"
    assert seen["hash"] == "#q=LABEL+299"
    assert seen["next"][0] == f"2 of {len(matches)} matches"
    assert seen["next"][1] == seen["next"][2] == [matches[1]]
    assert seen["last"] == f"{len(matches)} of {len(matches)} matches"
    assert seen["none"] == ["No match", 0, True]
    assert seen["linked"][0] == "label 7"


@in_a_browser
def test_the_keyboard_walks_through_the_tree_as_the_aria_pattern_says(tmp_path: Path) -> None:
    script = """
    const at = () => name(document.activeElement), open = () => document.activeElement.getAttribute('aria-expanded');
    const seen = { roles: rows('tree').every(row => row.getAttribute('role') === 'treeitem' && row.ariaLevel) };
    on('taxonomy').querySelector('.none-open').click();
    const tabbed = () => rows('taxonomy').filter(row => row.tabIndex === 0).length;
    rows('taxonomy')[0].focus();
    seen.walk = [at(), open()];
    for (const key of ['ArrowDown', 'ArrowRight', 'ArrowRight', 'ArrowRight', 'ArrowDown', 'End', 'ArrowLeft',
      'ArrowLeft', 'Home']) { press(key); seen.walk.push([key, at(), open(), tabbed()]); }
    press('ArrowRight'); press('ArrowDown'); press('Enter');
    seen.entered = [at(), document.activeElement.ariaSelected, names('tree', '.chosen')];
    press('Escape'); seen.left = names('tree', '.chosen');
    press('/'); seen.search = document.activeElement.id;
    return seen;
    """
    seen = browse(to_html(topics(), TOPICS), tmp_path, script)
    assert seen["roles"]
    assert seen["walk"] == [
        "Science",
        "false",
        ["ArrowDown", "Arts", "false", 1],
        ["ArrowRight", "Arts", "true", 1],
        ["ArrowRight", "Music", "false", 1],
        ["ArrowRight", "Music", "true", 1],
        ["ArrowDown", "Acoustics", None, 1],
        ["End", "Café culture", None, 1],
        ["ArrowLeft", "Arts", "true", 1],
        ["ArrowLeft", "Arts", "false", 1],
        ["Home", "Science", "false", 1],
    ]
    assert seen["entered"] == ["Physics", "true", ["Physics"]]
    assert seen["left"] == []
    assert seen["search"] == "query"


@in_a_browser
def test_a_hostile_name_runs_no_script_and_is_shown_as_it_is(tmp_path: Path) -> None:
    names = [ATTACK, "<b>bold</b>", "\x00\x07", "\ud800", "\u202eright to left", ""]
    tree = CodingTree([[0, 0, 0, 1, 1, 1], [0, 0]], entropy=1, flat_entropy=2, method=ATTACK, labels=names)
    taxonomy = Taxonomy.from_edges([(ATTACK, "<b>bold</b>"), (ATTACK, "javascript:document.title='taken'")])
    script = """
    row('tree', '<b>bold</b>').click(); rows('tree')[0].click(); await tick();
    return { title: document.title, tree: names('tree'), taxonomy: names('taxonomy'),
      made: document.querySelectorAll('img, b, main script').length, marked: names('tree', '.match') };
    """
    seen = browse(to_html(tree, taxonomy, title="<i>safe</i>"), tmp_path, script, fragment="#q=%3Cimg")
    assert seen["title"] == "<i>safe</i>"
    assert seen["made"] == 0
    assert seen["marked"] == [ATTACK]
    assert seen["tree"].count("(no name)") == 2
    assert seen["taxonomy"] == [ATTACK, "<b>bold</b>", "javascript:document.title='taken'"]


@in_a_browser
def test_twenty_thousand_labels_are_drawn_and_searched_in_a_moment(tmp_path: Path) -> None:
    tree, taxonomy = big(20_000)
    script = """
    const seen = { drawn: performance.now() };
    const timed = (what, deed) => {
      const from = performance.now();
      deed();
      document.body.offsetHeight; // lays the page out
      seen[what] = performance.now() - from;
    };
    timed('opened', () => document.querySelectorAll('.all').forEach(button => button.click()));
    seen.rows = [rows('tree').length, rows('taxonomy').length];
    seen.told = document.querySelector('#status').textContent;
    timed('searched', () => { location.hash = '#q=label 19999'; window.dispatchEvent(new Event('hashchange')); });
    seen.found = [names('tree', '.current'), names('taxonomy', '.current')];
    return seen;
    """
    seen = browse(to_html(tree, taxonomy), tmp_path, script, real_time=True)
    assert seen["found"] == [["label 19999"], ["label 19999"]]
    assert min(seen["drawn"], seen["opened"], seen["searched"]) > 0
    assert all(4000 <= rows < 5000 for rows in seen["rows"])
    assert seen["told"].startswith("Opened the first 4,0")
    assert max(seen["drawn"], seen["opened"], seen["searched"]) < 5000


@in_a_browser
def test_a_branch_of_thousands_shows_some_and_then_more(tmp_path: Path) -> None:
    labels = [f"leaf {number}" for number in range(5000)]
    tree = CodingTree([np.zeros(5000, dtype=int)], entropy=1, flat_entropy=1, labels=labels)
    script = """
    const seen = { found: names('tree', '.current'), rows: names('tree') };
    seen.panes = getComputedStyle(on('taxonomy')).display;
    rows('tree').find(row => row.classList.contains('more')).click();
    seen.more = [names('tree').length, name(document.activeElement)];
    return seen;
    """
    seen = browse(to_html(tree), tmp_path, script, fragment="#q=leaf+4000")
    assert seen["panes"] == "none"
    assert seen["found"] == ["leaf 4000"]
    assert seen["rows"] == [
        *labels[:400],
        "Show 400 of 3,580 more rows",
        *labels[3980:4040],
        "Show 400 of 960 more rows",
    ]
    assert seen["more"] == [400 + 400 + 1 + 60 + 1, "leaf 400"]


@in_a_browser
def test_any_depth_can_be_opened(tmp_path: Path) -> None:
    """Rows inside each other would end the browser's process at a depth of 2,000."""
    labels = [f"step {number}" for number in range(5000)]
    taxonomy = Taxonomy.from_edges(zip([None, *labels], labels, strict=False))
    layers = [np.maximum(np.arange(size) - 1, 0) for size in range(300, 1, -1)]
    tree = CodingTree([np.arange(5000) % 300, *layers], entropy=1, flat_entropy=1, labels=labels)
    script = "return [names('tree', '.current'), names('taxonomy', '.current'), rows('taxonomy').length];"
    seen = browse(to_html(tree, taxonomy), tmp_path, script, fragment="#q=step+4999")
    assert seen == [["step 4999"], ["step 4999"], 5000]


@in_a_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_fields_have_an_edge_that_can_be_seen(dark: bool, pages: Pages, tmp_path: Path) -> None:
    assert_edges(shown(pages(dark=dark), to_html(topics(), TOPICS), tmp_path))


@settings(max_examples=3)
@given(coding_trees(), taxonomies())
@in_a_browser
def test_any_tree_and_taxonomy_open_in_a_browser(
    tmp_path_factory: pytest.TempPathFactory, tree: CodingTree, taxonomy: Taxonomy
) -> None:
    script = "document.querySelectorAll('.all').forEach(button => button.click()); return rows('tree').length;"
    folder = tmp_path_factory.mktemp("page")
    drawn = island(to_html(tree, taxonomy))["tree"]["parents"]
    assert browse(to_html(tree, taxonomy), folder, script) == len(drawn) - 1
