"""Moments at which a run is disturbed, beside those of `tests.training_harness`."""

from pathlib import Path

from tests.training_harness import Moment


def then(first: Moment, second: Moment) -> Moment:
    """A moment that is looked for only when another has come."""
    seen: list[bool] = []

    def has_come(folder: Path) -> bool:
        seen[:] = seen or ([True] if first(folder) else [])
        return bool(seen) and second(folder)

    return has_come
