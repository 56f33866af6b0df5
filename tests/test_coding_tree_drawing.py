"""Pictures of coding trees: the SVG as XML, the page as text, and the page at work in a real browser."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import numpy as np
from hypothesis import given
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
