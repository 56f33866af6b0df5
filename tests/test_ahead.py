"""Work done ahead by threads: the same values, errors where they belong, and nothing left running."""

import threading
import time
from collections.abc import Generator, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin.ahead import Workers


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = threading.active_count()
    yield
    assert threading.active_count() == before


def values(count: int, closed: list[bool] | None = None) -> Generator[int]:
    try:
        yield from range(count)
    finally:
        if closed is not None:
            closed.append(True)


@given(st.integers(0, 30), st.integers(1, 4), st.integers(1, 3))
def test_values_come_in_order_through_any_number_of_threads(count: int, most: int, stages: int) -> None:
    with Workers() as workers:
        found: Iterator[int] = values(count)
        for _ in range(stages):
            found = workers.ahead((value + 1 for value in found), most=most)
        assert list(found) == [value + stages for value in range(count)]


def test_what_goes_wrong_is_raised_after_what_went_right() -> None:
    def failing() -> Generator[int]:
        yield from (1, 2)
        raise ValueError("the third")

    found = []
    with Workers() as workers, pytest.raises(ValueError, match="the third"):  # noqa: PT012
        for value in workers.ahead(value * 2 for value in workers.ahead(failing())):
            found.append(value)  # noqa: PERF402
    assert found == [2, 4]


def test_no_more_is_made_than_was_said() -> None:
    made: list[int] = []

    def counting() -> Generator[int]:
        for value in range(100):
            made.append(value)
            yield value

    with Workers() as workers:
        found = workers.ahead(counting(), most=2)
        assert next(found) == 0
        time.sleep(0.05)
        assert len(made) <= 4  # one taken, two that wait, one at the door


def test_whoever_leaves_early_leaves_nothing_open() -> None:
    closed: list[bool] = []
    with Workers() as workers:
        found = workers.ahead(value for value in workers.ahead(values(1000, closed)))
        assert next(found) == 0
    assert closed == [True]


def test_long_work_ends_where_it_tells_how_far_it_is() -> None:
    started = threading.Event()

    def endless(workers: Workers) -> Generator[int]:
        for value in iter(int, 1):  # endlessly 0
            started.set()
            time.sleep(0.01)
            workers.check(1)
            if value:
                yield value

    begun = time.monotonic()
    with Workers() as workers:
        workers.ahead(endless(workers))
        started.wait()
    assert time.monotonic() - begun < 4


def test_a_thread_that_waits_for_someone_else_is_left() -> None:
    forever = threading.Event()

    def waiting() -> Generator[int]:
        forever.wait()
        yield 0

    begun = time.monotonic()
    with Workers() as workers:
        workers.ahead(waiting(), patience=0.05)
    assert time.monotonic() - begun < 4
    forever.set()
    time.sleep(0.1)
