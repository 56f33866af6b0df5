"""Readers refuse what they cannot read with an error of hitin's own, in a moment and in little memory."""

import json
import os
import time
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.fuzz.target import Target
from tests.fuzz.targets import CORPUS, TARGETS

SECONDS = 60
_EXAMPLES = {"transformer": 10, "model": 60, "export": 30, "checkpoint": 100, "taxonomy": 150, "documents": 150}

_KEYS = st.sampled_from(
    ["A", "B", "text", "label", "labels", "parents", "children", "name", "policy", "threshold", "k"]
)
_LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), _KEYS)
STRUCTURED = st.recursive(
    _LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=12
).map(lambda value: json.dumps(value).encode())
"""JSON of any shape, with the keys that readers know."""


def tried(name: str, data: bytes) -> bool:
    """Whether bytes were taken for sound; what does harm is told as hex, and kept when that is wished."""
    try:
        return TARGETS[name].take(data)
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__module__ not in ("builtins", "_pytest.outcomes"):
            _keep(name, data)
            error.add_note(f"{name}: {data.hex()}"[:4000])
        raise


def _keep(name: str, data: bytes) -> None:
    if os.environ.get("HITIN_FUZZ_KEEP"):
        path = CORPUS / name / sha256(data).hexdigest()[:12]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


@pytest.mark.parametrize("name", TARGETS)
def test_sound_files_are_read(name: str) -> None:
    for seed in TARGETS[name].seeds():
        assert tried(name, seed) or _is_no_seed(TARGETS[name], seed), seed[:200]


def _is_no_seed(target: Target, seed: bytes) -> bool:
    """Some ways are given what is sound for others."""
    return len(target.ways[seed[0]].seeds) > 1


@pytest.mark.parametrize(
    "path",
    sorted(path for path in CORPUS.rglob("*") if path.is_file()),
    ids=lambda path: f"{path.parent.name}-{path.name}",
)
def test_what_was_once_found_does_no_harm_any_more(path: Path) -> None:
    tried(path.parent.name, path.read_bytes())


@pytest.mark.parametrize("name", TARGETS)
def test_readers_refuse_what_is_nearly_sound(name: str) -> None:
    target = TARGETS[name]
    target.ways  # noqa: B018  # made once, and not counted as slow

    @settings(
        max_examples=_EXAMPLES.get(name, 200),
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.randoms(use_true_random=True), st.one_of(st.binary(max_size=40), STRUCTURED), st.integers(0, 4))
    def readers_refuse(chance: Random, other: bytes, kind: int) -> None:
        tried(name, target.made(chance) if kind else bytes([chance.randrange(len(target.ways))]) + other)

    readers_refuse()


@pytest.mark.slow
@pytest.mark.timeout(10 * SECONDS)
@pytest.mark.parametrize("name", TARGETS)
def test_readers_refuse_what_is_nearly_sound_for_a_minute(name: str) -> None:
    seed = int(os.environ.get("HITIN_FUZZ_SEED", "0")) or time.time_ns()
    chance, end = Random(seed), time.monotonic() + SECONDS
    inputs = sound = 0
    while time.monotonic() < end:
        inputs += 1
        sound += tried(name, TARGETS[name].made(chance))
    assert inputs > 50
    assert 0 < sound < inputs, f"of {inputs:,} inputs {sound:,} were taken for sound (HITIN_FUZZ_SEED={seed})"
