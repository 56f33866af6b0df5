"""Mistakes in a command line: what was not given is told with what to write, what is wrong to programs as well."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer

from hitin.console import command, errors_as_json
from hitin.errors import InputError

Given = Mapping[str, Any]
"""What the command line says, by the names of the command's parameters."""


_UsageError: Any = typer.BadParameter.__base__  # for which Typer has no name
_WORDS = "hitin.words"


def keep_words(context: Any, words: Sequence[str]) -> None:
    """Keep the words of the command line: of these Typer has not read all when it finds one that is wrong."""
    context.meta[_WORDS] = tuple(words)


@contextmanager
def telling_mistakes(context: Any) -> Iterator[None]:
    """What is missing, in the words of the house, with the remedy. What is given but wrong is told by Typer."""
    try:
        yield
    except _UsageError as error:
        wants_json = _wants_json(context.command, context.meta.get(_WORDS, ()))
        if hasattr(error, "param_type"):  # which only the error has that says something is missing
            with errors_as_json(wants_json):
                raise _missing(error.param, error.ctx) from error
        with suppress(InputError), errors_as_json(wants_json):
            raise InputError(error.format_message(), kind="bad-option") from error
        raise


def _wants_json(command: Any, words: tuple[str, ...]) -> bool:
    """Whether the command that the words begin with has such an option, which is among them."""
    for word in words:
        if word not in getattr(command, "commands", ()):
            break
        command = command.commands[word]
    options = words[: words.index("--")] if "--" in words else words
    return any(parameter.name == "as_json" and {*parameter.opts} & {*options} for parameter in command.params)


def _missing(parameter: Any, context: Any) -> InputError:
    given, words = context.params, context.command_path.split()[1:]
    if _are_documents(given):
        return _no_taxonomy(words, given)
    if Path(given.get("model") or "").is_file():
        return InputError(
            "this is a file, not the folder of a model",
            kind="missing-argument",
            file=given["model"],
            remedy=f"Name the folder that hitin train wrote, then the file: {command(*words, 'MODEL', given['model'])}",
        )
    return InputError(
        f"{_name(parameter)} is missing. {parameter.help or ''}",
        kind="missing-argument",
        remedy="\n".join([*_example(context), f"{command(*words)} --help tells more.", *_doubt(given)]),
    )


def _are_documents(given: Given) -> bool:
    """Whether the file that stands in the taxonomy's place can be read as labelled documents."""
    from hitin.documents import read_documents

    if not Path(given.get("taxonomy") or "").is_file():
        return False
    keys: Any = {name: given.get(name) for name in ("text_key", "label_key", "encoding")}
    try:
        return next(read_documents(given["taxonomy"], **keys), None) is not None
    except InputError:
        return False


def _no_taxonomy(words: list[str], given: Given) -> InputError:
    """The mistake of those who have documents and have not heard of a taxonomy."""
    from hitin.label_paths import BY_HAND

    file, reading = given["taxonomy"], _said(given, "text_key", "label_key", "encoding", "separator", "label_delimiter")
    return InputError(
        "these are documents; a taxonomy must come before them, which says which label stands under which",
        kind="missing-argument",
        file=file,
        remedy="If labels are paths, such as Device > Battery, make it of them:\n"
        f"  {command('taxonomy', file, '--out', 'taxonomy.tsv', *reading)}\n"
        f"  {command(*words, 'taxonomy.tsv', file, '--out', given.get('out') or 'model', *reading)}\n"
        f"If they are single names, write it: {BY_HAND}.",
    )


def _said(given: Given, *names: str) -> list[str]:
    """Options as they were given."""
    return [word for name in names if given.get(name) for word in (f"--{name.replace('_', '-')}", given[name])]


def _name(parameter: Any) -> str:
    """As people write it: the option's long name, or the argument's in capitals."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name.upper()).removesuffix("...")


def _example(context: Any) -> list[str]:
    """The first of the examples that the command's help ends with."""
    lines = inspect.cleandoc(context.command.help or "").partition("Examples:")[2].split("\n")
    return [f"For example: {line.strip()}" for line in lines if line.strip()][:1]


def _doubt(given: Given) -> list[str]:
    """Documents whose columns have names of their own may stand in the taxonomy's place too."""
    return ["If you have documents and no taxonomy: hitin taxonomy --help"] if given.get("taxonomy") else []
