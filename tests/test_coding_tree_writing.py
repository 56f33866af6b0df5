"""Coding trees as Graphviz and Newick text, read back by small parsers of their own."""

import html
import re
import shutil
import subprocess
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hitin.coding_tree import CodingTree

HOSTILE = [
    'the "best"',
    "it's",
    "back\\slash\\",
    '\\N \\n \\"',
    "two\nlines",
    "a,b;(c)[d]:e",
    "under_score",
    "&amp; &#60; & &x",
    "Ünïcode 日本語 🎈 עברית",
    "</script><img src=x onerror=alert(1)>",
    "",
    " ",
]
NAMES = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(), max_size=10))
LINE_END = re.compile("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
UNWRITABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


@st.composite
def coding_trees(draw: st.DrawFn, most: int = 12) -> CodingTree:
    """Trees of any shape, chains of single children among them, with hostile names or none."""
    vertices = nodes = draw(st.integers(1, most))
    layers = []
    for _ in range(draw(st.integers(0, 4))):
        parents = draw(st.lists(st.integers(0, nodes - 1), min_size=nodes, max_size=nodes))
        layers.append(np.unique(parents, return_inverse=True)[1])
        nodes = int(layers[-1].max()) + 1
    layers.append(np.zeros(nodes, dtype=np.int64))
    labels = draw(st.none() | st.lists(NAMES, min_size=vertices, max_size=vertices))
    return CodingTree(layers, entropy=1.5, flat_entropy=2.5, method="drawn", labels=labels)


def names(tree: CodingTree) -> list[str]:
    return [str(vertex) for vertex in range(tree.vertices)] if tree.labels is None else list(tree.labels)


def as_written(name: str, line_end: str) -> str:
    """A name less what no text file holds."""
    lines = LINE_END.split(name.replace("\t", " "))
    return line_end.join(UNWRITABLE.sub("\ufffd", line) for line in lines)


DOT_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|->|[{}\[\];,=]|[\w.]+)')


def dot_text(token: str) -> str:
    """What Graphviz shows for a quoted label."""
    unquoted = re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], token[1:-1])
    return re.sub(r"&#?\w+;", lambda match: html.unescape(match[0]), unquoted, flags=re.ASCII)


def parsed_dot(text: str) -> tuple[dict[int, str], dict[int, int]]:
    """The labels of the vertices, and the parent of each node."""
    tokens, at = [], 0
    while match := DOT_TOKEN.match(text, at):
        tokens.append(match[1])
        at = match.end()
    assert not text[at:].strip()
    assert tokens.count("{") == tokens.count("}")
    labels = {
        int(name): dot_text(value)
        for name, opening, key, _, value in zip(tokens, tokens[1:], tokens[2:], tokens[3:], tokens[4:], strict=False)
        if name.isdecimal() and (opening, key) == ("[", "label")
    }
    parents = {}
    for place in (place for place, token in enumerate(tokens) if token == "->"):
        end = tokens.index("}", place)
        parents.update(dict.fromkeys(map(int, tokens[place + 2 : end]), int(tokens[place - 1])))
    return labels, parents


Nested = list["Nested"] | str


def parsed_newick(text: str) -> "Nested":
    """Lists of names, and of lists."""
    stack: list[list[Nested]] = [[]]
    body = re.fullmatch(r"(.*);\n", text)
    assert body
    tokens = re.findall(r"'(?:[^']|'')*'|[(),]|[^(),'\s]+", body[1])
    assert "".join(tokens) == body[1]
    for before, token in pairwise(["", *tokens]):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        elif token == ",":
            assert before not in {"(", ","}
        else:
            stack[-1].append(token[1:-1].replace("''", "'") if token[0] == "'" else token)
    ((whole,),) = stack
    return whole


def nested(tree: CodingTree) -> "Nested":
    """What the Newick text says, built layer by layer from below."""
    layer: list[Nested] = [as_written(name, " ") for name in names(tree)]
    for above in tree.child_to_parent:
        layer = [[layer[child] for child in np.flatnonzero(above == parent)] for parent in range(above.max() + 1)]
    return layer[0]


@given(coding_trees())
@example(CodingTree([np.zeros(len(HOSTILE), dtype=int)], entropy=1, flat_entropy=1, labels=HOSTILE))
def test_dot_reads_back_as_the_same_tree(tree: CodingTree) -> None:
    text = tree.to_dot()
    labels, parents = parsed_dot(text)
    assert labels == {vertex: as_written(name, "\n") for vertex, name in enumerate(names(tree))}
    assert [parents.get(node, -1) for node in range(len(tree))] == tree.parents.tolist()
    assert text.count("\n") == 9 + len(tree)  # a name never starts a line of its own
    text.encode()


@given(coding_trees())
@example(CodingTree([np.zeros(len(HOSTILE), dtype=int)], entropy=1, flat_entropy=1, labels=HOSTILE))
def test_newick_reads_back_as_the_same_tree(tree: CodingTree) -> None:
    text = tree.to_newick()
    assert parsed_newick(text) == nested(tree)
    assert text.count("\n") == 1
    text.encode()


def test_newick_quotes_only_what_needs_it() -> None:
    tree = CodingTree([[0, 0, 1, 1], [0, 0]], entropy=1, flat_entropy=2, labels=["Law", "Case law", "it's", "a_b"])
    assert tree.to_newick() == "((Law,'Case law'),('it''s','a_b'));\n"
    assert CodingTree([[0, 0], [0]], entropy=1, flat_entropy=1).to_newick() == "((0,1));\n"


def test_dot_says_height_and_entropies_and_stands_the_vertices_in_one_column() -> None:
    text = CodingTree([[0, 0, 1], [0, 0]], entropy=1, flat_entropy=2, method='the "best"').to_dot()
    assert 'label="the \\"best\\" coding tree, height 2, 1.0000 of 2.0000 bits"' in text
    assert "rankdir=LR" in text
    assert re.search(r"\{\s+rank=same;[^}]+0 \[label=\"0\"\];\s+1 \[label=\"1\"\];\s+2 \[label=\"2\"\];\s+\}", text)


def test_a_height_of_thousands_needs_no_recursion() -> None:
    tree = CodingTree([[0, 0], *[[0]] * 5000], entropy=1, flat_entropy=1)
    assert tree.to_newick() == "(" * 5001 + "0,1" + ")" * 5001 + ";\n"
    assert tree.to_dot().count("->") == 5001


@pytest.mark.skipif(shutil.which("dot") is None, reason="Graphviz is not on this machine")
def test_graphviz_reads_the_hostile_names() -> None:
    tree = CodingTree([np.zeros(len(HOSTILE), dtype=int)], entropy=1, flat_entropy=1, labels=HOSTILE)
    done = subprocess.run(["dot", "-Tsvg"], input=tree.to_dot().encode(), check=True, capture_output=True)
    assert done.stdout.decode().count('class="edge"') == len(HOSTILE)
