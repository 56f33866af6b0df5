"""The figures of a comparison as files of their own, for a page or a paper."""

from collections.abc import Iterator

from hitin.compare.cells import slug
from hitin.compare.drawing import WIDTH
from hitin.compare.figures import figures
from hitin.compare.results import Results

FOLDER = "figures"

_STYLE = """<style>
svg { font: 12px system-ui, sans-serif; font-variant-numeric: tabular-nums; }
text { fill: #59616e; }
text.axis { font-size: 12.5px; }
text.name, text.number { fill: #1b1f24; }
text.name.own, .own .name { fill: #b4530a; font-weight: 700; }
.paper { fill: #fff; }
.behind { fill: none; }
.grid { stroke: #d9dde3; }
.dot { fill: #2268b0; stroke: #fff; stroke-width: 1.5; }
.own .dot, .own .bar { fill: #b4530a; }
.whisker { fill: none; stroke: #59616e; stroke-width: 1.5; }
.line { fill: none; stroke: #b4530a; stroke-width: 2; opacity: .6; }
.bar { fill: #2268b0; }
.bar.part1 { fill: #8ebbe0; }
.bar.whole { fill: #59616e; }
.leader { fill: none; stroke: #59616e; stroke-width: 0.75; opacity: .7; }
.own .bar.part1 { fill: #eda65c; }
</style>"""
"""What the page says of them, by day."""


def pictures(results: Results) -> Iterator[tuple[str, str]]:
    """The name of each file in its folder, and the picture."""
    for view in results.views:
        for data in view.data:
            for figure in figures(view, data):
                name = "-".join(map(slug, (view.table.name, data.name, figure.name)))
                yield f"{name}.svg", standalone(figure.svg)


def standalone(svg: str) -> str:
    """A picture of the page with colours of its own, on white."""
    start, rest = svg.split("\n", 1)
    return f'{start}\n{_STYLE}\n<rect class="paper" width="{WIDTH}" height="100%"/>\n{rest}\n'
