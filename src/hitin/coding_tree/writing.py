"""Coding trees as text for other programs: Graphviz and the Newick format of tree viewers."""

import re
from collections.abc import Iterator

import numpy as np

from hitin.coding_tree.tree import CodingTree

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")  # no file format for text wants these
_LINE_END = re.compile("\r\n|[\n\r\x0b\x0c\x85\u2028\u2029]")
_ENTITY = re.compile(r"&(?=#?[0-9A-Za-z]+;)")
_NEWICK_WORD = re.compile(r"[0-9A-Za-z.+-]+")


def to_dot(tree: CodingTree) -> str:
    """A drawing for Graphviz: the root on the left, the vertices in a column on the right."""
    return "\n".join(_dot_lines(tree)) + "\n"


def _dot_lines(tree: CodingTree) -> Iterator[str]:
    about = f"{tree.method} coding tree, height {tree.height}, {tree.entropy:.4f} of {tree.flat_entropy:.4f} bits"
    yield "digraph {"
    yield f"  graph [rankdir=LR, ordering=out, nodesep=0.08, ranksep=0.5, label={_dot_quoted(about.strip())}];"
    yield '  node [shape=point, width=0.06, fontname="Helvetica", fontsize=11];'
    yield '  edge [arrowhead=none, color="gray55"];'
    yield "  {"
    yield "    rank=same;"
    yield "    node [shape=plaintext, height=0.2, margin=0.04];"
    for vertex, name in enumerate(names_of(tree)):
        yield f"    {vertex} [label={_dot_quoted(name)}];"
    yield "  }"
    starts, below = children_of(tree)
    for node in range(tree.vertices, len(tree)):
        yield f"  {node} -> {{{' '.join(map(str, below[starts[node] : starts[node + 1]]))}}};"
    yield "}"


def _dot_quoted(text: str) -> str:
    """Text between double quotes. Graphviz reads backslashes, and entities such as `&amp;`, so these are escaped."""
    text = _ENTITY.sub("&amp;", text.replace("\\", "\\\\").replace('"', '\\"'))
    text = _LINE_END.sub(r"\\n", text.replace("\t", " "))
    return f'"{readable(text)}"'


def to_newick(tree: CodingTree) -> str:
    """The Newick format: groups in brackets, only vertices have names."""
    names = [_newick_quoted(name) for name in names_of(tree)]
    starts, below = children_of(tree)
    pieces: list[str] = []
    waiting: list[int | str] = [len(tree) - 1]
    while waiting:
        piece = waiting.pop()
        if isinstance(piece, str):
            pieces.append(piece)
        elif piece < tree.vertices:
            pieces.append(names[piece])
        else:
            pieces.append("(")
            waiting.append(")")
            for child in reversed(below[starts[piece] : starts[piece + 1]]):
                waiting += [child, ","]
            waiting.pop()  # no comma before the first
    return "".join(pieces) + ";\n"


def _newick_quoted(name: str) -> str:
    """A name, in single quotes unless it is a plain word; a bare `_` would be read as a blank."""
    return name if _NEWICK_WORD.fullmatch(name) else "'" + on_one_line(name).replace("'", "''") + "'"


def shown_layers(tree: CodingTree) -> list[str]:
    """The sizes of the layers for people, of a tall tree only some."""
    sizes = [f"{size:,}" for size in tree.layer_sizes]
    return sizes if len(sizes) <= 13 else [*sizes[:6], "…", *sizes[-6:]]


def names_of(tree: CodingTree) -> tuple[str, ...]:
    """The labels of the vertices, or else their numbers."""
    return tuple(map(str, range(tree.vertices))) if tree.labels is None else tree.labels


def children_of(tree: CodingTree) -> tuple[list[int], list[int]]:
    """All children, parent by parent and in the order of their layer; and where those of each node begin."""
    starts = np.zeros(len(tree) + 1, dtype=np.int64)
    np.cumsum(np.bincount(tree.parents[:-1], minlength=len(tree)), out=starts[1:])
    return starts.tolist(), np.argsort(tree.parents[:-1], kind="stable").tolist()


def readable(text: str) -> str:
    """Text without control characters and halves of characters: U+FFFD stands in their place."""
    return text if text.isprintable() else _UNPRINTABLE.sub("\ufffd", text)


def on_one_line(text: str) -> str:
    """Readable text, a blank for each tab and line end."""
    return text if text.isprintable() else readable(_LINE_END.sub(" ", text.replace("\t", " ")))
