"""Writes the pages of the reference that are made of the code: `python docs/write_reference.py`.

`commands.md` has what `--help` says, `settings.md` the dataclasses of a run with their docstrings. A test compares.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, fields
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer
from typer.main import get_command

from hitin import cli
from hitin.decisions.settings import DecisionSettings
from hitin.encoders.bag import BagSettings
from hitin.encoders.textrcnn import TextRCNNSettings
from hitin.encoders.tfidf import TfidfSettings
from hitin.encoders.transformer import TransformerSettings
from hitin.losses import LossSettings
from hitin.methods import METHODS
from hitin.option_values import toml_value
from hitin.settings import TrainingSettings, presets

HERE = Path(__file__).resolve().parent
MADE = "<!-- Made by docs/write_reference.py; change the code and run it again. -->"
ENCODERS: dict[str, Any] = {
    "textrcnn": TextRCNNSettings,
    "bag": BagSettings,
    "a transformer": TransformerSettings,
    "tfidf, of linear": TfidfSettings,
}


def pages() -> dict[Path, str]:
    """Each page that is made, by its file."""
    return {HERE / "commands.md": _page(_commands()), HERE / "settings.md": _page(_settings())}


def _page(lines: Iterator[str]) -> str:
    return "\n".join([MADE, "", *lines]).rstrip() + "\n"


# Commands.


def _commands() -> Iterator[str]:
    yield "# Commands"
    yield ""
    yield "What `hitin COMMAND --help` says. [Files, JSON and Python](reference.md) has what each prints and writes."
    for name, command, function in _declared(cli.app, get_command(cli.app), "hitin"):
        yield from _command(name, command, function)


def _declared(app: typer.Typer, built: Any, above: str) -> Iterator[tuple[str, Any, Any]]:
    """The commands of an app as they are called, those of its groups after them, with the functions behind them."""
    for each in app.registered_commands:
        if each.callback:
            name = each.name or each.callback.__name__.replace("_", "-")
            yield f"{above} {name}", built.commands[name], each.callback
    for group in app.registered_groups:
        if group.typer_instance and group.name:
            yield from _declared(group.typer_instance, built.commands[group.name], f"{above} {group.name}")


def _command(name: str, command: Any, function: Any) -> Iterator[str]:
    arguments = [each for each in command.params if not each.opts[0].startswith("-")]
    options = [each for each in command.params if each.opts[0].startswith("-") and each.name != "help"]
    hints = get_type_hints(function)
    words = " ".join(
        [name, *(_argument(each) for each in arguments), *(f"{_long(each)} ..." for each in _needed(options))]
    )
    yield from ("", f"## `{words}`", "")
    bar = r"\|"  # in a table
    about, _, examples = (inspect.getdoc(function) or "").partition("Examples:")
    yield about.strip()
    yield from ("", "| argument or option | usual | |", "|---|---|---|")
    for each in arguments:
        yield f"| `{_argument(each).replace('|', bar)}` | | {_cell(each.help)} |"
    for each in options:
        names = ", ".join(f"`{option}`" for option in (*each.opts, *each.secondary_opts))
        yield f"| {names} | {_usual(each)} | {_cell(each.help, _choices(hints.get(each.name)))} |"
    yield from ("", "```text", textwrap.dedent(examples).strip(), "```")


def _needed(options: list[Any]) -> list[Any]:
    return [each for each in options if each.required]


def _argument(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    name = f"{name} ..." if parameter.nargs == -1 and not name.endswith("...") else name
    return name if parameter.required else f"[{name}]"


def _long(parameter: Any) -> str:
    return next(str(each) for each in parameter.opts if each.startswith("--"))


def _usual(parameter: Any) -> str:
    value = parameter.default
    value = value.value if isinstance(value, Enum) else value
    if isinstance(value, bool) or not isinstance(value, str | int | float) or value == "":
        return ""
    return f"`{value}`".replace("|", "\\|")  # which would end the cell


def _choices(hint: Any) -> str:
    """The values of an option that has a few."""
    kinds = [kind for kind in (hint, *get_args(hint)) if isinstance(kind, type) and issubclass(kind, Enum)]
    return f"One of {', '.join(f'`{each.value}`' for each in kinds[0])}." if kinds else ""


# Settings.


def _settings() -> Iterator[str]:
    yield "# Settings"
    yield ""
    yield (
        "Every setting of a run, as `--set NAME=VALUE` of `hitin train`, in a file for `--preset`, or by name in\n"
        "Python. [Training](training.md#settings) says how to give them, [Methods](methods.md) what is computed."
    )
    yield ""
    yield f"Presets that come with `hitin`: {', '.join(f'`{name}`' for name in presets())}."
    for name, settings in ENCODERS.items():
        yield from _section("encoder", name, settings)
        yield from _suits(settings.usual())
    for name, method in METHODS.items():
        yield from _section("method", name, method.settings)
    for section, settings in (("loss", LossSettings), ("training", TrainingSettings), ("decisions", DecisionSettings)):
        yield from _section(section, "", settings)


def _section(section: str, name: str, settings: Any) -> Iterator[str]:
    yield from ("", f"## `[{section}]`{f': {name}' if name else ''}", "")
    about = inspect.cleandoc(settings.__doc__ or "")
    if not about.startswith(f"{settings.__name__}("):  # what dataclass writes where there is none
        yield from (about, "")
    yield from ("| setting | usual | |", "|---|---|---|")
    docs, hints = _field_docs(settings), get_type_hints(settings)
    for each in fields(settings):
        value = each.default if each.default is not MISSING else None
        usual = "" if value is None or value == "" else f"`{toml_value(value)}`"
        yield f"| `{each.name}` | {usual} | {_cell(docs.get(each.name), _literals(hints[each.name]))} |"


def _suits(usual: dict[str, object]) -> Iterator[str]:
    """What else is usual with an encoder."""
    if usual:
        values = ", ".join(f"`{name} = {toml_value(value)}`" for name, value in usual.items())
        yield from ("", f"With it, a run has {values}, unless said otherwise.")


def _field_docs(settings: Any) -> dict[str, str]:
    """The docstring below each field."""
    body = ast.parse(textwrap.dedent(inspect.getsource(settings))).body[0].body  # type: ignore[attr-defined]
    found = {}
    for field, after in pairwise(body):
        is_text = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and is_text:
            found[field.target.id] = inspect.cleandoc(str(after.value.value))
    return found


def _literals(hint: Any) -> str:
    """The values of a setting that has a few."""
    kinds = [kind for kind in (hint, *get_args(hint)) if get_origin(kind) is Literal]
    return f"One of {', '.join(f'`{value}`' for value in get_args(kinds[0]) if value)}." if kinds else ""


def _cell(*texts: str | None) -> str:
    """On one line of a table."""
    return " ".join(word for text in texts for word in (text or "").split()).replace("|", r"\|")


if __name__ == "__main__":
    for file, text in pages().items():
        file.write_text(text, encoding="utf-8")
