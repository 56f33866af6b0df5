"""Rows of comma- and tab-separated files, each with the line it starts on."""

import csv
from collections import deque
from collections.abc import Callable, Iterator

from hitin.errors import OnError, raise_error
from hitin.files import LINE_LIMIT, Source

Rows = Iterator[tuple[int, list[str]]]

_QUOTES = "Is a double quote left open? A double quote inside a quoted cell is written twice."


def delimiter_of(lines: list[str], *, fits: Callable[[list[str]], bool]) -> str:
    """Tab, semicolon or comma: the first that gives rows that fit, or else the one that is there most often."""
    marks = "\t;,"
    for mark in marks:
        if lines and all(mark in line and fits(line.split(mark)) for line in lines):
            return mark
    return max(reversed(marks), key=lambda mark: sum(line.count(mark) for line in lines))


def csv_rows(source: Source, delimiter: str, on_error: OnError = raise_error) -> Rows:
    """Rows from the first that says something, but for blank lines; quoted as spreadsheets and data frames do it."""
    csv.field_size_limit(max(csv.field_size_limit(), LINE_LIMIT))
    lines = _Numbered(source.lines(on_error), source)
    reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=delimiter != "\t", strict=True)
    has_begun = False
    while True:
        lines.first = 0
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = f"the row cannot be read ({error})"
            on_error(source.error(problem, kind="bad-row", line=lines.first, remedy=_QUOTES))
        else:
            has_begun = has_begun or any(cell.strip() for cell in row)
            if has_begun and not _is_blank(lines.last, delimiter):
                yield lines.first, row


class _Numbered:
    """Lines, with the last one, and the number of the first that was taken since `first` was last set to 0."""

    def __init__(self, lines: Iterator[str], source: Source) -> None:
        self._lines = lines
        self._source = source
        self.first = 0
        self.last = ""

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        self.last = next(self._lines)
        self.first = self.first or self._source.line
        return self.last


def tsv_rows(source: Source, on_error: OnError = raise_error) -> Rows:
    """Rows from the first that says something, but for blank lines; as wide as it where quotes can make them so.

    Some programs quote the cells of tab-separated files and some do not, so a quote counts only where it must:
    around a whole cell, or where a row would otherwise be too wide (a tab inside) or too narrow (a line end).
    Where both readings fit, each line is a row: a wrong label shows, a swallowed document would not. Where cells before
    were quoted, a quote that the last row leaves open means that the file is cut short.
    """
    lines = _Lookahead(source, on_error)
    width, is_quoted = 0, False
    while (text := lines.take()) is not None:
        if _is_blank(text, "\t") or not (width or text.strip()):
            continue
        start, cells = lines.number, _without_end(text).split("\t")
        width = width or len(cells)
        row = None
        if '"' in text and (len(cells) != width or _goes_on(text, cells, lines, width)):
            row = _quoted_row(text, lines, width)
        if row is None and is_quoted and _is_cut(cells, lines):
            problem = "a double quote is left open at the end of the file, which is cut short"
            on_error(source.error(problem, kind="bad-row", line=start, remedy="Copy, download or save it again."))
            continue
        row = row or [_unquoted(cell) for cell in cells]
        is_quoted = is_quoted or row != cells
        yield start, row


class _Lookahead:
    """Lines, some of which can be looked at before they are taken."""

    def __init__(self, source: Source, on_error: OnError) -> None:
        self._lines = ((source.line, text) for text in source.lines(on_error))
        self._waiting: deque[tuple[int, str]] = deque()
        self.number = 0

    def take(self) -> str | None:
        found = self._waiting.popleft() if self._waiting else next(self._lines, None)
        if found is None:
            return None
        self.number = found[0]
        return found[1]

    def ahead(self) -> Iterator[str]:
        """The lines that would be taken next, one after the other."""
        at = 0
        while True:
            if at == len(self._waiting):
                found = next(self._lines, None)
                if found is None:
                    return
                self._waiting.append(found)
            yield self._waiting[at][1]
            at += 1


def _goes_on(text: str, cells: list[str], lines: _Lookahead, width: int) -> bool:
    """Whether a row of the right width leaves a quoted cell open that the next line, too narrow or wide, goes on."""
    following = next(lines.ahead(), None) if cells[-1].startswith('"') and text.count('"') % 2 else None
    return following is not None and following.count("\t") + 1 != width


def _is_cut(cells: list[str], lines: _Lookahead) -> bool:
    """Whether a row leaves its last cell open, and no other follows."""
    is_open = cells[-1].startswith('"') and cells[-1].count('"') % 2 == 1
    return is_open and all(_is_blank(text, "\t") for text in lines.ahead())


def _quoted_row(text: str, lines: _Lookahead, width: int) -> list[str] | None:
    """The row that begins with a line and ends where its quotes are closed, if it has the right width."""
    taken, quotes, size = [text], text.count('"'), len(text)
    following = lines.ahead()
    while quotes % 2:
        more = next(following, None)
        size += len(more or "")
        if more is None or size > LINE_LIMIT:
            return None
        taken.append(more)
        quotes += more.count('"')
    try:
        row = next(csv.reader([_without_end("".join(taken))], delimiter="\t", strict=True))
    except csv.Error:
        return None
    if len(row) != width:
        return None
    for _ in taken[1:]:
        lines.take()
    return row


def _is_blank(text: str, delimiter: str) -> bool:
    """Whether a line holds nothing at all: empty cells have a delimiter between them, or quotes."""
    return not text.strip() and delimiter not in text


def _without_end(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def _unquoted(cell: str) -> str:
    """A cell without the quotes around it, if they were put there by a program that doubles those inside."""
    inner = cell[1:-1]
    if len(cell) >= 2 and cell[0] == cell[-1] == '"' and '"' not in inner.replace('""', ""):
        return inner.replace('""', '"')
    return cell
