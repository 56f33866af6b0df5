"""Pictures of coding trees: the SVG as XML, the page as text, and the page at work in a real browser."""

import base64
import hashlib
import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitin import Taxonomy
from hitin.coding_tree import CodingTree
from hitin.coding_tree.drawing import to_html, to_svg
from tests.strategies import taxonomies
from tests.test_coding_tree_writing import HOSTILE, LINE_END, UNWRITABLE, coding_trees

TOPICS = Taxonomy.from_edges(
    [
        ("Root", "Science"),
        ("Root", "Arts"),
        ("Science", "Physics"),
        ("Science", "Chemistry"),
        ("Science", "Acoustics"),
        ("Arts", "Music"),
        ("Arts", "Café culture"),
        ("Music", "Acoustics"),
        ("Music", "Opera"),
    ]
)
PLACES = {name: place for place, name in enumerate(TOPICS.labels)}
ATTACK = "</script><img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


def topics(*, with_root: bool = False) -> CodingTree:
    """Physics and Chemistry with Science; all else with Arts; the groups padded by a layer of single children."""
    science = {"Science", "Physics", "Chemistry"}
    labels = [*TOPICS.labels, "Root"] if with_root else list(TOPICS.labels)
    first = [0 if label in science else 1 if label in {"Music", "Acoustics", "Opera"} else 2 for label in labels]
    return CodingTree([first, [0, 1, 1], [0, 1], [0, 0]], entropy=2.25, flat_entropy=3, method="by hand", labels=labels)


