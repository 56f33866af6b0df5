"""Pictures of a coding tree: a static SVG, and a page to look at it beside the taxonomy."""

import html
import math
import re
from collections.abc import Iterator, Sequence
from importlib.resources import files
from itertools import accumulate, groupby
from typing import NamedTuple
from unicodedata import east_asian_width

import numpy as np

from hitin.coding_tree.tree import CodingTree
from hitin.coding_tree.writing import children_of, names_of, on_one_line, shown_layers
from hitin.errors import counted
from hitin.names import ROOT
from hitin.pages import filled, policy_hash, safe_json
from hitin.taxonomy import Taxonomy

ROW = 18  # height of a label in the SVG; all lengths are in pixels
LEFT, TOP, BOTTOM = 24, 84, 20  # around the drawing, the heading above it
LONGEST_NAME = 60  # characters; the rest of a name is in its tooltip
LETTER = 7.2  # the width of a letter at the font size of labels, about

_GOLDEN_ANGLE = 137.508  # as a step between hues it keeps any number of colours apart
_TONES = (0.46, 0.36, 0.54)  # lightness of the first eight colours, the next eight, the next; all readable on white


class Outline(NamedTuple):
    """A coding tree as it is drawn, a chain of single children being one node, in the order of a walk from the root.

    For each node: its parent's place in this order (-1 for the root), the lowest layer of its chain, its
    vertex (-1 for a group), and which child of the root it stands under, counted from 0 (-1 for the root).
    """

    parents: list[int]
    layers: list[int]
    vertices: list[int]
    groups: list[int]


def outline(tree: CodingTree) -> Outline:
    """What both pictures draw."""
    drawn = Outline([], [], [], [])
    starts, below = children_of(tree)
    layers = tree.layers.tolist()
    groups = 0
    waiting = [(len(tree) - 1, -1)]
    while waiting:
        node, parent = waiting.pop()
        # A single vertex keeps the root above it, so that there is a tree to draw.
        while starts[node + 1] - starts[node] == 1 and (parent >= 0 or tree.vertices > 1):
            node = below[starts[node]]
        drawn.groups.append(drawn.groups[parent] if parent > 0 else groups if parent == 0 else -1)
        groups += parent == 0
        place = len(drawn.parents)
        drawn.parents.append(parent)
        drawn.layers.append(layers[node])
        drawn.vertices.append(node if node < tree.vertices else -1)
        waiting += [(child, place) for child in reversed(below[starts[node] : starts[node + 1]])]
    return drawn


def to_svg(tree: CodingTree) -> str:
    """A static picture: the root on the left, a line for each label, a colour for each child of the root."""
    return "\n".join(_svg_lines(tree)) + "\n"


def _svg_lines(tree: CodingTree) -> Iterator[str]:
    drawn = outline(tree)
    names = [on_one_line(name) for name in names_of(tree)]
    places = _places(drawn)
    heading = f"Coding tree of {_vertices(tree)}"
    method = f"{html.escape(on_one_line(tree.method))}, " if tree.method else ""
    numbers = f"{method}height {tree.height}, H^{tree.height} = {_bits(tree.entropy)}, H^1 = {_bits(tree.flat_entropy)}"
    longest = max(min(sum(map(_width, name)), LONGEST_NAME) for name in names)
    width = math.ceil(
        max(max(place.across for place in places) + 18 + longest * LETTER + LEFT, LEFT * 2 + LETTER * len(numbers))
    )
    height = TOP + ROW * tree.vertices + BOTTOM
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="Helvetica, Arial, sans-serif">'
    )
    yield f"<title>{heading}, {numbers}</title>"
    yield '<rect width="100%" height="100%" fill="#fff"/>'
    yield f'<text x="{LEFT}" y="32" font-size="18" font-weight="bold" fill="#1b1f24">{heading}</text>'
    yield f'<text x="{LEFT}" y="54" font-size="13" fill="#4a5261">{numbers}</text>'
    yield '<g fill="none" stroke-width="1.5" stroke-linejoin="round">'
    yield from _branches(drawn, places)
    yield '</g>\n<g font-size="13" fill="#1b1f24">'
    for vertex, group, place in zip(drawn.vertices, drawn.groups, places, strict=True):
        if vertex >= 0:
            yield f'<circle cx="{place.across:.1f}" cy="{place.down:.1f}" r="3.5" fill="{_colour(group)}"/>'
            yield f'<text x="{place.across + 9:.1f}" y="{place.down + 4.5:.1f}">{_short(names[vertex])}</text>'
    yield '</g>\n<g font-size="10" font-weight="bold" fill="#fff" text-anchor="middle">'
    for vertex, parent, group, place in zip(drawn.vertices, drawn.parents, drawn.groups, places, strict=True):
        if parent == 0 and vertex < 0:
            yield from _badge(group, place)
    yield "</g>\n</svg>"


