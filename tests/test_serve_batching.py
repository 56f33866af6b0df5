"""Texts of many who ask are computed together, each gets its own, in order."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from hitin.serve.batching import Batcher, Closed, Computing, QueueFull, Unbatched

Logits = NDArray[np.float32]


def scores(texts: Sequence[str]) -> Logits:
    """A row of two numbers that tell which text it is."""
    return np.array([[len(text), sum(map(ord, text))] for text in texts], dtype=np.float32)


class Held:
    """Computes only while the gate is open, and keeps what it was given."""

    def __init__(self) -> None:
        self.gate, self.begun = threading.Event(), threading.Event()
        self.batches: list[list[str]] = []

    def __call__(self, texts: Sequence[str]) -> Logits:
        self.batches.append(list(texts))
        self.begun.set()
        assert self.gate.wait(20)
        if "wrong" in texts:
            raise ValueError("wrong")
        return scores(texts)


@pytest.fixture
def held() -> Iterator[Held]:
    found = Held()
    yield found
    found.gate.set()


def begun(batcher: Computing, held: Held, *texts: str) -> "Future[Logits]":
    """A request that is being computed."""
    answer = batcher.submit(texts or ["first"])
    assert held.begun.wait(20)
    return answer


def test_those_who_wait_are_computed_together(held: Held) -> None:
    batcher = Batcher(held, most=64, queue=100)
    answers = [begun(batcher, held), *(batcher.submit([f"text {row}"]) for row in range(10))]
    held.gate.set()
    assert [answer.result(20).tolist() for answer in answers[1:]] == [
        scores([f"text {row}"]).tolist() for row in range(10)
    ]
    assert [len(batch) for batch in held.batches] == [1, 10]
    batcher.close()


def test_a_batch_is_no_larger_than_it_may_be_and_others_have_their_turn(held: Held) -> None:
    sizes: list[int] = []
    batcher = Batcher(held, most=4, queue=100, told=sizes.append)
    many = [f"many {row}" for row in range(10)]
    first, large, small = begun(batcher, held), batcher.submit(many), batcher.submit(["small"])
    held.gate.set()
    assert (large.result(20) == scores(many)).all()
    assert (small.result(20) == scores(["small"])).all()
    assert first.done()
    assert sizes == [len(batch) for batch in held.batches] == [1, 4, 4, 3]
    assert held.batches[2] == ["small", *many[4:7]], "the small one waits for one part of the large one alone"
    batcher.close()


@given(st.lists(st.lists(st.text(max_size=5), min_size=1, max_size=9), max_size=30), st.integers(1, 7))
def test_each_gets_the_rows_of_its_own_texts(requests: list[list[str]], most: int) -> None:
    batcher = Batcher(scores, most=most, queue=1000)
    answers = [batcher.submit(texts) for texts in requests]
    for texts, answer in zip(requests, answers, strict=True):
        assert (answer.result(20) == scores(texts)).all()
    batcher.close()
    assert batcher.waiting == 0


def test_many_threads_get_their_own() -> None:
    batcher = Batcher(scores, most=8, queue=10_000)
    wrong: list[str] = []

    def ask(thread: int) -> None:
        for row in range(50):
            texts = [f"{thread} {row} {place}" for place in range(row % 4 + 1)]
            if not (batcher.submit(texts).result(20) == scores(texts)).all():
                wrong.append(texts[0])

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    batcher.close()
    assert not wrong


def computings(queue: int) -> dict[str, Callable[[Held], Computing]]:
    return {
        "batched": lambda held: Batcher(held, most=64, queue=queue),
        "unbatched": lambda held: Unbatched(held, queue=queue + 1, threads=1),  # the one at work counts there
    }


@pytest.mark.parametrize("kind", ["batched", "unbatched"])
def test_a_full_queue_is_told(kind: str, held: Held) -> None:
    computing = computings(queue=3)[kind](held)
    answers = [begun(computing, held), computing.submit(["a", "b"])]
    with pytest.raises(QueueFull):
        computing.submit(["c", "d"])
    answers.append(computing.submit(["e"]))
    held.gate.set()
    wait(answers, 20)
    assert (computing.submit([str(row) for row in range(50)]).result(20)[:, 0] >= 1).all(), "alone, any number is taken"
    computing.close()


@pytest.mark.parametrize("kind", ["batched", "unbatched"])
def test_what_no_one_wants_any_more_is_not_computed(kind: str, held: Held) -> None:
    computing = computings(queue=100)[kind](held)
    first, gone, other = begun(computing, held), computing.submit(["gone"]), computing.submit(["other"])
    assert gone.cancel()
    held.gate.set()
    assert (other.result(20) == scores(["other"])).all()
    assert first.done()
    assert "gone" not in [text for batch in held.batches for text in batch]
    computing.close()
    assert computing.waiting == 0


def test_the_rest_of_a_large_request_is_dropped_when_its_client_goes(held: Held) -> None:
    batcher = Batcher(held, most=2, queue=100)
    large = begun(batcher, held, *(f"large {row}" for row in range(10)))
    assert large.cancel()
    held.gate.set()
    assert (batcher.submit(["next"]).result(20) == scores(["next"])).all()
    assert held.batches == [["large 0", "large 1"], ["next"]]
    batcher.close()


def test_an_error_comes_to_the_request_alone_whose_text_it_is(held: Held) -> None:
    batcher = Batcher(held, most=64, queue=100)
    begun(batcher, held)
    one, bad, other = (batcher.submit(texts) for texts in (["one"], ["a", "wrong"], ["two", "three"]))
    held.gate.set()
    assert (one.result(20) == scores(["one"])).all()
    assert (other.result(20) == scores(["two", "three"])).all()
    with pytest.raises(ValueError, match="wrong"):
        bad.result(20)
    assert ["one", "a", "wrong", "two", "three"] in held.batches, "they were one batch"
    batcher.close()


def test_the_rest_of_a_request_that_goes_wrong_is_not_computed(held: Held) -> None:
    batcher = Batcher(held, most=2, queue=100)
    first, bad, after = begun(batcher, held), batcher.submit(["wrong", "a", "b"]), batcher.submit(["good"])
    held.gate.set()
    with pytest.raises(ValueError, match="wrong"):
        bad.result(20)
    assert (after.result(20) == scores(["good"])).all()
    assert first.done()
    assert ["b"] not in held.batches, "the rest of it is not computed"
    batcher.close()
    assert batcher.waiting == 0


def test_an_answer_that_there_is_no_room_for_ends_nothing_else(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of the one that is computed twice, since another of its batch failed, are not taken twice."""
    joined = np.concatenate

    def concatenate(parts: Sequence[Logits]) -> Logits:
        whole = joined(parts)
        if len(whole) == 3:
            raise MemoryError
        return whole

    monkeypatch.setattr(np, "concatenate", concatenate)
    batcher = Batcher(held, most=4, queue=100)
    begun(batcher, held)
    one, large, parted = batcher.submit(["one"]), batcher.submit(["a", "b", "c"]), batcher.submit(["d"] * 5)
    held.gate.set()
    assert (one.result(20) == scores(["one"])).all()
    with pytest.raises(MemoryError):
        large.result(20)
    assert (parted.result(20) == scores(["d"] * 5)).all()
    assert len(batcher.submit(["after"]).result(20)) == 1
    batcher.close()


@pytest.mark.parametrize("kind", ["batched", "unbatched"])
def test_closing_answers_what_was_taken_and_takes_no_more(kind: str, held: Held) -> None:
    computing = computings(queue=100)[kind](held)
    answers = [begun(computing, held), computing.submit(["second"])]
    closing = threading.Thread(target=computing.close)
    closing.start()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        try:
            answers.append(computing.submit(["late"]))
        except Closed:
            break
        except QueueFull:  # before the other thread came to close it
            time.sleep(0.001)
    else:
        pytest.fail("it still takes requests")
    held.gate.set()
    closing.join(20)
    assert all(answer.done() for answer in answers)