def big(labels: int) -> tuple[CodingTree, Taxonomy]:
    """Labels in three levels, and a tree that groups them otherwise."""
    names = [f"label {number}" for number in range(labels)]
    above = [None if number < 20 else names[number // 20] for number in range(labels)]
    taxonomy = Taxonomy.from_edges(zip(above, names, strict=True))
    layers = [np.arange(labels) // 25, np.arange(-(-labels // 25)) // 40]
    return CodingTree(
        [*layers, np.zeros(layers[-1].max() + 1, dtype=int)], entropy=1, flat_entropy=2, labels=taxonomy.labels
    ), taxonomy


# The SVG.


def svg_texts(picture: str) -> list[str]:
    root = ElementTree.fromstring(picture)
    return [element.text or "" for element in root.iter("{http://www.w3.org/2000/svg}text")]


@settings(deadline=None)
@given(coding_trees())
def test_the_svg_is_xml_with_every_name_in_it(tree: CodingTree) -> None:
    texts = svg_texts(to_svg(tree))
    names = map(str, range(tree.vertices)) if tree.labels is None else tree.labels
    expected = [UNWRITABLE.sub("\ufffd", LINE_END.sub(" ", name.replace("\t", " "))) for name in names]
    assert "height" in texts[1]
    assert sorted(texts[2 : 2 + tree.vertices]) == sorted(expected)


def test_the_svg_says_height_and_entropies_and_draws_chains_as_one() -> None:
    picture = to_svg(topics())
    assert svg_texts(picture)[:2] == [
        "Coding tree of 8 labels",
        "by hand, height 4, H^4 = 2.2500 bits, H^1 = 3.0000 bits",
    ]
    root = ElementTree.fromstring(picture)
    across = {circle.get("cx") for circle in root.iter("{http://www.w3.org/2000/svg}circle")}
    assert len(across) == 1  # all labels in one column, though they hang from groups of different layers
    lines = re.findall(r"H([\d.]+)", picture.partition("<path")[2])
    assert len(lines) == 8 + 2 + 2  # to the labels, to the groups below the root, to those in the second group
    assert "not computed" in to_svg(CodingTree.from_partitions([np.array([0]), np.array([0])]))


def test_long_names_lose_their_middle_in_the_svg_and_are_whole_in_a_tooltip() -> None:
    names = ["A" + "x" * 100 + "<end>", "漢" * 50, "short"]
    picture = to_svg(CodingTree([[0, 0, 0]], entropy=1, flat_entropy=1, labels=names))
    cut, wide, short = svg_texts(picture)[2:]
    assert (cut[:2], cut[-5:], len(cut), short) == ("Ax", "<end>", 59, "short")
    assert wide == "漢" * 14 + "…" + "漢" * 14
    titles = [element.text for element in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}title")]
    assert titles[1:] == names[:2]


def test_the_numbers_of_groups_can_be_read_on_their_colours() -> None:
    picture = to_svg(CodingTree([np.arange(60) // 2, np.zeros(30, dtype=int)], entropy=1, flat_entropy=1))
    badges = re.findall(r'rx="7" fill="#(\w{6})"', picture)
    assert len(set(badges)) == 30
    for badge in badges:
        channels = np.frombuffer(bytes.fromhex(badge), dtype=np.uint8) / 255
        linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
        assert 1.05 / (linear @ [0.2126, 0.7152, 0.0722] + 0.05) >= 4.5


# The page as text.


def island(page: str) -> Any:
    return json.loads(re.findall(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[0])


def rebuilt(data: Any) -> CodingTree:
    """The whole tree, chains and all, from what the page knows."""
    parents, layers, vertices = (data["tree"][key] for key in ("parents", "layers", "vertices"))
    partitions = np.zeros((data["height"] + 1, data["vertices"]), dtype=np.int64)
    for node, vertex in enumerate(vertices):
        at = node
        for layer in range(data["height"] + 1 if vertex >= 0 else 0):
            while parents[at] >= 0 and layers[parents[at]] <= layer:
                at = parents[at]
            partitions[layer, vertex] = at
    dense = [np.unique(partition, return_inverse=True)[1] for partition in partitions]
    return CodingTree.from_partitions(dense, labels=data["names"][: data["vertices"]] if data["labelled"] else None)


def whole(text: str) -> str:
    """Halves of characters that meet are one character in JSON."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


@settings(deadline=None)
@given(coding_trees(), st.none() | taxonomies())
def test_the_island_holds_the_whole_tree_and_the_taxonomy(tree: CodingTree, taxonomy: Taxonomy | None) -> None:
    page = to_html(tree, taxonomy)
    page.encode()
    data = island(page)
    back = rebuilt(data)
    assert back.labels == (None if tree.labels is None else tuple(map(whole, tree.labels)))
    assert back.layer_sizes == tree.layer_sizes
    assert all(map(np.array_equal, back.child_to_parent, tree.child_to_parent))
    if taxonomy is not None:
        ids = data["taxonomy"]["ids"]
        assert [data["names"][label] for label in ids] == list(map(whole, taxonomy.labels))
        assert data["taxonomy"]["children"] == taxonomy.child_ids.tolist()
        assert data["taxonomy"]["counts"] == taxonomy.child_counts.tolist()


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attributes


def test_hostile_names_are_text_wherever_they_stand() -> None:
    names = [ATTACK, "@@data@@", *HOSTILE, "\u2028<!--", "<script", "]]>", "\x00", "\ud800"]
    layers = [np.arange(len(names)) % 3, np.zeros(3, dtype=int)]
    tree = CodingTree(layers, entropy=1, flat_entropy=2, method=ATTACK, labels=names)
    taxonomy = Taxonomy.from_edges([(ATTACK, "<b>"), ("<b>", "&lt;")])
    page, plain = to_html(tree, taxonomy, title=ATTACK), to_html(CodingTree(layers, entropy=1, flat_entropy=2), TOPICS)
    assert Elements(page).tags == Elements(plain).tags
    assert not [name for name, _ in Elements(page).attributes if name.startswith("on")]
    inside = page.partition('id="data">')[2].partition("</script>")[0]
    assert not set("<>&\u2028\u2029") & set(inside)
    assert island(page)["names"][: len(names)] == names


def test_the_page_refers_to_nothing_outside_and_its_policy_knows_its_script_and_style() -> None:
    page = to_html(topics(), TOPICS, title="Topics & more")
    assert "<title>Topics &amp; more</title>" in page
    assert not re.search(r"https?:|//\w+\.|@import|url\(|\b(src|href|srcset)=|innerHTML|\beval\b|fetch\(", page)
    assert "@@" not in page
    policy = re.findall(r'Content-Security-Policy" content="([^"]+)"', page)[0]
    assert "default-src 'none'" in policy
    for element in ("script", "style"):
        (text,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        assert f"{element}-src 'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" in policy


def facts(page: str) -> dict[str, str]:
    found = re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", page)
    return {re.sub("<[^>]+>", "", term): re.sub("<[^>]+>", "", value) for term, value in found}


def test_the_head_of_the_page_has_the_numbers() -> None:
    assert facts(to_html(topics(), TOPICS)) == {
        "Vertices": "8",
        "Height": "4",
        "Method": "by hand",
        "Nodes in each layer, vertices to root": "8 › 3 › 2 › 2 › 1",
        "H4, structural entropy": "2.2500 bits 25.0% below H1",
        "H1, without groups": "3.0000 bits",
        "Taxonomy edges inside a top group": "6 of 7",  # Science > Acoustics is cut
    }
    bare = facts(to_html(CodingTree([[0, 0], *[[0]] * 30], entropy=0, flat_entropy=0)))
    assert bare["Method"] == "not named"
    assert bare["Nodes in each layer, vertices to root"] == "2 › 1 › 1 › 1 › 1 › 1 › … › 1 › 1 › 1 › 1 › 1 › 1"


def test_a_tree_without_labels_is_numbered_like_a_taxonomy_of_its_size() -> None:
    layers = topics(with_root=True).child_to_parent
    data = island(to_html(CodingTree(layers, entropy=1, flat_entropy=1), TOPICS))
    assert data["names"] == [*TOPICS.labels, "Root"]
    other = island(to_html(CodingTree([[0, 0]], entropy=1, flat_entropy=1), TOPICS))
    assert other["names"] == ["0", "1", *TOPICS.labels]


# The page in a browser.

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
in_a_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium or Chrome on this machine")

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


@settings(max_examples=3, deadline=None)
@given(coding_trees(), taxonomies())
@in_a_browser
def test_any_tree_and_taxonomy_open_in_a_browser(
    tmp_path_factory: pytest.TempPathFactory, tree: CodingTree, taxonomy: Taxonomy
) -> None:
    script = "document.querySelectorAll('.all').forEach(button => button.click()); return rows('tree').length;"
    folder = tmp_path_factory.mktemp("page")
    drawn = island(to_html(tree, taxonomy))["tree"]["parents"]
    assert browse(to_html(tree, taxonomy), folder, script) == len(drawn) - 1
