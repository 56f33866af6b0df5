"""What is said of files of a model that are damaged, or do not fit together."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hitin.errors import HitinError, InputError, first_line, printable

AGAIN = "Copy the model again, or train it again."


@contextmanager
def telling(path: Path) -> Iterator[None]:
    """Whatever may go wrong with a file from elsewhere is said with its name."""
    try:
        yield
    except InputError as error:
        if error.file is None:
            error.file = str(path)
        if error.remedy is None:
            error.remedy = AGAIN
        raise
    except HitinError:
        raise
    except Exception as error:  # the tokenizers library raises bare ones
        raise damaged(path, f"this file of the model cannot be used ({reason_of(error)})") from error


def reason_of(error: Exception) -> str:
    """What an error says, in a line; of the system without the file, which is named elsewhere or no one's affair."""
    return getattr(error, "strerror", None) or printable(first_line(error))


def damaged(path: Path, problem: str, remedy: str = AGAIN) -> InputError:
    return InputError(problem, kind="damaged-model", file=str(path), remedy=remedy)
