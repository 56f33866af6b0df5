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
    """Rows that are not blank, quoted as spreadsheets and data frames do it."""
    csv.field_size_limit(max(csv.field_size_limit(), LINE_LIMIT))
    reader = csv.reader(source.lines(on_error), delimiter=delimiter, skipinitialspace=delimiter != "\t", strict=True)
    while True:
        start = source.line + 1
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            on_error(source.error(f"the row cannot be read ({error})", kind="bad-row", line=start, remedy=_QUOTES))
        else:
            if any(cell.strip() for cell in row):
                yield start, row


def tsv_rows(source: Source, on_error: OnError = raise_error) -> Rows:
    """Rows that are not blank, as wide as the first where quotes can make them so.

    Some programs quote the cells of tab-separated files and some do not, so a quote counts only where it must:
    around a whole cell, or where a row would otherwise be too wide (a tab inside) or too narrow (a line end).
    """
    lines = _Lookahead(source, on_error)
    width = 0
    while (text := lines.take()) is not None:
        start = lines.number
        row = [_unquoted(cell) for cell in text.split("\t")]
        if width and len(row) != width and '"' in text:
            row = _requoted(text, lines, width) or row
        width = width or len(row)
        if any(cell.strip() for cell in row):
            yield start, row


class _Lookahead:
    """Lines without their ends, some of which can be looked at before they are taken."""

    def __init__(self, source: Source, on_error: OnError) -> None:
        self._lines = ((source.line, text.rstrip("\r\n")) for text in source.lines(on_error))
        self._waiting: deque[tuple[int, str]] = deque()
        self.number = 0

    def take(self) -> str | None:
        found = self._waiting.popleft() if self._waiting else next(self._lines, None)
        if found is None:
            return None
        self.number = found[0]
        return found[1]

    def look(self, ahead: int) -> str | None:
        """The line so many after the one taken last, 1 being the next."""
        while len(self._waiting) < ahead:
            found = next(self._lines, None)
            if found is None:
                return None
            self._waiting.append(found)
        return self._waiting[ahead - 1][1]


def _requoted(text: str, lines: _Lookahead, width: int, most: int = 200) -> list[str] | None:
    """The row that begins with a line, if quotes and the following lines make it as wide as it should be."""
    for ahead in range(most):
        if ahead:
            following = lines.look(ahead)
            if following is None:
                return None
            text = f"{text}\n{following}"
        try:
            row = next(csv.reader(text.splitlines(keepends=True), delimiter="\t", strict=True))
        except csv.Error as error:
            if "end of data" in str(error):  # the quote is still open
                continue
            return None
        if len(row) != width:
            return None
        for _ in range(ahead):
            lines.take()
        return row
    return None


def _unquoted(cell: str) -> str:
    """A cell without the quotes around it, if they were put there by a program that doubles those inside."""
    inner = cell[1:-1]
    if len(cell) >= 2 and cell[0] == cell[-1] == '"' and '"' not in inner.replace('""', ""):
        return inner.replace('""', '"')
    return cell
