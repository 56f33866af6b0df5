"""Arguments and options that a command needs and was not given: what they are, and what to write."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

from hitin.console import command, errors_as_json
from hitin.errors import InputError

Given = Mapping[str, Any]
"""What the command line says, by the names of the command's parameters."""


@contextmanager
def telling_what_is_missing() -> Iterator[None]:
    """In the words of the house, with the remedy. What is given but wrong is told by Typer."""
    try:
        yield
    except typer.BadParameter as error:
        if not hasattr(error, "param_type"):  # which only the error has that says something is missing
            raise
        context: Any = error.ctx
        with errors_as_json(context.params.get("as_json", False)):
            raise _missing(error.param, context) from error


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
