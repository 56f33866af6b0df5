"""The names of labels: what is one, what may stand between those of a path, when two look alike."""

from collections.abc import Container
from math import isfinite
from typing import overload
from unicodedata import normalize

from hitin.errors import InputError, shown

ROOT = "Root"
"""A parent of this name is the artificial root that many files write; it is never a label."""

PATH_SEPARATOR = " > "
"""What stands between the names when a label is called by its whole path."""

SEPARATORS = (PATH_SEPARATOR, "->", "→", "»", ">", "--")
"""What may stand between the names of a path, when the separator is not named; the first that fits is taken."""


def label_name(value: object) -> str:
    """A label's name from text or a number: `composed`, less blanks around it, which are never part of a name."""
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if isinstance(value, float) and value.is_integer():  # 3.0 where a table had to make room for a gap
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, str | int | float) or not _is_finite(value):
        raise InputError(f"a label must be text or a number, not {shown(value)}", kind="bad-label")
    name = composed(str(value).strip())
    if not name:
        raise InputError("a label's name is empty", kind="bad-label", remedy="Give it a name.")
    if not name.isascii() and any("\ud800" <= char <= "\udfff" for char in name):
        raise InputError(f"the label {shown(name)} holds half a character", kind="bad-label")
    return name


def composed(name: str) -> str:
    """A name with each letter and its accent as one character (NFC): some systems write them as two."""
    return name if name.isascii() else normalize("NFC", name)


def path_below(tops: Container[str], name: str, root: str | None = None) -> tuple[str, ...] | None:
    """The names in what stands at the top and looks like a path that begins with another label there, such as `A->B`.

    Its mark is then another one than that of the paths around it. The artificial root may begin it.
    """
    for mark in SEPARATORS:
        names = [part.strip() for part in name.split(mark)]
        below = names[1:] if names[0] == root else names
        if len(names) > 1 and all(names) and below[0] in tops:
            return tuple(below)
    return None


def _is_finite(value: str | int | float) -> bool:
    return not isinstance(value, float) or isfinite(value)


def folded(name: str) -> str:
    """A name without case, blanks and punctuation: equal for names that differ in nothing else."""
    return "".join(char for char in composed(name).casefold() if char.isalnum()) or name


@overload
def unescaped(mark: str) -> str: ...
@overload
def unescaped(mark: str | None) -> str | None: ...


def unescaped(mark: str | None) -> str | None:
    """A separator or delimiter, with the tabs and line ends that are hard to type in a shell."""
    return mark.replace("\\t", "\t").replace("\\n", "\n") if mark is not None else None


def escaped(mark: str) -> str:
    """A mark as it is typed: `unescaped` makes the same of it."""
    return mark.replace("\t", "\\t").replace("\n", "\\n")
