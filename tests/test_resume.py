"""A training that was interrupted goes on from the very step, if it is the same; how it ends when killed is in
`tests/faults`."""

import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from hitin import HierarchicalTextClassifier, InputError, Taxonomy
from hitin.model import Advance
from hitin.settings import Run
from hitin.tensor_files import load_tensors, save_tensors
from hitin.training.progress import _settings_of_weights
from hitin.watcher import Watcher
from tests.faults.commands import check_same
from tests.training_harness import (
    BERT,
    TAXONOMY,
    TINY,
    Interrupter,
    are_equal,
    classifier,
    documents,
    interrupted,
    leftovers,
    tiny_bert,
    weights,
)


@pytest.mark.parametrize(
    "options", [{}, {"accumulate": 2}, {"batch_tokens": 24, "accumulate": 2}, {"norm": "layer", "tokens": "subword"}]
)
@pytest.mark.parametrize("step", [1, 3, 7])
def test_a_run_goes_on_from_the_very_step(step: int, options: dict[str, Any], tmp_path: Path) -> None:
    """With dropout and batch statistics, in the middle of an epoch."""
    folder = tmp_path / "model"
    first, again = Interrupter(step), Interrupter(-1)
    with pytest.raises(KeyboardInterrupt):
        classifier(**options).fit(*documents(40), documents(20, seed=1), out=folder, watcher=first)
    assert not leftovers(folder)
    resumed = classifier(**options).fit(*documents(40), documents(20, seed=1), out=folder, watcher=again)
    epochs, before = divmod(first.documents - 1, 40)
    assert again.begun == (3, 40, epochs, before + 1)
    assert any(note.startswith("going on after") for note in again.notes)
    undisturbed = classifier(**options).fit(*documents(40), documents(20, seed=1), out=tmp_path / "whole")
    assert are_equal(weights(resumed), weights(undisturbed))
    check_same(folder, tmp_path / "whole")


def test_ctrl_c_during_validation_does_not_wait_for_its_end(tmp_path: Path) -> None:
    class Impatient(Watcher):
        def epoch(self, record: dict[str, float], is_best: bool) -> None:  # noqa: ARG002
            raise AssertionError("the epoch was finished")

        def step(self, documents: int, loss: float) -> None:  # noqa: ARG002
            self.steps = getattr(self, "steps", 0) + 1
            if self.steps == 5:  # the last of the epoch
                signal.raise_signal(signal.SIGINT)

    data = *documents(40), documents(20, seed=1)
    with pytest.raises(KeyboardInterrupt):
        classifier().fit(*data, out=tmp_path / "model", watcher=Impatient())
    resumed = classifier().fit(*data, out=tmp_path / "model")
    assert are_equal(weights(resumed), weights(classifier().fit(*data)))


def test_a_second_ctrl_c_interrupts_at_once_and_an_unseen_one_is_not_lost() -> None:
    from hitin.training.interrupts import Interrupts

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), Interrupts():
        signal.raise_signal(signal.SIGTERM)
    with suppress(KeyboardInterrupt), Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        assert interrupts.wanted
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize(
    "change",
    [{"learning_rate": 0.01}, {"epochs": 9}, {"height": 3}, {"seed": 1}, {"loss": "focal"}, {"method": "flat"}],
)
def test_a_run_does_not_go_on_with_other_settings(change: dict[str, Any], tmp_path: Path) -> None:
    interrupted(tmp_path)
    with pytest.raises(InputError, match="other settings") as caught:
        classifier(**change).fit(*documents(40), documents(20, seed=1), out=tmp_path)
    assert caught.value.kind == "other-run"
    assert "--resume never" in str(caught.value)


def test_a_run_does_not_go_on_with_other_documents_or_another_taxonomy(tmp_path: Path) -> None:
    interrupted(tmp_path)
    val = documents(20, seed=1)
    other = Taxonomy.from_edges([("Stone", "Moss")], labels=TAXONOMY.labels, root=None)  # the same number of labels
    runs: list[Callable[[], object]] = [
        lambda: classifier().fit(*documents(41), val, out=tmp_path),
        lambda: classifier().fit(*documents(40), documents(19, seed=1), out=tmp_path),
        lambda: classifier().fit(*documents(40), out=tmp_path),
        lambda: classifier().set_params(taxonomy=other).fit(*documents(40), val, out=tmp_path),
    ]
    for run in runs:
        with pytest.raises(InputError) as caught:
            run()
        assert caught.value.kind == "other-run"


