"""The picture of docs/concepts.md, a taxonomy beside its coding tree: `python docs/pictures/draw_coding_tree.py`."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from hitin import CodingTree, Taxonomy
from hitin.coding_tree import coding_tree

HERE = Path(__file__).resolve().parent
TAXONOMY = HERE.parents[1] / "examples" / "tickets" / "taxonomy.tsv"
PICTURE = HERE / "coding_tree.svg"
COLOURS = ("#8f3734", "#006c43", "#634590", "#7c4d00", "#006781", "#88375e")
ROW, TOP, STEP = 20, 70, 28  # of a label, above the first, of a level to the right; pixels
MIDDLE, WIDTH = 330, 700


def picture() -> str:
    """The SVG. A colour is a group of the coding tree, on both sides."""
    taxonomy = Taxonomy.read(TAXONOMY)
    tree = coding_tree(taxonomy, height=2)
    colour = {label: COLOURS[place % len(COLOURS)] for place, group in enumerate(tree.groups()) for label in group}
    height = TOP + ROW * (len(taxonomy) + 1)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
        'role="img" font-family="Helvetica, Arial, sans-serif" font-size="13">',
        "<title>A taxonomy of 20 labels, and its coding tree of height 2</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        *_heading(24, "The taxonomy", f"{len(taxonomy)} labels on {taxonomy.depth} levels"),
        *_taxonomy_lines(taxonomy, colour),
        *_heading(MIDDLE, "Its coding tree", f"height 2: {' > '.join(map(str, tree.layer_sizes))} nodes"),
        *_tree_lines(taxonomy, tree, colour),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _heading(x: int, title: str, words: str) -> Iterator[str]:
    yield f'<text x="{x}" y="28" font-size="17" font-weight="bold" fill="#1b1f24">{title}</text>'
    yield f'<text x="{x}" y="48" fill="#4a5261">{escape(words)}</text>'


def _taxonomy_lines(taxonomy: Taxonomy, colour: dict[int, str]) -> Iterator[str]:
    """A label a line, its children below it and further to the right."""
    rows: dict[int, int] = {}
    waiting = taxonomy.roots.tolist()[::-1]
    while waiting:
        label = waiting.pop()
        rows[label] = len(rows)
        waiting += taxonomy.children(label).tolist()[::-1]
    for label, row in rows.items():
        x, y = 30 + STEP * (int(taxonomy.levels[label]) - 1), TOP + ROW * (row + 0.5)
        for parent in taxonomy.parents(label).tolist():
            above = TOP + ROW * (rows[parent] + 0.5)
            yield f'<path d="M{x - STEP} {above + 4:g}V{y:g}H{x - 4}" fill="none" stroke="#8a929e"/>'
        yield from _label(x, y, taxonomy.labels[label], colour[label])


def _tree_lines(taxonomy: Taxonomy, tree: CodingTree, colour: dict[int, str]) -> Iterator[str]:
    """The root on the left, then the groups, then the labels: each is two steps below the root."""
    root, middle, leaf = MIDDLE + 6, MIDDLE + 90, MIDDLE + 180
    row, nodes = 0, []
    for number, group in enumerate(tree.groups(), start=1):
        ys = [TOP + ROW * (row + place + 0.5) for place in range(len(group))]
        row += len(group)
        y, paint = (ys[0] + ys[-1]) / 2, colour[group[0]]
        nodes.append(y)
        yield f'<path d="M{root} {y:g}H{middle}M{middle} {ys[0]:g}V{ys[-1]:g}" fill="none" stroke="{paint}"/>'
        for label, down in zip(group, ys, strict=True):
            yield f'<path d="M{middle} {down:g}H{leaf}" fill="none" stroke="{paint}"/>'
            yield from _label(leaf, down, taxonomy.labels[label], paint)
        yield f'<circle cx="{middle}" cy="{y:g}" r="9" fill="{paint}"/>'
        yield f'<text x="{middle}" y="{y + 4:g}" font-size="11" fill="#fff" text-anchor="middle">{number}</text>'
    yield f'<path d="M{root} {nodes[0]:g}V{nodes[-1]:g}" fill="none" stroke="#8a929e"/>'


def _label(x: int, y: float, name: str, colour: str) -> Iterator[str]:
    yield f'<circle cx="{x}" cy="{y:g}" r="4" fill="{colour}"/>'
    yield f'<text x="{x + 10}" y="{y + 4.5:g}" fill="{colour}">{escape(name)}</text>'


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