class Place(NamedTuple):
    """Where a node is drawn: across by its layer, down in the middle of its first and last child."""

    across: float
    first: float
    last: float

    @property
    def down(self) -> float:
        return (self.first + self.last) / 2


def _places(drawn: Outline) -> list[Place]:
    columns = sorted(set(drawn.layers), reverse=True)
    step = min(96.0, max(900 / len(columns), 6.0))
    column = {layer: LEFT + number * step for number, layer in enumerate(columns)}
    rows = sum(vertex >= 0 for vertex in drawn.vertices)
    places = [Place(column[layer], math.inf, 0.0) for layer in drawn.layers]
    for node in reversed(range(len(places))):  # children come after their parents
        if drawn.vertices[node] >= 0:
            rows -= 1
            places[node] = Place(places[node].across, TOP + ROW * (rows + 0.5), TOP + ROW * (rows + 0.5))
        if node:
            parent, down = places[drawn.parents[node]], places[node].down
            places[drawn.parents[node]] = Place(parent.across, min(parent.first, down), max(parent.last, down))
    return places


def _branches(drawn: Outline, places: list[Place]) -> Iterator[str]:
    """The trunk, then a path for each top group: a line from each node to that of its parent, which goes down."""
    trunk = places[0]
    yield f'<path d="M{trunk.across:.1f} {trunk.first:.1f}V{trunk.last:.1f}" stroke="#8a929e"/>'
    for group, nodes in groupby(range(1, len(places)), key=drawn.groups.__getitem__):
        lines = []
        for node in nodes:
            here = places[node]
            lines.append(f"M{places[drawn.parents[node]].across:.1f} {here.down:.1f}H{here.across:.1f}")
            if drawn.vertices[node] < 0:
                lines.append(f"M{here.across:.1f} {here.first:.1f}V{here.last:.1f}")
        yield f'<path d="{"".join(lines)}" stroke="{_colour(group)}"/>'


def _badge(group: int, place: Place) -> Iterator[str]:
    """The number of a top group, as the page shows it too."""
    number = str(group + 1)
    width = 10 + 6 * len(number)
    x, y = place.across, place.down
    yield f'<rect x="{x - width / 2:.1f}" y="{y - 7:.1f}" width="{width}" height="14" rx="7" fill="{_colour(group)}"/>'
    yield f'<text x="{x:.1f}" y="{y + 3.6:.1f}">{number}</text>'


def _short(name: str) -> str:
    """A name as XML; a long one lacks its middle, since paths differ at their ends, and is whole in its tooltip."""
    if sum(map(_width, name)) <= LONGEST_NAME:
        return html.escape(name)
    half = LONGEST_NAME // 2 - 1
    head, tail = _fitting(name, half), _fitting(name[::-1], half)[::-1]
    return f"{html.escape(head.rstrip())}…{html.escape(tail.lstrip())}<title>{html.escape(name)}</title>"


def _fitting(text: str, room: int) -> str:
    """As much of the beginning as there is room for."""
    widths = accumulate(map(_width, text))
    return "".join(char for char, width in zip(text, widths, strict=True) if width <= room)


def _width(char: str) -> int:
    return 2 if east_asian_width(char) in "WF" else 1


