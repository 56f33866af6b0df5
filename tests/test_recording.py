"""Steps that are recorded on a GPU and replayed. Without a GPU there is nothing to record."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from hitin.batches import Examples
from hitin.devices import accelerated
from hitin.methods.flat import Flat
from hitin.network import Network
from hitin.neural import NeuralModel
from hitin.settings import Run
from hitin.training.steps import Steps
from tests.training_harness import STEADY, TAXONOMY, TINY, documents, model

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


@contextmanager
def begun(run: Run, notes: list[str]) -> Iterator[tuple[NeuralModel, Steps, Examples]]:
    """A model with its steps on the GPU."""
    built = model(run)
    texts, labels = documents(32)
    ids = [TAXONOMY.closure([TAXONOMY.index(name) for name in names]) for names in labels]
    examples = built.examples(texts, ids).in_multiples(8)
    with accelerated("cuda", run.training) as accelerator:
        steps = Steps(built, examples, None, accelerator, 20, notes.append)
        built.network.train()
        yield built, steps, examples


def losses(run: Run, notes: list[str] | None = None, steps: int = 8) -> tuple[list[float], Network, int]:
    """Of some steps of one or two batches; the network then; and how many shapes were recorded."""
    batches = [np.arange(8), np.arange(8, 16)]
    with begun(run, [] if notes is None else notes) as (built, taken, examples):
        found = [float(taken.take(step, step, examples, batches[: 1 + step % 2])) for step in range(steps)]
        return found, built.network, len(taken.recorder.recordings) if taken.recorder else 0


@needs_gpu
@pytest.mark.parametrize("options", [{}, {"method": "flat"}, {"pooling": "max"}, {"height": 3}])
def test_replayed_steps_learn_what_computed_ones_learn(options: dict[str, Any]) -> None:
    steady = {name: value for name, value in (TINY | STEADY).items() if not (options and name in ("width", "norm"))}
    kept = {"leaf_dropout"} if "method" in options else set()
    run = Run.of(**{name: value for name, value in steady.items() if name not in kept} | options, precision="fp32")
    recorded, network, shapes = losses(run)
    computed, expected, none = losses(run.with_training(record=False))
    assert shapes > 0
    assert none == 0
    assert recorded == pytest.approx(computed, rel=1e-4)
    for name, weight in network.named_parameters():
        assert torch.allclose(weight, expected.get_parameter(name), atol=1e-4), name


@needs_gpu
def test_dropout_is_another_one_at_every_replay() -> None:
    run = Run.of(**TINY | {"learning_rate": 1e-12, "precision": "fp32"})
    with begun(run, []) as (_, steps, examples):
        found = [float(steps.take(step, step, examples, [np.arange(8)])) for step in range(8)]
        assert len({round(loss, 5) for loss in found[3:]}) == 5
        again = [float(steps.take(step, step, examples, [np.arange(8)])) for step in range(3, 8)]
        assert again == pytest.approx(found[3:], rel=1e-4)  # chance comes from the number of the batch


@needs_gpu
def test_a_recorded_step_never_waits_for_the_gpu() -> None:
    with begun(Run.of(**TINY), []) as (_, steps, examples):
        pinned = [examples.batch(np.arange(8)).pinned() for _ in range(6)]

        class Ready:
            def batch(self, rows: Any) -> Any:  # noqa: ARG002
                return pinned.pop()

        for step in range(3):
            steps.take(step, step, Ready(), [np.arange(8)])
        torch.cuda.set_sync_debug_mode("error")
        try:
            for step in range(3, 6):
                steps.take(step, step, Ready(), [np.arange(8)])
        finally:
            torch.cuda.set_sync_debug_mode("default")


@needs_gpu
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_recorded_is_computed_as_usual(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Flat.forward

    def looking(self: Flat, text: Any) -> torch.Tensor:
        float(text.vector.sum())  # a look at a number, for which the GPU would have to be waited for
        return usual(self, text)

    options = {name: value for name, value in TINY.items() if name != "width"} | {"method": "flat", "dropout": 0.0}
    run = Run.of(**options, embedding_dropout=0, token_dropout=0, precision="fp32")
    expected, _, _ = losses(run.with_training(record=False))
    monkeypatch.setattr(Flat, "forward", looking)
    notes: list[str] = []
    found, _, shapes = losses(run, notes)
    assert shapes == 0
    assert len(notes) == 1
    assert "not recorded" in notes[0]
    assert found == pytest.approx(expected, rel=1e-4)