def test_a_run_does_not_go_on_with_other_parents_of_the_same_labels(tmp_path: Path) -> None:
    texts, labels = documents(40)
    some = [number for number, each in enumerate(labels) if each != ["Fish"]]  # of whose ancestors no document tells
    data = [texts[number] for number in some], [labels[number] for number in some]
    other = Taxonomy.from_nested({"Animal": ["Cat", "Dog"], "Plant": ["Fish", "Moss", "Tree"], "Stone": []})
    assert other.labels == TAXONOMY.labels
    with pytest.raises(KeyboardInterrupt):
        classifier().fit(*data, out=tmp_path, watcher=Interrupter(2))
    with pytest.raises(InputError, match="other settings") as caught:
        classifier().set_params(taxonomy=other).fit(*data, out=tmp_path)
    assert caught.value.kind == "other-run"
    classifier().fit(*data, out=tmp_path)


def test_a_run_does_not_go_on_with_other_weights_of_a_frozen_encoder(tmp_path: Path) -> None:
    bert = tmp_path / "bert"
    options = {**BERT, "encoder": tiny_bert(bert), "freeze": True}
    with pytest.raises(KeyboardInterrupt):
        HierarchicalTextClassifier(TAXONOMY, **options).fit(*documents(40), out=tmp_path, watcher=Interrupter(2))
    weights = load_file(bert / "model.safetensors")
    save_file({name: weight + 0.01 for name, weight in weights.items()}, bert / "model.safetensors", {"format": "pt"})
    with pytest.raises(InputError) as caught:
        HierarchicalTextClassifier(TAXONOMY, **options).fit(*documents(40), out=tmp_path)
    assert caught.value.kind == "other-run"


@pytest.mark.parametrize("change", [{"checkpoint_seconds": 0}, {"tensorboard": True}], ids=str)
def test_how_often_it_is_saved_and_what_is_written_beside_it_may_change(change: dict[str, Any], tmp_path: Path) -> None:
    if "tensorboard" in change:
        pytest.importorskip("tensorboard")
    interrupted(tmp_path)
    watcher = Interrupter(-1)
    classifier(**change).fit(*documents(40), documents(20, seed=1), out=tmp_path, watcher=watcher)
    assert any(note.startswith("going on after") for note in watcher.notes)


def test_never_begins_anew_and_leaves_nothing_to_go_on_from(tmp_path: Path) -> None:
    checkpoint = interrupted(tmp_path)

    class Crash(Watcher):
        def step(self, documents: int, loss: float) -> None:  # noqa: ARG002
            raise RuntimeError("crash")

    with pytest.raises(RuntimeError, match="crash"):
        classifier().fit(*documents(40), documents(20, seed=1), out=tmp_path, resume="never", watcher=Crash())
    assert not checkpoint.exists()
    watcher = Interrupter(-1)
    classifier().fit(*documents(40), documents(20, seed=1), out=tmp_path, resume="never", watcher=watcher)
    assert watcher.begun == (3, 40, 0, 0)
    with pytest.raises(InputError, match="resume is 'always'"):
        classifier().fit(*documents(40), resume="always")  # type: ignore[arg-type]


