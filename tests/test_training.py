"""Training: the same weights from the same seed, the steps it takes, which epoch it keeps, what it tells."""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import Tensor

from hitin import HitinError, InputError, MissingExtraError, Taxonomy
from hitin.checkpoint import load_checkpoint, load_tensors
from hitin.devices import choose_device
from hitin.encoders.transformer import Transformer
from hitin.model import Model, Network
from hitin.model_folder import TRAINING
from hitin.optimisation import build_optimiser, learning_rate_factor
from hitin.progress import Progress
from hitin.settings import Run, TrainingSettings
from hitin.steps import Steps
from hitin.training import CHECKPOINT, best_path, train
from hitin.training_log import Watcher
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
    network = fitted(precision="bf16").model_.network
    assert "forward" not in vars(network)
    assert not any("accelerate" in name or "original" in name for name in vars(network))


# Steps.


def steps_of(run: Run, count: int = 32) -> tuple[Model, Steps]:
    AcceleratorState._reset_state(reset_partial_state=True)
    built = model(run)
    texts, labels = documents(count)
    ids = [TAXONOMY.closure([TAXONOMY.index(name) for name in names]) for names in labels]
    built.network.train()
    return built, Steps(built, built.examples(texts, ids), Accelerator(cpu=True), 10)


@pytest.mark.parametrize("loss", ["bce", "asymmetric"])
def test_four_batches_of_8_are_one_of_32(loss: str) -> None:
    run = Run.of(**TINY | STEADY, loss=loss, regularisation=1e-2)
    (small, by_eights), (large, at_once) = steps_of(run), steps_of(run)
    rows = np.random.default_rng(0).permutation(32)
    for step in range(3):
        summed = by_eights.take(step, 4 * step, np.split(rows, 4))
        assert float(summed) == pytest.approx(float(at_once.take(step, 4 * step, [rows])), rel=1e-5)
    for name, weight in small.network.named_parameters():
        assert torch.allclose(weight, large.network.get_parameter(name), atol=1e-6), name


def test_batches_of_unequal_size_count_by_their_documents() -> None:
    run = Run.of(**TINY | STEADY)
    (small, in_parts), (large, at_once) = steps_of(run), steps_of(run)
    rows = np.arange(32)
    in_parts.take(0, 0, [rows[:3], rows[3:7], rows[7:]])
    at_once.take(0, 0, [rows])
    for name, weight in small.network.named_parameters():
        assert torch.allclose(weight, large.network.get_parameter(name), atol=1e-6), name


def test_a_gradient_is_no_longer_than_it_may_be() -> None:
    def longest(clip: float) -> float:
        built, steps = steps_of(Run.of(**TINY | STEADY, gradient_clip=clip))
        seen: list[float] = []
        steps.optimiser.register_step_pre_hook(lambda *_: seen.append(_length(built.network)))
        steps.take(0, 0, [np.arange(32)])
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
    network = Model.build(TAXONOMY, run, ["bark"]).network
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
        self.trained: Model | None = None
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
        monkeypatch.setattr("hitin.training.validation_scores", lambda *_: dict(next(waiting)))

    return give


def trained_with(watcher: Weights, folder: Path, **options: Any) -> Model:
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
def test_two_processes_learn_what_one_does_from_twice_as_many_batches(tmp_path: Path) -> None:
    """Also where the batches of an epoch cannot be shared evenly."""
    options = {"count": 37, "val": 20, **STEADY}
    assert train_together(tmp_path / "two", **options) == {0}
    train_into(str(tmp_path / "one"), {**options, "accumulate": 2})
    one, two = saved_weights(tmp_path / "one"), saved_weights(tmp_path / "two")
    for name, weight in one.items():
        assert torch.allclose(weight, two[name], atol=1e-6), name
    for single, double in zip(*(log_lines(tmp_path / name / TRAINING) for name in ("one", "two")), strict=True):
        assert single == pytest.approx(double, abs=1e-6)


# A frozen text encoder.


