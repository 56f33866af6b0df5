"""What stands in a cell: a text, label names, or nothing; from JSON, tables, data frames and data sets."""

import csv
import io
import json
import re
from collections.abc import Iterable

from hitin.errors import InputError, shown
from hitin.names import label_name

_HALVES = re.compile("[\ud800-\udfff]")
_LIST_ITEM = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|([-+]?[0-9.]+))\s*,?""")


def plain(value: object) -> object:
    """NumPy, Arrow and polars values as plain Python; `None` for all ways of saying that a value is missing."""
    if isinstance(value, str | list):
        return value
    for method in ("as_py", "to_list", "tolist"):
        if hasattr(value, method):
            return plain(getattr(value, method)())
    is_missing = (isinstance(value, float) and value != value) or type(value).__name__ in ("NAType", "NaTType")
    return None if is_missing else value


def text_of(value: object) -> str:
    """The text of a document: as it is, or words joined by blanks."""
    if isinstance(value, list | tuple) and all(isinstance(word, str | int | float) for word in value):
        value = " ".join([str(word) for word in value])
    elif isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    elif not isinstance(value, str):
        raise InputError(f"the text must be text or a list of words, not {shown(value)}", kind="no-text")
    return whole_characters(value)


def whole_characters(text: str) -> str:
    """Text that can be written as UTF-8: half characters, which JSON escapes can smuggle in, become the replacement
    character. As many characters as before, so that places in it stay."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _HALVES.sub("\ufffd", text)
    return text


def csv_line(cells: Iterable[object]) -> str:
    """A line of a CSV file. What holds a carriage return is quoted, which Python's writer leaves out."""
    line, cells = io.StringIO(newline=""), list(cells)
    has_return = any(isinstance(cell, str) and "\r" in cell for cell in cells)
    csv.writer(line, lineterminator="\n", quoting=csv.QUOTE_ALL if has_return else csv.QUOTE_MINIMAL).writerow(cells)
    return line.getvalue()


def labels_of(value: object) -> tuple[str, ...]:
    """The names in a label cell: text, a number, or a list of these. What text stands for is left to `LabelReader`."""
    if isinstance(value, str):
        return (label_name(value),) if value.strip() else ()
    if isinstance(value, list | tuple | set | frozenset):
        return tuple([label_name(plain(name)) for name in value])
    if isinstance(value, int | float) and not isinstance(value, bool):
        return (label_name(value),)
    raise InputError(
        f"labels must be text or a list of texts, not {shown(value)}",
        kind="bad-label",
        remedy='Write "label": ["A", "B"], or "label": "A|B".',
    )


def names_in_list(text: str) -> list[str] | None:
    """The items of a list that became text, as JSON, Python or NumPy writes it; `None` if it is something else."""
    text = text.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        names = None
    if isinstance(names, list) and all(isinstance(name, str | int) and not isinstance(name, bool) for name in names):
        return [str(name) for name in names]
    inner, at, found = text[1:-1].rstrip(), 0, []
    while at < len(inner):
        item = _LIST_ITEM.match(inner, at)
        if item is None:
            return None
        quoted = item[1] if item[1] is not None else item[2]
        found.append(item[3] if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
        at = item.end()
    return found
