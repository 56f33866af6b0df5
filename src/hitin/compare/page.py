"""The page of a comparison: one file that loads nothing else, readable without its script."""

import html
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path

from hitin import __version__
from hitin.compare.cells import slug
from hitin.compare.facts import facts
from hitin.compare.figures import figures
from hitin.compare.results import Results, View
from hitin.compare.sentences import judged
from hitin.compare.tables import Grid, GridCell, GridRow, grids
from hitin.pages import page


def to_html(results: Results) -> str:
    """Everything on one page."""
    folder = files("hitin.compare")
    shared = files("hitin.report").joinpath("report.css").read_text(encoding="utf-8")
    style = f"{shared}\n{folder.joinpath('comparison.css').read_text(encoding='utf-8')}"
    script = f"(() => {{\n'use strict';\n{folder.joinpath('comparison.js').read_text(encoding='utf-8')}}})();"
    return page(
        folder.joinpath("comparison.html").read_text(encoding="utf-8"),
        style=style,
        script=script,
        title=_text(f"Comparison: {Path(results.plan.file).stem}"),
        facts="".join(_fact(*fact) for fact in facts(results)),
        contents="".join(_link(view) for view in results.views),
        verdict="\n".join(_verdicts(results)) or "<p class='about'>No table has a row of HiTIN.</p>",
        sections="\n".join(_section(view, results) for view in results.views),
        made_by=f"hitin {__version__}",
    )


def _fact(term: str, text: str) -> str:
    shown = f"<code>{_text(text)}</code>" if term == "Command" else _text(text)
    return f"<div><dt>{_text(term)}</dt><dd>{shown}</dd></div>"


def _link(view: View) -> str:
    return f'<li><a href="#{_anchor(view)}">{_text(view.title)}</a></li>'


def _anchor(view: View) -> str:
    return f"table-{slug(view.table.name)}-{view.part}"


def _verdicts(results: Results) -> Iterator[str]:
    for title, count, found in judged(results):
        yield f'<p class="summary"><span dir="auto">{_text(title)}</span>: {_text(count)}</p>'
        items = (f'<li class="{verdict.outcome}">{_text(verdict.text)}</li>' for verdict in found)
        yield f'<ul class="verdicts">{"".join(items)}</ul>'


def _section(view: View, results: Results) -> str:
    """A table with all its ways, costs, settings and figures."""
    anchor = _anchor(view)
    parts = [f'<section id="{anchor}" aria-labelledby="{anchor}-title">']
    parts.append(f'<h2 id="{anchor}-title" dir="auto">{_text(view.title)}</h2>')
    main, *others = grids(view, results)
    parts += [_panel(main), *map(_folded, others), _settings(view), *_pictures(view), "</section>"]
    return "\n".join(parts)


def _folded(grid: Grid) -> str:
    return f'<details><summary dir="auto">{_text(grid.title)}</summary>{_panel(grid)}</details>'


def _panel(grid: Grid) -> str:
    notes = "".join(f"<li>{_text(note)}</li>" for note in (grid.about, *grid.notes))
    return f'<div class="panel scroll" tabindex="0">{_table(grid)}</div>\n<ul class="notes">{notes}</ul>'


def _table(grid: Grid) -> str:
    groups = "".join(
        f'<th scope="colgroup" colspan="{span}" dir="auto">{_text(title)}</th>' for title, span in grid.groups
    )
    columns = "".join(
        f'<th scope="col" class="num" aria-sort="none"><button type="button">{_text(title)}</button></th>'
        for title in grid.columns
    )
    ours, theirs = ([row for row in grid.rows if row.is_published is kind] for kind in (False, True))
    published = f'<tbody class="published">{_rows(theirs)}</tbody>' if theirs else ""
    return (
        f'<table class="results"><caption class="away">{_text(grid.title)}</caption>'
        f'<thead><tr><td></td>{groups}</tr><tr><th scope="col">Method</th>{columns}</tr></thead>\n'
        f"<tbody>{_rows(ours)}</tbody>{published}</table>"
    )


def _rows(rows: Iterable[GridRow]) -> str:
    return "\n".join(
        f'<tr><th scope="row" dir="auto">{_text(row.title)}</th>{"".join(map(_cell, row.cells))}</tr>' for row in rows
    )


def _cell(cell: GridCell) -> str:
    order = "" if cell.order is None else f' data-order="{cell.order!r}"'
    hint = f' data-hint="{_text(cell.hint)}" tabindex="-1"' if cell.hint else ""
    mark = f'<sup aria-hidden="true">{cell.mark}</sup><span class="away"> (not told from the best)</span>'
    return f'<td class="num{" best" * cell.is_best}"{order}{hint}>{_text(cell.text)}{mark if cell.mark else ""}</td>'


def _settings(view: View) -> str:
    runs = "".join(
        f'<h3 dir="auto">{_text(line.row.title)}</h3><pre>{_text(line.row.text, keep_lines=True)}</pre>'
        for line in view.lines
    )
    return f'<details class="settings"><summary>What was run: the settings of each row</summary>{runs}</details>'


def _pictures(view: View) -> Iterator[str]:
    """The figures of each data set."""
    for data in view.data:
        found = [
            f'<figure class="panel"><figcaption>{_text(each.title)}<small>{_text(each.about)}</small></figcaption>'
            f"{each.svg}</figure>"
            for each in figures(view, data)
        ]
        if found:
            yield f'<h3 class="of-data" dir="auto">{_text(data.title)}</h3><div class="figures">{"".join(found)}</div>'


def _text(text: str, *, keep_lines: bool = False) -> str:
    """Text of others as HTML, in which it is nothing but text."""
    kept = "".join(char if char.isprintable() or (keep_lines and char == "\n") else " " for char in text)
    return html.escape(kept)