def test_a_damaged_checkpoint_is_told_with_its_remedy(tmp_path: Path) -> None:
    checkpoint = interrupted(tmp_path)
    good = checkpoint.read_bytes()
    chance = random.Random(0)
    places = [0, 8, 20, len(good) - 1, *(chance.randrange(len(good)) for _ in range(12))]
    flipped = [good[:place] + bytes([good[place] ^ (1 << chance.randrange(8))]) + good[place + 1 :] for place in places]
    for bad in (b"", good[:7], good[: len(good) // 2], good[:-1], good + b"x", *flipped):
        checkpoint.write_bytes(bad)
        with pytest.raises(InputError) as caught:
            classifier().fit(*documents(40), documents(20, seed=1), out=tmp_path)
        assert caught.value.kind == "damaged-checkpoint", bad[:40]
        assert caught.value.file == str(checkpoint)
        assert "--resume never" in str(caught.value)


def test_a_flipped_bit_in_what_is_said_about_tensors_is_told(tmp_path: Path) -> None:
    path = tmp_path / "tensors"
    save_tensors(path, {"a": torch.ones(3)}, {"epoch": "4"})
    good = path.read_bytes()
    assert good.count(b'"epoch":"4"') == 1
    path.write_bytes(good.replace(b'"epoch":"4"', b'"epoch":"5"'))
    with pytest.raises(InputError, match="its checksum is wrong"):
        load_tensors(path)


def test_tensors_in_one_memory_are_saved(tmp_path: Path) -> None:
    numbers = torch.arange(6.0)
    tensors = {"whole": numbers, "again": numbers, "part": numbers[2:4], "turned": numbers.view(2, 3).T}
    save_tensors(tmp_path / "tensors", tensors)
    assert are_equal(load_tensors(tmp_path / "tensors")[0], tensors)


def test_a_checkpoint_of_another_version_or_without_its_best_weights_is_told(tmp_path: Path) -> None:
    checkpoint = interrupted(tmp_path)
    save_tensors(checkpoint, {"network.x": torch.zeros(1)}, {"progress": '{"steps": 3}'})
    with pytest.raises(InputError, match="another version") as caught:
        classifier().fit(*documents(40), documents(20, seed=1), out=tmp_path)
    assert caught.value.kind == "damaged-checkpoint"
    save_tensors(checkpoint, {"other": torch.zeros(1)}, {"progress": "{}"})
    with pytest.raises(InputError, match="no checkpoint"):
        classifier().fit(*documents(40), documents(20, seed=1), out=tmp_path)
    checkpoint.unlink()
    interrupted(tmp_path)
    for path in checkpoint.parent.glob("epoch-*"):
        path.unlink()
    with pytest.raises(InputError, match="best epoch are missing"):
        classifier().fit(*documents(40), documents(20, seed=1), out=tmp_path)


def test_files_have_the_usual_permissions_and_are_whole(tmp_path: Path) -> None:
    checkpoint = interrupted(tmp_path)
    usual = tmp_path / "usual"
    usual.touch()
    assert checkpoint.stat().st_mode == usual.stat().st_mode


def test_what_a_kill_left_is_cleared_away(tmp_path: Path) -> None:
    checkpoint = interrupted(tmp_path)
    for name in (".0123456789abcdef.part", ".tmpAbC123"):
        (checkpoint.parent / name).write_bytes(b"half")
        (tmp_path / name).write_bytes(b"half")
    classifier().fit(*documents(40), documents(20, seed=1), out=tmp_path)
    assert not leftovers(tmp_path)


@pytest.mark.parametrize(("first", "second"), [("hitin", "linear"), ("linear", "hitin")])
def test_two_trainings_do_not_share_a_folder(first: str, second: str, tmp_path: Path) -> None:
    """From the first note to the tuning, whatever their methods are."""
    data, refused = (*documents(40), documents(20, seed=1)), []

    def trained(method: str, watcher: Watcher | None = None) -> None:
        options = {name: value for name, value in TINY.items() if method != "linear"}
        HierarchicalTextClassifier(TAXONOMY, method=method, **options).fit(*data, out=tmp_path, watcher=watcher)

    class Second(Watcher):
        @contextmanager
        def counting(self, what: str, total: int, unit: str = "documents") -> Iterator[Advance]:  # noqa: ARG002
            with ThreadPoolExecutor() as elsewhere, pytest.raises(InputError, match="another process") as caught:
                elsewhere.submit(trained, second).result()
            refused.append((what, caught.value.kind))
            yield lambda _: None

    trained(first, Second())
    assert {kind for _, kind in refused} == {"busy-folder"}
    assert {"validating", "tuning"} <= {what for what, _ in refused}
    trained(second)
    assert not leftovers(tmp_path)


def test_a_folder_that_a_killed_training_had_is_free(tmp_path: Path) -> None:
    code = "import os; from pathlib import Path; from hitin.model_place import training_in\n"
    code += "with training_in(Path('model')): os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False).returncode == -9
    assert leftovers(tmp_path)
    classifier(epochs=1).fit(*documents(20), out=tmp_path / "model")
    assert not leftovers(tmp_path)


def test_a_training_that_fails_at_once_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no words to learn from"):
        HierarchicalTextClassifier(TAXONOMY, method="linear").fit(["?", "!"], ["Cat", "Dog"], out=tmp_path / "a" / "b")
    assert not [*tmp_path.iterdir()]


def test_without_a_folder_there_is_nothing_to_go_on_from() -> None:
    steps = count()

    class Counter(Watcher):
        def step(self, documents: int, loss: float) -> None:  # noqa: ARG002
            next(steps)

    classifier(**TINY).fit(*documents(40), watcher=Counter())
    assert next(steps) == 15


def test_whether_processes_share_the_network_is_no_matter_to_an_interrupted_training() -> None:
    alone, together = (Run.of(encoder="bert-base-uncased", shard=shard) for shard in (False, True))
    assert _settings_of_weights(alone) == _settings_of_weights(together)  # the same weights but for rounding


def test_how_decisions_are_chosen_is_no_matter_to_an_interrupted_training() -> None:
    plain, other = Run.of(seed=3), Run.of(seed=3, policy="raw", tune_for="macro", wished_precision=0.9)
    assert _settings_of_weights(plain) == _settings_of_weights(other)
    assert "decisions" not in _settings_of_weights(plain)
    assert _settings_of_weights(plain) != _settings_of_weights(Run.of(seed=4))
