"""Training in all its ways: frozen encoders, losses, precisions; what goes wrong, and what it tells."""

import json
import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hitin import HitinError, InputError, MissingExtraError, Taxonomy
from hitin.devices import choose_device
from hitin.encoders.transformer import Transformer
from hitin.model_folder import TRAINING
from hitin.settings import Run
from hitin.tensor_files import load_tensors
from hitin.training.checkpoint import load_checkpoint
from hitin.training.kept_weights import best_path
from hitin.training.loop import CHECKPOINT
from hitin.watcher import Watcher
from tests.training_harness import (
    BERT,
    TINY,
    Interrupter,
    are_equal,
    classifier,
    documents,
    fitted,
    log_lines,
    model,
    network_of,
    saved_weights,
    tiny_bert,
    weights,
)

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
    assert calls.documents == 60 + 20  # those for validation once more, to tune the decisions
    assert are_equal(dict(network_of(frozen).encoder.state_dict()), before)
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
    with pytest.raises(InputError, match="other settings"):
        classifier(**options, seed=1).fit(*data, out=tmp_path / "model")
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
    ended = network_of(trained).encoder
    assert not any(torch.equal(value, start.get_parameter(name)) for name, value in ended.named_parameters())


# What may go wrong, and what may be asked for.


@pytest.mark.parametrize("options", [{"learning_rate": 1e30}, {"learning_rate": 1e300, "epochs": 1, "batch_size": 64}])
def test_a_training_that_runs_away_is_told(options: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(HitinError, match="has run away") as caught:
        classifier(**options, gradient_clip=0, warmup=0, precision="bf16").fit(*documents(40), out=tmp_path)
    assert "learning_rate" in str(caught.value)
    assert "precision=fp32" in str(caught.value)
    assert all(math.isfinite(line["loss"]) for line in log_lines(tmp_path / TRAINING))


@pytest.mark.parametrize(("name", "value"), [("regularisation", 1e30), ("weight_decay", 1e30), ("epochs", 2)])
def test_the_remedy_for_a_training_that_runs_away_names_what_can_be_lowered(name: str, value: float) -> None:
    options = {"learning_rate": 1e30, "gradient_clip": 0, "warmup": 0} | {name: value}
    with pytest.raises(HitinError, match="has run away") as caught:
        classifier(**options).fit(*documents(40))
    assert "precision" not in str(caught.value)  # a CPU has fp32 where nothing is said
    for each in ("regularisation", "weight_decay"):
        assert (f"or lower {each}" in str(caught.value)) == (each == name)


def test_an_epoch_whose_validation_loss_is_no_number_is_never_the_best(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    found = {"val_loss": math.nan, "micro_f1": 0.0, "macro_f1": 0.0}
    monkeypatch.setattr("hitin.training.loop.validation_scores", lambda *_: dict(found))
    with pytest.raises(HitinError, match="has run away"):
        classifier().fit(*documents(40), documents(8), out=tmp_path)
    assert not list((tmp_path / TRAINING).glob("epoch-*"))


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


def test_what_is_for_several_processes_is_told_to_be_idle_in_one() -> None:
    told = Interrupter(-1)
    classifier(epochs=1, norm="batch", sync_norm=True).fit(*documents(8), watcher=told)
    assert "sync_norm is for several processes, and this is one" in told.notes


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