class Calls:
    """Counts the documents that an encoder reads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.documents = 0
        forward = Transformer.forward

        def counted(encoder: Transformer, ids: Tensor, lengths: Tensor) -> Any:
            self.documents += len(ids)
            return forward(encoder, ids, lengths)

        monkeypatch.setattr(Transformer, "forward", counted)


def test_a_frozen_encoder_reads_each_document_once_and_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bert, calls = tiny_bert(tmp_path / "bert"), Calls(monkeypatch)
    options = BERT | {"freeze": True, "epochs": 4, "learning_rate": 0.01}
    frozen = classifier(**dict.fromkeys(TINY) | options, encoder=bert)
    before = {
        name: value.clone()
        for name, value in model(Run.of(encoder=bert, **options)).network.encoder.state_dict().items()
    }
    frozen.fit(*documents(40), documents(20, seed=1), out=tmp_path / "model")
    assert calls.documents == 60
    assert are_equal(dict(frozen.model_.network.encoder.state_dict()), before)
    assert not are_equal(weights(frozen), {f"encoder.{name}": value for name, value in before.items()})
    texts = documents(20, seed=1)[0]
    again = frozen.load(tmp_path / "model", device="cpu")
    assert np.array_equal(again.predict_proba(texts), frozen.predict_proba(texts))
    micro = frozen.evaluate(texts, documents(20, seed=1)[1])
    assert frozen.history_.chosen["micro_f1"] >= 0
    assert micro.documents == 20


def test_a_frozen_encoder_is_not_saved_with_each_checkpoint_but_with_the_model(tmp_path: Path) -> None:
    class Stop(Watcher):
        def epoch(self, record: dict[str, float], is_best: bool) -> None:  # noqa: ARG002
            if record["epoch"] == 2:
                raise RuntimeError("stop")

    options = {**dict.fromkeys(TINY), "encoder": tiny_bert(tmp_path / "bert"), "freeze": True, **BERT, "epochs": 3}
    data = *documents(40), documents(20, seed=1)
    with pytest.raises(RuntimeError, match="stop"):
        classifier(**options).fit(*data, out=tmp_path / "model", watcher=Stop())
    saved = load_checkpoint(tmp_path / "model" / TRAINING / CHECKPOINT).weights
    assert saved
    assert all(name.startswith("method.") for name in saved)
    resumed = classifier(**options).fit(*data, out=tmp_path / "model")
    whole = classifier(**options).fit(*data)
    assert are_equal(weights(resumed), weights(whole))
    assert are_equal(saved_weights(tmp_path / "model"), weights(whole))
    assert are_equal(load_tensors(best_path(tmp_path / "model" / TRAINING, "select"))[0], weights(whole))


def test_a_transformer_is_trained_as_a_whole(tmp_path: Path) -> None:
    bert = tiny_bert(tmp_path / "bert")
    options = {**dict.fromkeys(TINY), "encoder": bert, **BERT}
    trained = classifier(**options, layer_decay=0.9).fit(*documents(16))
    start = model(trained.model_.run).network.encoder
    ended = trained.model_.network.encoder
    assert not any(torch.equal(value, start.get_parameter(name)) for name, value in ended.named_parameters())


# What may go wrong, and what may be asked for.


@pytest.mark.parametrize("options", [{"learning_rate": 1e30}, {"learning_rate": 1e300, "epochs": 1, "batch_size": 64}])
def test_a_training_that_runs_away_is_told(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(HitinError, match="has run away") as caught:
        classifier(**options, gradient_clip=0, warmup=0, precision="bf16").fit(*documents(40), out=tmp_path)
    assert "learning_rate" in str(caught.value)
    assert "precision=fp32" in str(caught.value)
    assert all(math.isfinite(line["loss"]) for line in log_lines(tmp_path / TRAINING))


@pytest.mark.parametrize(
    "options",
    [
        {"precision": "bf16"},
        {"positive_weights": "balanced"},
        {"positive_weights": "sqrt", "loss": "focal"},
        {"loss": "asymmetric"},
        {"regularisation_form": "printed", "regularisation": 1e-3},
        {"prior_start": False},
        {"batch_size": 64, "accumulate": 4},
        {"leaves": "mixed", "pooling": "max"},
        {"tokens": "subword", "word_dropout": 0.3},
    ],
)
def test_every_way_of_training_works(options: dict[str, Any]) -> None:
    trained = fitted(val=10, **options)
    assert all(math.isfinite(each["loss"]) for each in trained.history_.epochs)
    assert np.isfinite(trained.predict_proba(["bark"])).all()


def test_fp16_needs_a_gpu_and_a_device_must_exist() -> None:
    with pytest.raises(InputError, match="fp16 needs a GPU"):
        fitted(precision="fp16")
    for device in ("cuda:99", "tpu", "cuda:x", "", 5):
        with pytest.raises(InputError, match="no device") as caught:
            choose_device(device)  # type: ignore[arg-type]
        assert "cpu" in str(caught.value)


def test_one_document_is_enough() -> None:
    trained = classifier(validation=0.5).fit(["bark bark"], [["Dog"]])
    assert trained.sizes_ == {"train": 1, "validation": 0}
    assert trained.history_.best == {}


def test_a_label_that_never_occurs_does_no_harm() -> None:
    taxonomy = Taxonomy.from_nested({"Animal": ["Cat", "Dog", "Unicorn"], "Plant": ["Moss"]})
    texts = ["mew", "bark", "damp"] * 10
    trained = classifier(positive_weights="balanced", epochs=10).set_params(taxonomy=taxonomy)
    trained.fit(texts, ["Cat", "Dog", "Moss"] * 10)
    probabilities = dict(zip(trained.classes_, trained.predict_proba(["mew"])[0], strict=True))
    assert probabilities["Unicorn"] < 0.1


# What it tells.


def test_the_log_has_a_line_every_20_steps_and_one_an_epoch(tmp_path: Path) -> None:
    classifier(epochs=3, batch_size=2).fit(*documents(30), documents(8, seed=1), out=tmp_path)
    lines = log_lines(tmp_path / TRAINING, timed=True)
    steps = [line for line in lines if "learning_rate" in line]
    epochs = [line for line in lines if "val_loss" in line]
    assert [(line["batch"], line["epoch"]) for line in steps] == [(1, 1), (21, 2), (41, 3)]
    assert [(line["batch"], line["epoch"]) for line in epochs] == [(15, 1), (30, 2), (45, 3)]
    assert set(epochs[0]) == {"batch", "epoch", "loss", "val_loss", "micro_f1", "macro_f1", "seconds"}
    assert [line["batch"] for line in lines] == sorted(line["batch"] for line in lines)
    mean = (steps[0]["loss"] + 20 * steps[1]["loss"] + 20 * steps[2]["loss"]) / 41
    assert mean == pytest.approx(sum(line["loss"] for line in epochs) / 3, abs=0.05)


def test_a_watcher_is_told_every_document(tmp_path: Path) -> None:
    class All(Watcher):
        def __init__(self) -> None:
            self.told: list[tuple[Any, ...]] = []
            self.documents = 0

        def begin(self, *numbers: int) -> None:
            self.told.append(numbers)

        def step(self, documents: int, loss: float) -> None:
            self.documents += documents
            assert math.isfinite(loss)

        def epoch(self, record: dict[str, float], is_best: bool) -> None:  # noqa: ARG002
            self.told.append((record["epoch"], self.documents))

    watcher = All()
    classifier().fit(*documents(30), documents(5, seed=1), out=tmp_path, watcher=watcher)
    assert watcher.told == [(3, 30, 0, 0), (1, 30), (2, 60), (3, 90)]


def test_events_for_tensorboard_are_written(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    classifier(tensorboard=True).fit(*documents(30), documents(5, seed=1), out=tmp_path)
    events = EventAccumulator(str(tmp_path / TRAINING / "tensorboard"))
    events.Reload()
    assert {"loss", "learning_rate", "epoch/micro_f1"} <= set(events.Tags()["scalars"])
    assert [event.step for event in events.Scalars("epoch/loss")] == [4, 8, 12]


def test_without_tensorboard_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorboard", None)
    with pytest.raises(MissingExtraError, match=r"hitin\[tensorboard\]"):
        classifier(tensorboard=True).fit(*documents(30), out=tmp_path)


def test_a_folder_that_cannot_be_written_to_is_told_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file" / "model", Path("/proc/model")):
        with pytest.raises(InputError) as caught:
            classifier().fit(*documents(8), out=out)
        assert caught.value.kind == "unwritable"
    (tmp_path / "model" / TRAINING / "log.jsonl").mkdir(parents=True)
    with pytest.raises(InputError, match=r"log\.jsonl") as caught:
        classifier().fit(*documents(8), out=tmp_path / "model")
    assert caught.value.kind == "unwritable"


def test_a_log_is_json_to_the_end(tmp_path: Path) -> None:
    """Also where the log of a run that goes on was removed meanwhile."""

    class Stop(Watcher):
        def step(self, documents: int, loss: float) -> None:  # noqa: ARG002
            raise KeyboardInterrupt

    data = *documents(30), documents(5, seed=1)
    classifier(epochs=1).fit(*data, out=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        classifier(checkpoint_seconds=0).fit(*data, out=tmp_path, watcher=Stop())
    log = tmp_path / TRAINING / "log.jsonl"
    log.write_text("")
    classifier().fit(*data, out=tmp_path)
    assert all(json.loads(line) for line in log.read_text().splitlines())
