"""Bytes made from sound ones: a bit flipped, a part cut or put in, a value exchanged for one of another kind."""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

_TOKENS: tuple[bytes, ...] = (
    *(
        b"",
        b"\0",
        b"\n",
        b"\r",
        b"\t",
        b"\xff",
        b"\xfe\xff",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\xed\xa0\x80",
        b"\x1f\x8b",
    ),
    *(
        b'"',
        b"'",
        b"\\",
        b"{",
        b"}",
        b"[",
        b"]",
        b",",
        b";",
        b":",
        b"=",
        b"#",
        b" > ",
        b"/",
        b".",
        b"..",
        b"PK\x03\x04",
    ),
    *(b"null", b"true", b"NaN", b"Infinity", b"-1", b"0", b"1e999", b"-0.0", b"1" * 30, b"9" * 5000, b"2024-01-01"),
    *(b"[" * 50, b'{"a":' * 50, b"[" * 3000, b"Root", b"text", b"label", b"\\ud800", b"\\u0000", b"\xe2\x80\xa8"),
)
_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, 0.5, -0.5, 1e308, float("nan"), float("inf"), "", "Root"),
    *("\ud800", "\0", "a > b", "9" * 40, [], {}, [[]], [None], [1, "a"], {"a": 1}, {"": []}, "x" * 1000),
)


def mutated(seeds: Sequence[bytes], chance: Random) -> bytes:
    """One of the seeds, changed a few times."""
    data = chance.choice(seeds)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        data = chance.choice(_WAYS)(data, seeds, chance)
    return data


def _flipped(data: bytes, _: Sequence[bytes], chance: Random) -> bytes:
    if not data:
        return b"\0"
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def _cut(data: bytes, _: Sequence[bytes], chance: Random) -> bytes:
    start, end = _span(data, chance)
    return data[:start] if chance.random() < 0.3 else data[:start] + data[end:]


def _repeated(data: bytes, _: Sequence[bytes], chance: Random) -> bytes:
    start, end = _span(data, chance)
    return data[:end] + data[start:end] * chance.choice((1, 2, 50)) + data[end:]


def _spliced(data: bytes, seeds: Sequence[bytes], chance: Random) -> bytes:
    other = chance.choice(seeds)
    start, end = _span(data, chance)
    first, last = _span(other, chance)
    return data[:start] + other[first:last] + data[end:]


def _token(data: bytes, _: Sequence[bytes], chance: Random) -> bytes:
    start, end = _span(data, chance)
    return data[:start] + chance.choice(_TOKENS) + data[start if chance.random() < 0.5 else end :]


def _line(data: bytes, _: Sequence[bytes], chance: Random) -> bytes:
    """A line left out, given again or elsewhere; or, of `name = value`, another value."""
    lines = data.split(b"\n")
    line = lines.pop(chance.randrange(len(lines)))
    name, equals, _value = line.partition(b"=")
    if equals and chance.random() < 0.7:
        line = name + b"= " + _plain(chance)
    for _time in range(chance.randrange(3)):
        lines.insert(chance.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def _plain(chance: Random) -> bytes:
    """A value as JSON or TOML may have it."""
    return json.dumps(chance.choice(_VALUES)).encode()


def _value(data: bytes, _: Sequence[bytes], chance: Random) -> bytes:
    """JSON with a value exchanged or left out, at any depth; also that of a line, or at the head of safetensors."""
    lines = data.split(b"\n")
    at = chance.randrange(len(lines))
    for put, part in (
        (lambda new: new, data),
        (lambda new: b"\n".join([*lines[:at], new, *lines[at + 1 :]]), lines[at]),
        (lambda new: _with_header(data, new), _header(data)),
    ):
        try:
            found = json.loads(part)
        except (ValueError, RecursionError):
            continue
        return put(json.dumps(_exchanged(found, chance)).encode())
    return _flipped(data, (), chance)


def _exchanged(found: Any, chance: Random) -> Any:
    inside = list(found) if isinstance(found, dict) else list(range(len(found))) if isinstance(found, list) else []
    if not inside or chance.random() < 0.15:
        return chance.choice(_VALUES)
    key = chance.choice(inside)
    if chance.random() < 0.1:
        found.pop(key)
    elif chance.random() < 0.1 and isinstance(found, dict):
        found[str(chance.choice(_VALUES))] = found[key]
    else:
        found[key] = _exchanged(found[key], chance)
    return found


def _header(data: bytes) -> bytes:
    size = int.from_bytes(data[:8], "little")
    return data[8 : 8 + size] if len(data) > 8 else b""


def _with_header(data: bytes, header: bytes) -> bytes:
    return len(header).to_bytes(8, "little") + header + data[8 + len(_header(data)) :]


def _span(data: bytes, chance: Random) -> tuple[int, int]:
    start = chance.randrange(len(data) + 1)
    return start, min(len(data), start + chance.choice((1, 2, 4, 8, 64, 1024)))


_WAYS: tuple[Callable[[bytes, Sequence[bytes], Random], bytes], ...] = (
    *(_flipped, _cut, _repeated, _spliced, _token, _token),
    *(_line, _line, _value, _value, _value),
)
