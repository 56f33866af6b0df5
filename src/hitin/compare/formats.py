"""The files of results. Markdown and LaTeX are written here, others by `listing`, `page` and `pictures`."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hitin.cells import whole_characters
from hitin.compare.cells import Cell, Plan
from hitin.compare.facts import facts
from hitin.compare.listing import to_csv
from hitin.compare.page import to_html
from hitin.compare.pictures import FOLDER, pictures
from hitin.compare.results import Results, gather
from hitin.compare.sentences import sentences
from hitin.compare.statistics import RESAMPLES
from hitin.compare.tables import DAGGER, DASH, Grid, GridCell, GridRow, grids
from hitin.writing import write_text


def write_results(plan: Plan, cells: Iterable[Cell], folder: str | Path, *, resamples: int = RESAMPLES) -> list[Path]:
    """Write all that the finished cells tell into the folder; the same results give the same files, to the byte.

    Answered are the files to look at, and the folder of figures.
    """
    results = gather(plan, cells, Path(folder), resamples=resamples)
    written = {"tables.md": to_markdown, "tables.csv": to_csv, "tables.tex": to_latex, "index.html": to_html}
    texts = {Path(folder) / name: whole_characters(write(results)) for name, write in written.items()}
    drawn = {Path(folder) / FOLDER / name: whole_characters(picture) for name, picture in pictures(results)}
    for path, text in (texts | drawn).items():
        write_text(path, [text])
    return [*texts, *([Path(folder) / FOLDER] if drawn else [])]


# Markdown.


def to_markdown(results: Results) -> str:
    """What there is to say, the tables, and where they come from."""
    parts = ["# Comparison of methods", ""]
    for title, said in sentences(results):
        parts += [f"**{_plain(title)}.** {_plain(said[0])}", "", *(f"* {_plain(text)}" for text in said[1:]), ""]
    for view in results.views:
        parts += [f"## {_plain(view.title)}", ""]
        shown = grids(view, results)
        for grid in shown:
            parts += [f"### {_plain(grid.subtitle[0].upper() + grid.subtitle[1:])}", "", *_markdown_table(grid), ""]
            parts += [_plain(grid.about), ""]
        notes = dict.fromkeys(note for grid in shown for note in grid.notes)
        parts += ["Of these tables:", "", *(f"* {_plain(note)}" for note in notes), ""]
    parts += ["## How it was compared", ""]
    parts += [f"* {_plain(term)}: {_fact(term, text)}" for term, text in facts(results)]
    return "\n".join(parts) + "\n"


def _fact(term: str, text: str) -> str:
    return f"`{text}`" if term == "Command" else _plain(text)


def _markdown_table(grid: Grid) -> Iterator[str]:
    """With columns as wide as their widest cell, so that a terminal shows a table, too."""
    heads = [_plain(" ".join(filter(None, pair))) for pair in _heads(grid)]
    lines = [["", *heads], *([_plain(row.title), *map(_markdown_cell, row.cells)] for row in grid.rows)]
    widths = [max(3, *map(_width, column)) for column in zip(*lines, strict=True)]
    yield _line(lines[0], widths)
    yield _line(["-" * widths[0], *(f"{'-' * (width - 1)}:" for width in widths[1:])], widths)
    yield from (_line(line, widths) for line in lines[1:])


def _heads(grid: Grid) -> Iterator[tuple[str, str]]:
    """The titles above each column; that of the only data set says nothing."""
    titles = [title for title, span in grid.groups for _ in range(span)]
    yield from zip(titles if len(set(filter(None, titles))) > 1 else [""] * len(titles), grid.columns, strict=True)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """The first cell to the left, numbers to the right."""
    room = [" " * (width - _width(cell)) for cell, width in zip(cells, widths, strict=True)]
    numbers = [space + cell for cell, space in zip(cells[1:], room[1:], strict=True)]
    return f"| {' | '.join([cells[0] + room[0], *numbers])} |"


def _width(text: str) -> int:
    """In columns of a terminal."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def _markdown_cell(cell: GridCell) -> str:
    return f"**{_plain(cell.text)}**" if cell.is_best else _plain(cell.text) + cell.mark


def _plain(text: str) -> str:
    """Text in which Markdown sees nothing of its own."""
    return re.sub(r"([\\`*_\[\]>|#~]|<(?! ))", r"\\\1", _one_line(text))


# LaTeX.


def to_latex(results: Results) -> str:
    """The tables for a paper that uses booktabs, to be `\\input`."""
    head = "% Written by hitin compare. In the preamble: \\usepackage{booktabs}\n"
    found = [grid for view in results.views for grid in grids(view, results)]
    return head + "\n".join("\n".join(_latex_table(grid)) + "\n" for grid in found)


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
    yield f"\\caption{{{_tex(grid.title)}. {' '.join(map(_tex, (grid.about, *grid.notes)))}}}"
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
