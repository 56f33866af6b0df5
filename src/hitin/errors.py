"""What a user can get wrong, said so that it can be mended: where, what, and the remedy."""

import reprlib
from collections.abc import Callable


class HitinError(Exception):
    """Base of every error that is the user's to mend; the command line shows it without a traceback."""


class InputError(HitinError, ValueError):
    """Something in the input is wrong. `kind` is a short name for programs, `remedy` what to do about it."""

    def __init__(
        self,
        message: str,
        *,
        kind: str = "unreadable",
        file: str | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind
        self.file = file
        self.line = line
        self.remedy = remedy

    @property
    def place(self) -> str:
        return place(self.file, self.line)

    def __str__(self) -> str:
        text = f"{self.place}: {self.message}" if self.place else self.message
        return f"{text}\n{self.remedy}" if self.remedy else text


class MissingExtraError(HitinError, ImportError):
    """A feature was asked for whose optional libraries are not installed."""


class InputWarning(UserWarning):
    """The input was read, but a person should look at it."""


OnError = Callable[[InputError], None]
"""What a reader does with a bad record: raise (the default), or note it and go on with the next one."""


def raise_error(error: InputError) -> None:
    raise error


def place(file: str | None, line: int | None) -> str:
    """`file:line`, `file`, or `document 3` where there is no file."""
    if file:
        return f"{file}:{line}" if line else file
    return f"document {line}" if line else ""


def shown(value: object) -> str:
    """A value as a message shows it: its beginning, in quotes if it is text."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = 60
    short.maxlist = short.maxdict = short.maxtuple = 4
    return short.repr(value)


def printable(text: str, most: int = 160) -> str:
    """Text that does a terminal no harm: control characters escaped, the middle of a long one left out."""
    if len(text) > most:
        text = f"{text[: most // 2]} ... {text[-most // 2 :]}"
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def first_line(error: BaseException) -> str:
    """What a library says of an error, the first line; or its kind, where it says nothing."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def listed(names: list[str] | tuple[str, ...], most: int = 8) -> str:
    """Names in a row, the first few."""
    return ", ".join(printable(name, 40) for name in names[:most]) + (", ..." if len(names) > most else "") or "none"


def counted(count: int, one: str, several: str | None = None) -> str:
    """`1 file`, `2 files`; with words for `several` that take more than an s: `1 vertex has`, `2 vertices have`."""
    return f"{count:,} {one if count == 1 else several or f'{one}s'}"
