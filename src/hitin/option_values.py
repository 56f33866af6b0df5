"""Values of options, as they are written and as their types want them."""

import json
import tomllib
from dataclasses import fields
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from hitin.errors import InputError, shown

TOML_ERRORS = (ValueError, RecursionError)
"""What reading TOML raises: of its own, for bytes that are not UTF-8, numbers of thousands of digits, and depth."""


@cache
def types_of(settings: Any) -> dict[str, Any]:
    """The options of a dataclass, with their types."""
    hints = get_type_hints(settings)
    return {each.name: hints[each.name] for each in fields(settings)}


def coerced(name: str, value: object, kind: Any) -> Any:
    """The value as the type wants it; numbers and tuples are forgiven their spelling."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    origin = get_origin(kind)
    if origin in (Union, UnionType):  # or None, which is never given
        return coerced(name, value, get_args(kind)[0])
    if origin is Literal:
        if value in get_args(kind):
            return value
        raise bad_option(f"{name} cannot be {shown(value)}", f"It is one of {', '.join(map(str, get_args(kind)))}.")
    if origin is tuple and isinstance(value, list | tuple):
        return tuple(coerced(name, each, get_args(kind)[0]) for each in value)
    plain = _plain(value, kind)
    if plain is None:
        wanted = _WORDS.get(kind, "a list of whole numbers")
        raise bad_option(f"{name} is {shown(value)}", f"It is {wanted}.")
    return plain


_WORDS = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def _plain(value: object, kind: Any) -> object:
    """A number, truth value or text of this kind; `None` where it is none."""
    if kind is str and isinstance(value, Path):
        value = str(value)
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1e300:
        return float(value)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind not in _WORDS or type(value) is not kind:
        return None
    if isinstance(value, str) and not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        return None  # half a character, which no file can hold
    return value


def parse_option(text: str) -> tuple[str, object]:
    """`name=value` as it stands on a command line: a value of TOML, or else text."""
    name, sign, value = text.partition("=")
    if not sign:
        raise bad_option(f"{shown(text)} sets nothing", "Write it as name=value, for example height=3.")
    try:
        return name.strip(), tomllib.loads(f"value = {value}")["value"]
    except TOML_ERRORS:
        return name.strip(), value.strip()


def toml_value(value: object) -> str:
    """JSON's spelling of text, numbers, booleans and lists is TOML's, but for a sign that JSON leaves unescaped."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def check_choices(settings: Any) -> None:
    """Refuse settings of which one has a value that is not among its choices."""
    known: Any = type(settings)
    for name, kind in types_of(known).items():
        if get_origin(kind) is Literal:
            coerced(name, getattr(settings, name), kind)


def check_counts(settings: Any, *names: str) -> None:
    """Refuse settings of which one of these is below 1."""
    for name in names:
        if getattr(settings, name) < 1:
            raise bad_option(f"{name} is {getattr(settings, name)}", "It is at least 1.")


def check_parts(settings: Any, *names: str) -> None:
    """Refuse settings of which one of these is no part of a whole, as a dropout is."""
    for name in names:
        if not 0 <= getattr(settings, name) < 1:
            raise bad_option(f"{name} is {getattr(settings, name)}", "It is a number from 0 to below 1.")


def bad_option(message: str, remedy: str | None = None) -> InputError:
    return InputError(message, kind="bad-option", remedy=remedy)
