"""A target of the fuzzers: it takes bytes, and must succeed or refuse them with an error that hitin means to give.

The first byte chooses one of the target's ways to be given the rest: under which name, compressed how, read how.
"""

import resource
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random

from hitin.errors import HitinError, InputError, InputWarning
from tests.fuzz.mutations import mutated

SECONDS = 5.0
MEGABYTES = 500
"""What one input may take at most, on a busy machine."""


@dataclass(frozen=True)
class Way:
    """One way to be given bytes, and sound ones."""

    take: Callable[[bytes], object]
    seeds: Sequence[bytes]


@dataclass(frozen=True)
class Target:
    """The ways are made when they are first needed: some train a model."""

    make: Callable[[], list[Way]]
    refusals: Callable[[], tuple[type[Exception], ...]] = field(default=lambda: (HitinError,))

    @property
    def ways(self) -> list[Way]:
        return _made(self.make)

    def seeds(self) -> list[bytes]:
        return [bytes([number]) + seed for number, way in enumerate(self.ways) for seed in way.seeds]

    def made(self, chance: Random) -> bytes:
        """Bytes that are nearly sound."""
        number = chance.randrange(len(self.ways))
        return bytes([number]) + mutated(self.ways[number].seeds, chance)

    def take(self, data: bytes) -> bool:
        """Whether bytes were taken for sound; a failed assertion where they did harm."""
        way = self.ways[data[0] % len(self.ways)] if data else self.ways[0]
        started, before = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InputWarning)
            try:
                way.take(data[1:])
                is_sound = True
            except self.refusals() as error:
                check_told(error)
                is_sound = False
        assert time.process_time() - started < SECONDS
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1024 * MEGABYTES
        return is_sound


@cache
def _made(make: Callable[[], list[Way]]) -> list[Way]:
    return make()


def check_told(error: Exception) -> None:
    """It can be shown to a person."""
    assert str(error).strip()
    if isinstance(error, InputError):
        assert len(error.message) + len(error.remedy or "") < 3000, error.message[:200]
        assert "\n" not in error.message, error.message


def in_file(
    name: str, read: Callable[[Path], object], pack: Callable[[bytes], bytes] = bytes
) -> Callable[[bytes], object]:
    """Bytes as a file of this name, packed first."""

    def take(data: bytes) -> object:
        with tempfile.TemporaryDirectory(prefix="hitin-fuzz-") as folder:
            path = Path(folder, name)
            path.write_bytes(pack(data))
            return read(path)

    return take