def _colour(group: int) -> str:
    """The colour of a top group, from OKLCH, in which colours of one lightness look equally light."""
    lightness, hue = _TONES[group // 8 % 3], math.radians(25 + group * _GOLDEN_ANGLE)
    a, b = 0.12 * math.cos(hue), 0.12 * math.sin(hue)
    long = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
    medium = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
    short = (lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
    linear = (
        4.0767416621 * long - 3.3077115913 * medium + 0.2309699292 * short,
        -1.2684380046 * long + 2.6097574011 * medium - 0.3413193965 * short,
        -0.0041960863 * long - 0.7034186147 * medium + 1.7076147010 * short,
    )
    return "#" + "".join(f"{round(255 * _gamma(min(max(part, 0.0), 1.0))):02x}" for part in linear)


def _gamma(part: float) -> float:
    """From linear light to sRGB."""
    return 12.92 * part if part <= 0.0031308 else float(1.055 * part ** (1 / 2.4) - 0.055)


def to_html(tree: CodingTree, taxonomy: Taxonomy | None = None, *, title: str = "Coding tree") -> str:
    """One file that shows the tree in a browser, beside the taxonomy if there is one; it loads nothing else.

    Labels of the two are the same when their names are. A tree without labels is taken to be numbered like the
    taxonomy when it has as many vertices, or one more: the artificial root.
    """
    drawn = outline(tree)
    names = _vertex_names(tree, taxonomy)
    data: dict[str, object] = {
        "height": tree.height,
        "method": tree.method,
        "entropy": tree.entropy if math.isfinite(tree.entropy) else None,
        "flatEntropy": tree.flat_entropy if math.isfinite(tree.flat_entropy) else None,
        "labelled": tree.labels is not None,
        "vertices": tree.vertices,
        "names": names,
        "tree": {"parents": drawn.parents, "layers": drawn.layers, "vertices": drawn.vertices},
        "taxonomy": None,
    }
    facts = _facts(tree)
    if taxonomy is not None:
        ids = _joined(names, taxonomy)
        children = {"counts": taxonomy.child_counts.tolist(), "children": taxonomy.child_ids.tolist()}
        data["taxonomy"] = {"ids": ids, **children}
        facts.append(("Taxonomy edges inside a top group", _kept_edges(drawn, ids, taxonomy)))
    template = files("hitin.coding_tree").joinpath("tree.html").read_text(encoding="utf-8")
    return filled(
        template,
        title=html.escape(on_one_line(title)),
        facts="".join(f"<div><dt>{term}</dt><dd>{value}</dd></div>" for term, value in facts),
        panes="one" if taxonomy is None else "two",
        data=safe_json(data),
        script_hash=_hash(template, "script"),
        style_hash=_hash(template, "style"),
    )


def _vertex_names(tree: CodingTree, taxonomy: Taxonomy | None) -> list[str]:
    if tree.labels is None and taxonomy is not None and tree.vertices - len(taxonomy) in (0, 1):
        return [*taxonomy.labels, ROOT][: tree.vertices]
    return list(names_of(tree))


def _joined(names: list[str], taxonomy: Taxonomy) -> list[int]:
    """The place in `names` of each label of the taxonomy; those that are not vertices are added to it."""
    places = {name: place for place, name in reversed([*enumerate(names)])}
    ids = []
    for label in taxonomy.labels:
        place = places.get(label)
        if place is None:
            place = len(names)
            names.append(label)
        ids.append(place)
    return ids


def _facts(tree: CodingTree) -> list[tuple[str, str]]:
    """What stands at the head of the page, as HTML."""
    less = f' <span class="less">{tree.saved:z.1%} below H<sup>1</sup></span>' if math.isfinite(tree.saved) else ""
    facts = [
        ("Vertices", f"{tree.vertices:,}"),
        ("Height", f"{tree.height:,}"),
        ("Method", html.escape(on_one_line(tree.method)) or "not named"),
        ("Nodes in each layer, vertices to root", " <i>›</i> ".join(shown_layers(tree))),
        (f"H<sup>{tree.height}</sup>, structural entropy", _bits(tree.entropy) + less),
        ("H<sup>1</sup>, without groups", _bits(tree.flat_entropy)),
    ]
    return facts if tree.height > 1 else facts[:-1]


def _kept_edges(drawn: Outline, ids: list[int], taxonomy: Taxonomy) -> str:
    """How many edges of the taxonomy have both ends below the same child of the root."""
    group = np.full(max(max(ids), max(drawn.vertices)) + 1, -1)
    group[[vertex for vertex in drawn.vertices if vertex >= 0]] = [
        number for number, vertex in zip(drawn.groups, drawn.vertices, strict=True) if vertex >= 0
    ]
    ends = group[np.array(ids)[taxonomy.edges]]
    kept = int(((ends[:, 0] == ends[:, 1]) & (ends[:, 0] >= 0)).sum())
    return f"{kept:,} of {len(ends):,}"


def _vertices(tree: CodingTree) -> str:
    return counted(tree.vertices, "label") if tree.labels else counted(tree.vertices, "vertex", "vertices")


def _bits(entropy: float) -> str:
    return f"{entropy:.4f} bits" if math.isfinite(entropy) else "not computed"


def _hash(template: str, element: str) -> str:
    """That of the one script, or style sheet, of the template."""
    inside: Sequence[str] = re.findall(rf"<{element}>(.*?)</{element}>", template, re.DOTALL)
    return policy_hash(inside[0])
