"""Training: the same weights from the same seed, the steps it takes, which epoch it keeps."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from numpy.typing import NDArray
from torch import Tensor

from hitin.batches import Batch, Examples
from hitin.model_folder import TRAINING
from hitin.network import Network
from hitin.neural import NeuralModel
from hitin.settings import Run, TrainingSettings
from hitin.tensor_files import load_tensors
from hitin.training.kept_weights import best_path
from hitin.training.loop import train
from hitin.training.optimisation import build_optimiser, learning_rate_factor
from hitin.training.progress import Progress
from hitin.training.recording import Recorder
from hitin.training.steps import Steps
from hitin.watcher import Watcher
from tests.training_harness import (
    BERT,
    STEADY,
    TAXONOMY,
    TINY,
    are_equal,
    classifier,
    documents,
    fitted,
    log_lines,
    model,
    network_of,
    saved_weights,
    tiny_bert,
    train_into,
    train_together,
    weights,
)

# One seed, one result.


def test_the_same_seed_gives_the_same_weights_whatever_random_numbers_were_drawn_before() -> None:
    first = weights(fitted())
    torch.manual_seed(99)
    torch.rand(7)
    np.random.seed(5)
    assert are_equal(weights(fitted()), first)
    assert not are_equal(weights(fitted(seed=1)), first)


def test_the_callers_random_numbers_go_on_as_if_nothing_had_been(tmp_path: Path) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    trained = fitted(val=10)
    assert torch.equal(torch.get_rng_state(), before)
    trained.save(tmp_path / "model")
    trained.load(tmp_path / "model", device="cpu").predict(["bark"])
    assert torch.equal(torch.get_rng_state(), before)


def test_the_callers_own_work_with_accelerate_is_left_alone() -> None:
    AcceleratorState._reset_state(reset_partial_state=True)
    own = Accelerator(cpu=True, mixed_precision="bf16")
    fitted(precision="fp32")
    fitted(precision="bf16")
    assert own.mixed_precision == "bf16"
    assert Accelerator(cpu=True).mixed_precision == "bf16"
    AcceleratorState._reset_state(reset_partial_state=True)


def test_training_leaves_nothing_of_accelerate_in_the_network() -> None:
    """Or a model would answer in another precision than the same one after it was saved and loaded."""
    network = network_of(fitted(precision="bf16"))
    assert "forward" not in vars(network)
    assert not any("accelerate" in name or "original" in name for name in vars(network))


# Steps.


Take = Callable[..., Tensor]


def steps_of(run: Run, count: int = 32) -> tuple[NeuralModel, Steps, Take]:
    """A model, its steps, and how to take one from batches of documents."""
    AcceleratorState._reset_state(reset_partial_state=True)
    built = model(run)
    texts, labels = documents(count)
    ids = [TAXONOMY.closure([TAXONOMY.index(name) for name in names]) for names in labels]
    built.network.train()
    examples = built.examples(texts, ids)
    steps = Steps(built, examples, None, Accelerator(cpu=True), 10)
    return built, steps, lambda step, group: steps.take(step, 4 * step, examples, group)


@pytest.mark.parametrize("loss", ["bce", "asymmetric"])
def test_four_batches_of_8_are_one_of_32(loss: str) -> None:
    run = Run.of(**TINY | STEADY, loss=loss, regularisation=1e-2)
    (small, _, by_eights), (large, _, at_once) = steps_of(run), steps_of(run)
    rows = np.random.default_rng(0).permutation(32)
    for step in range(3):
        summed = by_eights(step, np.split(rows, 4))
        assert float(summed) == pytest.approx(float(at_once(step, [rows])), rel=1e-5)
    for name, weight in small.network.named_parameters():
        assert torch.allclose(weight, large.network.get_parameter(name), atol=1e-6), name


def test_batches_of_unequal_size_count_by_their_documents() -> None:
    run = Run.of(**TINY | STEADY)
    (small, _, in_parts), (large, _, at_once) = steps_of(run), steps_of(run)
    rows = np.arange(32)
    in_parts(0, [rows[:3], rows[3:7], rows[7:]])
    at_once(0, [rows])
    for name, weight in small.network.named_parameters():
        assert torch.allclose(weight, large.network.get_parameter(name), atol=1e-6), name


def test_a_gradient_is_no_longer_than_it_may_be() -> None:
    def longest(clip: float) -> float:
        built, steps, take = steps_of(Run.of(**TINY | STEADY, gradient_clip=clip))
        seen: list[float] = []
        steps.optimiser.register_step_post_hook(lambda *_: seen.append(_length(built.network)))
        take(0, [np.arange(32)])
        return seen[0]

    free = longest(0)
    assert free > 0.01
    assert longest(0.01) == pytest.approx(0.01, rel=1e-4)
    assert longest(10 * free) == pytest.approx(free)


def _length(network: Network) -> float:
    return math.sqrt(
        sum(float(weight.grad.square().sum()) for weight in network.parameters() if weight.grad is not None)
    )


def test_parts_of_the_network_have_their_rates_and_decays(tmp_path: Path) -> None:
    options = {"learning_rate": 1e-3, "encoder_learning_rate": 1e-4, "layer_decay": 0.5, "weight_decay": 0.3}
    run = Run.of(encoder=tiny_bert(tmp_path / "bert"), **BERT | options)
    network = NeuralModel.build(TAXONOMY, run, ["bark"]).network
    found = {
        parameter: (group["full_rate"], group["weight_decay"])
        for group in build_optimiser(network, run.training).param_groups
        for parameter in group["params"]
    }
    assert len(found) == len(list(network.parameters()))
    depths = {"embeddings": 2, "layer.0": 1, "layer.1": 0}
    for name, parameter in network.named_parameters():
        rate = 1e-3
        if name.startswith("encoder."):
            rate = 1e-4 * 0.5 ** next(depth for part, depth in depths.items() if part in name)
        is_plain = name.endswith("bias") or "norm" in name.lower() or parameter.ndim < 2
        assert found[parameter] == (pytest.approx(rate), 0 if is_plain else 0.3), name


def test_without_a_rate_of_its_own_the_encoder_learns_like_the_rest() -> None:
    run = Run.of(**TINY, weight_decay=0)
    (group,) = build_optimiser(model(run).network, run.training).param_groups
    assert group["full_rate"] == 0.02


@pytest.mark.parametrize(
    ("schedule", "warmup", "expected"),
    [
        ("linear", 0.2, [1 / 3, 2 / 3, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]),
        ("linear", 0, [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]),
        ("constant", 0.1, [1 / 2, *[1] * 9]),
        ("cosine", 0, [(1 + math.cos(math.pi * step / 10)) / 2 for step in range(10)]),
        ("cosine", 0.01, [1 / 2, *((1 + math.cos(math.pi * step / 9)) / 2 for step in range(9))]),
    ],
)
def test_rates_rise_and_fall(schedule: Any, warmup: float, expected: list[float]) -> None:
    factor = learning_rate_factor(TrainingSettings(schedule=schedule, warmup=warmup), 10)
    assert [factor(step) for step in range(10)] == pytest.approx(expected)


def test_a_schedule_of_one_step_learns_something() -> None:
    for schedule in ("linear", "cosine", "constant"):
        assert learning_rate_factor(TrainingSettings(schedule=schedule), 1)(0) > 0


# Which epoch is kept.


def record(micro: float, macro: float, loss: float = 1.0) -> dict[str, float]:
    return {"micro_f1": micro, "macro_f1": macro, "val_loss": loss}


@pytest.mark.parametrize(
    ("select", "records", "best"),
    [
        ("micro", [record(0.5, 0.1), record(0.6, 0.0), record(0.4, 0.9)], {"select": 2, "micro": 2, "macro": 3}),
        ("macro", [record(0.5, 0.1), record(0.6, 0.0), record(0.4, 0.9)], {"select": 3, "micro": 2, "macro": 3}),
        ("sum", [record(0.5, 0.5), record(0.6, 0.1), record(0.1, 0.6)], {"select": 1, "micro": 2, "macro": 3}),
        ("sum", [record(0, 0, 3), record(0, 0, 2), record(0, 0, 2.5)], {"select": 2, "micro": 2, "macro": 2}),
        ("sum", [record(0.5, 0.5, 1), record(0.5, 0.5, 1)], {"select": 1, "micro": 1, "macro": 1}),
    ],
)
def test_the_best_epoch_is_the_first_with_the_best_score(
    select: str, records: list[dict[str, float]], best: dict[str, int]
) -> None:
    progress = Progress("")
    for each in records:
        progress.finish_epoch(each)
        progress.new_bests(select)
    assert progress.best == best
    assert progress.stale() == len(records) - best["select"]


class Weights(Watcher):
    """Remembers the weights after each epoch."""

    def __init__(self) -> None:
        self.trained: NeuralModel | None = None
        self.epochs: list[dict[str, Tensor]] = []
        self.best: list[bool] = []

    def epoch(self, record: dict[str, float], is_best: bool) -> None:  # noqa: ARG002
        assert self.trained is not None
        self.epochs.append({name: value.clone() for name, value in self.trained.network.state_dict().items()})
        self.best.append(is_best)


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[dict[str, float]]], None]:
    """Let each epoch have the scores of a list."""

    def give(records: list[dict[str, float]]) -> None:
        waiting = iter(records)
        monkeypatch.setattr("hitin.training.loop.validation_scores", lambda *_: dict(next(waiting)))

    return give


def trained_with(watcher: Weights, folder: Path, **options: Any) -> NeuralModel:
    run = Run.of(**TINY | options)
    watcher.trained = built = model(run)
    ids = [TAXONOMY.closure([TAXONOMY.index(names[0])]) for names in documents(40)[1]]
    examples = built.examples(documents(40)[0], ids)
    train(built, examples, examples, folder=folder, device="cpu", watcher=watcher)
    return built


@pytest.mark.parametrize(("select", "best"), [("micro", 1), ("macro", 2), ("sum", 0)])
def test_the_model_ends_with_the_weights_of_the_chosen_epoch(
    select: str, best: int, tmp_path: Path, scores: Callable[[list[dict[str, float]]], None]
) -> None:
    scores([record(0.5, 0.5), record(0.6, 0.1), record(0.1, 0.6)])
    watcher = Weights()
    built = trained_with(watcher, tmp_path, select=select)
    assert are_equal(dict(built.network.state_dict()), watcher.epochs[best])
    assert not are_equal(watcher.epochs[0], watcher.epochs[1])
    for name, epoch in (("select", best), ("micro", 1), ("macro", 2)):
        assert are_equal(load_tensors(best_path(tmp_path, name))[0], watcher.epochs[epoch])
    assert not built.network.training


def test_training_ends_when_nothing_gets_better(
    tmp_path: Path, scores: Callable[[list[dict[str, float]]], None]
) -> None:
    scores([record(0.1, 0.1), record(0.3, 0.3), record(0.2, 0.2), record(0.3, 0.3), record(0.9, 0.9)])
    watcher = Weights()
    trained_with(watcher, tmp_path, patience=2, epochs=9)
    assert watcher.best == [True, True, False, False]
    scores([record(0, 0)] * 9)
    watcher = Weights()
    trained_with(watcher, tmp_path / "patient", patience=0, epochs=9)
    assert len(watcher.epochs) == 9


def test_without_validation_documents_the_last_epoch_is_kept(tmp_path: Path) -> None:
    trained = classifier().fit(*documents(40), out=tmp_path)
    assert trained.history_.best == {}
    assert trained.history_.chosen["epoch"] == 3
    assert "micro_f1" not in trained.history_.chosen
    assert not list(tmp_path.rglob("best-*"))


def test_documents_are_learnt() -> None:
    texts, labels = documents(50, seed=7)
    for options in ({"method": "flat", "embedding_dropout": 0, "dropout": 0}, STEADY):
        trained = fitted(160, val=40, epochs=8, learning_rate=0.05, **options)
        assert trained.history_.chosen["micro_f1"] > 0.9
        assert trained.score(texts, labels) > 0.9


# Several processes.


@pytest.mark.slow
def test_two_processes_learn_what_one_does(tmp_path: Path) -> None:
    """Also where a batch cannot be shared evenly, or not at all."""
    options = {"count": 41, "val": 20, "accumulate": 2, **STEADY}
    assert train_together(tmp_path / "two", **options) == {0}
    train_into(str(tmp_path / "one"), options)
    one, two = saved_weights(tmp_path / "one"), saved_weights(tmp_path / "two")
    for name, weight in one.items():
        assert torch.allclose(weight, two[name], atol=1e-5), name  # sums of parts are rounded otherwise
    for single, double in zip(*(log_lines(tmp_path / name / TRAINING) for name in ("one", "two")), strict=True):
        assert single == pytest.approx(double, abs=1e-6)


def test_padding_to_multiples_counts_where_the_tokens_of_a_batch_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes: list[tuple[int, int]] = []
    batch = Examples.batch

    def noted(examples: Examples, rows: NDArray[np.int64]) -> Batch:
        made = batch(examples, rows)
        assert made.ids is not None
        shapes.append((made.ids.shape[0], made.ids.shape[1]))
        return made

    monkeypatch.setattr(Examples, "batch", noted)
    texts = ["mew " * 65] * 79 + ["mew " * 200]
    classifier(epochs=1, batch_size=64, batch_tokens=1300, max_length=256).fit(texts, [["Cat"]] * 80)
    assert sum(count for count, _ in shapes) == 80
    assert {length for _, length in shapes} == {72, 200}
    assert max(count * length for count, length in shapes) == 18 * 72  # 20 of 65 tokens would be 1440 with padding


@pytest.mark.filterwarnings("ignore")  # of torch, about itself
def test_where_there_is_no_compiler_training_goes_on_without(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config

    monkeypatch.setattr(config.cpp, "cxx", ("/nowhere/compiler",))
    monkeypatch.setattr(config, "force_disable_caches", True)
    run = Run.of(**TINY | STEADY)
    built, steps, take = steps_of(run.with_training(compile=True))
    notes: list[str] = []
    monkeypatch.setattr(steps, "note", notes.append)
    plain, _, usual = steps_of(run)
    for step in range(2):
        assert float(take(step, [np.arange(32)])) == pytest.approx(float(usual(step, [np.arange(32)])))
    assert len(notes) == 1
    assert "cannot be compiled here" in notes[0]
    for name, weight in built.network.named_parameters():
        assert torch.equal(weight, plain.network.get_parameter(name)), name


def test_a_network_that_can_no_longer_be_compiled_loses_no_gradient() -> None:
    """Where gradients stand in places of their own, as recorded steps have them."""
    run = Run.of(**TINY | STEADY)
    built, steps, take = steps_of(run)
    plain, _, usual = steps_of(run)
    calls: list[int] = []

    def compiled(batch: Batch, step: int) -> Tensor:
        calls.append(step)
        if len(calls) == 2:
            raise RuntimeError("no compiler for this shape")
        found: Tensor = steps.plain(batch, step)
        return found

    steps.objective = compiled
    steps.recorder = Recorder(compiled, built.network.parameters(), steps.note)
    steps.recorder.is_on = False
    group = [np.arange(16), np.arange(16, 32)]
    assert float(take(0, group)) == pytest.approx(float(usual(0, group)))
    for name, weight in built.network.named_parameters():
        assert torch.equal(weight, plain.network.get_parameter(name)), name


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_a_compiled_network_learns_the_same() -> None:
    run = Run.of(**TINY | STEADY)
    compiled, steps, take = steps_of(run.with_training(compile=True))
    plain, _, usual = steps_of(run)
    for step in range(3):
        assert float(take(step, [np.arange(32)])) == pytest.approx(float(usual(step, [np.arange(32)])), rel=1e-4)
    assert steps.objective is not steps.plain  # it was not given up
    for name, weight in compiled.network.named_parameters():
        assert torch.allclose(weight, plain.network.get_parameter(name), atol=1e-4), name
