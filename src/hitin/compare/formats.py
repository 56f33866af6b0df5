"""Tables as Markdown and as LaTeX."""

import re
from collections.abc import Iterable, Iterator

from hitin.compare.facts import facts
from hitin.compare.results import WAYS, Results
from hitin.compare.sentences import sentences
from hitin.compare.tables import DAGGER, DASH, Grid, GridCell, GridRow, cost_grid, score_grid


def grids(results: Results) -> Iterator[Grid]:
    """All tables, in the order in which they are shown."""
    for view in results.views:
        for way in WAYS:
            yield score_grid(view, way, results.resamples)
        yield cost_grid(view, results)


def to_markdown(results: Results) -> str:
    """What there is to say, the tables, and where they come from."""
    parts = ["# Comparison of methods", ""]
    for title, said in sentences(results):
        parts += [f"**{_plain(title)}.** {_plain(said[0])}", "", *(f"* {_plain(text)}" for text in said[1:]), ""]
    parts += [f"* {_plain(term)}: {_fact(term, text)}" for term, text in facts(results)]
    for grid in grids(results):
        parts += ["", *_markdown_table(grid)]
    return "\n".join(parts) + "\n"


def _fact(term: str, text: str) -> str:
    return f"`{text}`" if term == "Command" else _plain(text)


def _markdown_table(grid: Grid) -> Iterator[str]:
    yield f"## {_plain(grid.title)}"
    yield ""
    groups = [title for title, span in grid.groups for _ in range(span)]
    heads = [" ".join(filter(None, pair)) for pair in zip(groups, grid.columns, strict=True)]
    yield _line(["", *map(_plain, heads)])
    yield _line(["---", *("---:" for _ in heads)])
    for row in grid.rows:
        yield _line([_plain(row.title), *map(_markdown_cell, row.cells)])
    for note in grid.notes:
        yield ""
        yield _plain(note)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: GridCell) -> str:
    text = f"**{_plain(cell.text)}**" if cell.is_best else _plain(cell.text)
    return f"{text} {cell.mark}" if cell.mark else text


def _plain(text: str) -> str:
    """Text in which Markdown sees nothing of its own."""
    return re.sub(r"([\\`*_\[\]<>|#~])", r"\\\1", _one_line(text))


def to_latex(results: Results) -> str:
    """The tables for a paper that uses booktabs, to be `\\input`."""
    head = "% Written by hitin compare. In the preamble: \\usepackage{booktabs}\n"
    return head + "\n".join("\n".join(_latex_table(grid)) + "\n" for grid in grids(results))


def _latex_table(grid: Grid) -> Iterator[str]:
    yield "\\begin{table*}"
    yield "\\centering"
    yield "\\small"
    yield f"\\begin{{tabular}}{{l{'r' * len(grid.columns)}}}"
    yield "\\toprule"
    yield " & ".join(["", *_latex_groups(grid)]) + " \\\\"
    yield "".join(_latex_rules(grid))
    yield " & ".join(["", *map(_tex, grid.columns)]) + " \\\\"
    yield "\\midrule"
    yield from _latex_rows(grid.rows)
    yield "\\bottomrule"
    yield "\\end{tabular}"
    yield f"\\caption{{{_tex(grid.title)}. {' '.join(map(_tex, grid.notes))}}}"
    yield "\\end{table*}"


def _latex_groups(grid: Grid) -> Iterator[str]:
    for title, span in grid.groups:
        yield _tex(title) if span == 1 else f"\\multicolumn{{{span}}}{{c}}{{{_tex(title)}}}"


def _latex_rules(grid: Grid) -> Iterator[str]:
    """A rule under the title of each group, between the columns it spans; the first column holds the rows' titles."""
    first = 2
    for title, span in grid.groups:
        if title:
            yield f"\\cmidrule(lr){{{first}-{first + span - 1}}}"
        first += span


def _latex_rows(rows: Iterable[GridRow]) -> Iterator[str]:
    published = False
    for row in rows:
        if row.is_published and not published:
            yield "\\midrule"
        published = row.is_published
        yield " & ".join([_tex(row.title), *map(_latex_cell, row.cells)]) + " \\\\"


def _latex_cell(cell: GridCell) -> str:
    text = f"\\textbf{{{_tex(cell.text)}}}" if cell.is_best else _tex(cell.text)
    return f"{text}{_tex(cell.mark)}"


_TEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "±": "$\\pm$",
    DAGGER: "$^{\\dagger}$",
    DASH: "--",
}


def _tex(text: str) -> str:
    """Text in which LaTeX sees no command."""
    return "".join(_TEX.get(char, char) for char in _one_line(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())
