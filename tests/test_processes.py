"""What several processes learn together is what one learns by itself: to within rounding, and whoever writes it."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hitin import HierarchicalTextClassifier
from hitin.methods import node_norm
from hitin.model_folder import TRAINING
from tests.training_harness import (
    BERT,
    STEADY,
    TAXONOMY,
    TINY,
    documents,
    leftovers,
    log_lines,
    saved_weights,
    tiny_bert,
    train_together,
    when_logged,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TWENTY: dict[str, Any] = {"count": 40, "val": 0, "validation": 0, "epochs": 4, "batch_size": 8}
"""Steps, five an epoch. The last weights are kept: of two epochs that are equally good, rounding may choose."""
TREE: dict[str, Any] = {"width": 8, "leaf_dropout": 0, "dropout": 0, "learning_rate": 0.02}
BAG: dict[str, Any] = TWENTY | TREE | {"encoder": "bag", "embedding": 8, "word_dropout": 0, "min_count": 1}
TEXTRCNN: dict[str, Any] = TINY | STEADY | TWENTY | {"norm": "batch"}


def bert(folder: Path, **options: Any) -> dict[str, Any]:
    """A tiny BERT without dropout, under HiTIN."""
    own = {"encoder": tiny_bert(folder, dropout=0.0), "encoder_learning_rate": 0.002}
    return BERT | TREE | TWENTY | own | options


def train_with(folder: Path | str, count: int, val: int, many: int | None = None, **options: Any) -> None:
    """In this process; layers of `many` numbers are folded."""
    if many is not None:
        node_norm._MANY = many
    trained = HierarchicalTextClassifier(TAXONOMY, device="cpu", checkpoint_seconds=0, **options)
    trained.fit(*documents(count), documents(val, seed=1) if val else None, out=folder)


together = partial(train_together, module="tests.test_processes")


def differences(one: Path, two: Path) -> dict[str, float]:
    left, right = saved_weights(one), saved_weights(two)
    assert left.keys() == right.keys()
    return {name: float((left[name].double() - right[name].double()).abs().max()) for name in left}


def assert_same(one: Path, two: Path, most: float = 1e-4) -> None:
    """The weights, and what the log says of each epoch."""
    assert max(differences(one, two).values()) < most
    for single, double in zip(*(log_lines(folder / TRAINING) for folder in (one, two)), strict=True):
        assert single == pytest.approx(double, abs=most)


@pytest.mark.parametrize("encoder", ["textrcnn", "bag", "bert"])
def test_two_processes_have_the_weights_of_one_after_twenty_steps(encoder: str, tmp_path: Path) -> None:
    options = {"textrcnn": TEXTRCNN, "bag": BAG}.get(encoder) or bert(tmp_path / "bert")
    options = options | {"norm": "layer"}
    assert together(tmp_path / "two", **options) == {0}
    train_with(tmp_path / "one", **options)
    assert_same(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize("shard", [False, True])
def test_two_processes_learn_from_a_teacher_and_two_readings_what_one_does(shard: bool, tmp_path: Path) -> None:
    options = bert(tmp_path / "bert", norm="layer", consistency=1.0, linear_teacher=0.3)
    assert together(tmp_path / "two", **options, shard=shard) == {0}
    train_with(tmp_path / "one", **options)
    assert_same(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize("shard", [False, True])
def test_two_processes_learn_some_labels_at_a_time_what_one_learns_of_all(shard: bool, tmp_path: Path) -> None:
    options = bert(tmp_path / "bert", norm="layer", val=12)
    assert together(tmp_path / "two", **options, shard=shard, labels_at_once=2) == {0}
    train_with(tmp_path / "one", **options)
    assert_same(tmp_path / "one", tmp_path / "two")


@pytest.mark.parametrize(("processes", "consistency"), [(2, 0.0), (3, 0.0), (2, 1.0)])
@pytest.mark.parametrize("many", [0, 1 << 20], ids=["folded", "plain"])
def test_a_norm_over_all_processes_learns_what_one_does(
    processes: int, consistency: float, many: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the last batch has fewer documents than there are processes."""
    monkeypatch.setattr(node_norm, "_MANY", many)
    options = TEXTRCNN | {"count": 41, "sync_norm": True, "consistency": consistency}
    options |= {"learning_rate": 0.002}  # a larger one enlarges rounding
    assert together(tmp_path / "two", processes=processes, many=many, **options) == {0}
    train_with(tmp_path / "one", **options)
    assert_same(tmp_path / "one", tmp_path / "two")


def test_a_norm_of_each_process_learns_something_else(tmp_path: Path) -> None:
    """Which is why there is another; or else the tests above could not fail."""
    options = TEXTRCNN
    assert together(tmp_path / "two", **options) == {0}
    train_with(tmp_path / "one", **options)
    assert max(differences(tmp_path / "one", tmp_path / "two").values()) > 1e-3


@pytest.mark.parametrize("method", ["hitin", "hgclr"])
def test_weights_that_are_shared_out_become_those_of_one_process(method: str, tmp_path: Path) -> None:
    options = bert(tmp_path / "bert", shard=True, norm="layer")
    if method == "hgclr":
        options = {name: value for name, value in options.items() if name not in (*TREE, "norm")}
        options |= {"method": "hgclr", "heads": 2}
        assert together(tmp_path / "two", **options) == {0}
        return  # its views are drawn by chance: it is enough that it can
    assert together(tmp_path / "two", **options) == {0}
    train_with(tmp_path / "one", **options)
    assert_same(tmp_path / "one", tmp_path / "two")
    assert not leftovers(tmp_path / "two")


def test_weights_that_were_shared_out_go_on_in_any_number_of_processes(tmp_path: Path) -> None:
    options = bert(tmp_path / "bert", shard=True, norm="layer", epochs=6)
    train_with(tmp_path / "one", **options)
    together(tmp_path / "two", when_logged(2), **options)
    state = tmp_path / "two" / TRAINING / "checkpoint.safetensors"
    assert state.is_file()
    together(tmp_path / "two", when_logged(4), processes=3, **options)
    assert state.is_file()
    train_with(tmp_path / "two", **options)
    assert_same(tmp_path / "one", tmp_path / "two")


def test_the_log_tells_of_every_validation_document_once(tmp_path: Path) -> None:
    """Three processes, batches of other numbers: counts and losses are added up over all, none twice."""
    options = TEXTRCNN | {"norm": "layer", "val": 7, "epochs": 1}
    assert together(tmp_path / "three", processes=3, **options) == {0}
    train_with(tmp_path / "one", **options)
    one, three = (log_lines(tmp_path / name / TRAINING)[-1] for name in ("one", "three"))
    assert one["micro_f1"] == three["micro_f1"]
    assert one["macro_f1"] == three["macro_f1"]
    assert one["val_loss"] == pytest.approx(three["val_loss"], abs=1e-6)


if __name__ == "__main__":
    train_with(sys.argv[1], **json.loads(sys.argv[2]))
