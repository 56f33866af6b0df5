"""What training leaves of the program around it: its random numbers, its modes of torch, its signals, its threads."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import pytest
import torch
from accelerate.state import AcceleratorState, GradientState, PartialState

from hitin import HierarchicalTextClassifier
from hitin.watcher import Watcher
from tests.training_harness import TAXONOMY, are_equal, classifier, documents, fitted, weights

TEXTS, NAMES = documents(40)


def test_trainings_in_threads_come_to_what_they_come_to_alone() -> None:
    def trained(seed: int) -> HierarchicalTextClassifier:
        return classifier(epochs=2, seed=seed).fit(TEXTS, NAMES)

    before = torch.get_rng_state()
    alone = list(map(trained, range(3)))
    with ThreadPoolExecutor(3) as threads:
        together = list(threads.map(trained, range(3)))
    for one, other in zip(alone, together, strict=True):
        assert are_equal(weights(one), weights(other))
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(state._shared_state for state in (PartialState, AcceleratorState, GradientState))


@contextmanager
def _in_double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    try:
        yield
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode, _in_double])
def test_training_does_not_see_the_modes_of_torch_around_it(mode: Callable[[], AbstractContextManager[None]]) -> None:
    usual = fitted(40, epochs=1)
    with mode():
        found = fitted(40, epochs=1)
    assert are_equal(weights(usual), weights(found))


def test_a_linear_model_takes_no_random_numbers_of_the_program() -> None:
    np.random.seed(1)
    before = np.random.get_state(legacy=False)
    HierarchicalTextClassifier(TAXONOMY, method="linear").fit(TEXTS, NAMES)
    after = np.random.get_state(legacy=False)
    assert before["state"]["pos"] == after["state"]["pos"]
    assert np.array_equal(before["state"]["key"], after["state"]["key"])


class _Signalled(Watcher):
    """Sends a signal to this process after the first epoch."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def epoch(self, record: dict[str, float], is_best: bool) -> None:  # noqa: ARG002
        if record["epoch"] == 1:
            os.kill(os.getpid(), self.number)


@contextmanager
def _handled(number: signal.Signals, handler: Callable[..., object] | signal.Handlers) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
        assert signal.getsignal(number) is handler
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_the_program_ignores_ends_no_training(number: signal.Signals) -> None:
    with _handled(number, signal.SIG_IGN):
        found = classifier(epochs=2).fit(TEXTS, NAMES, watcher=_Signalled(number))
    assert len(found.history_.epochs) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_the_program_handles_reaches_it_at_once(number: signal.Signals) -> None:
    came: list[str] = []
    with _handled(number, lambda *_: came.append(threading.current_thread().name)):
        found = classifier(epochs=2).fit(TEXTS, NAMES, watcher=_Signalled(number))
    assert came == ["MainThread"]
    assert len(found.history_.epochs) == 2
