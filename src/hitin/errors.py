"""What a user can get wrong, said so that it can be mended: where, what, and the remedy."""

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
        """`file:line`, `file`, or nothing when the input was not a file."""
        parts = [part for part in (self.file, str(self.line) if self.line else None) if part]
        return ":".join(parts)

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
