"""What the verbs say on standard error and standard output: signs of life, warnings, errors for programs."""

import json
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from hitin.errors import HitinError, printable
from hitin.files import FileProgress

CANNOT_BE_READ = 2
INTERRUPTED = 130


def person_watches() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def say(message: str) -> None:
    """A line on standard error."""
    typer.echo(printable(message, most=1000), err=True)


def warn(messages: Iterable[str]) -> None:
    for message in messages:
        say(f"warning: {message}")


def command(*words: object) -> str:
    """A `hitin` command for people to copy."""
    return f"{_program()} {shlex.join(map(str, words))}"


def _program() -> str:
    """What to type for `hitin`: as it was called, where its name alone would not find it, as after `make demo`."""
    called = Path(sys.argv[0])
    if called.stem != "hitin" or not called.is_file() or shutil.which("hitin"):
        return "hitin"
    here = Path.cwd()
    return shlex.quote(str(called.relative_to(here) if called.is_relative_to(here) else called))


@contextmanager
def errors_as_json(wanted: bool, **fields: object) -> Iterator[None]:
    """What is wrong with the input, for programs too, in the form of the doctor's problems."""
    try:
        yield
    except HitinError as error:
        if wanted:
            from hitin.doctor.facts import problem_to_json
            from hitin.doctor.problems import Problems

            problems = Problems()
            problems.add_error(error)
            report = {"exit_code": CANNOT_BE_READ, **fields, "problems": [*map(problem_to_json, problems)]}
            typer.echo(json.dumps(report, indent=2))
        raise


@contextmanager
def busy(what: str) -> Iterator[None]:
    """A sign of life on standard error, when a person watches."""
    if not person_watches():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def file_progress(wanted: bool = True) -> Iterator[FileProgress | None]:
    """A bar with the time left on standard error, when a person watches."""
    if not wanted or not person_watches():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, Any] = {}

        def advance(name: str, done: int, size: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(printable(Path(name).name), total=size or None)
            bars.update(tasks[name], completed=done)

        yield advance


def print_tables(*tables: Any) -> None:
    """Tables on standard output; a terminal may be too narrow for them, but no word or number is cut."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(highlight=False)
    wide = console.options.update(max_width=10_000)
    console.width = max(console.width, *(Measurement.get(console, wide, table).minimum for table in tables))
    with console.capture() as capture:
        for table in tables:
            console.print(table)
    typer.echo(capture.get(), nl=False)
