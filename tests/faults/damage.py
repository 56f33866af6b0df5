"""Files as a bad disk or a broken copy leaves them."""

import random
from collections.abc import Iterator


def flipped(data: bytes, chance: random.Random) -> bytes:
    """With one bit the other way."""
    at = chance.randrange(len(data))
    return data[:at] + bytes([data[at] ^ (1 << chance.randrange(8))]) + data[at + 1 :]


def damages(data: bytes, chance: random.Random, flips: int) -> Iterator[bytes]:
    """Bits flipped anywhere and at both ends, and the file cut short at every kind of place."""
    places = {0, 1, 8, len(data) // 2, len(data) - 1}
    yield from (data[:place] for place in sorted(places) if place < len(data))
    yield data + b"\0"
    yield from (flipped(data, chance) for _ in range(flips))
    yield bytes([data[0] ^ 1]) + data[1:]
    yield data[:-1] + bytes([data[-1] ^ 0x80])
