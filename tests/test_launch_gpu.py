"""On a GPU, what several processes would share: a step in parts is the step as a whole. Runs with `--noconftest`."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hitin import HierarchicalTextClassifier
from hitin.devices import accelerated
from hitin.settings import Run
from hitin.training.steps import Steps
from tests.training_harness import BERT, STEADY, TAXONOMY, TINY, documents, model, tiny_bert, weights

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")


def after_twenty_steps(parts: int, **options: Any) -> tuple[dict[str, Tensor], list[float]]:
    """The weights after 20 steps of 16 documents, each in so many batches; and the losses."""
    run = Run.of(**TINY | STEADY | {"precision": "fp32"} | options)
    built = model(run)
    texts, labels = documents(64)
    ids = [TAXONOMY.closure([TAXONOMY.index(name) for name in names]) for names in labels]
    examples = built.examples(texts, ids).in_multiples(8)
    chance = np.random.default_rng(0)
    with accelerated("cuda", run.training) as accelerator:
        steps = Steps(built, examples, None, accelerator, 20)
        built.network.train()
        losses = []
        for step in range(20):
            rows = chance.permutation(64)[:16]
            losses.append(float(steps.take(step, 4 * step, examples, np.array_split(rows, parts))))
        return {name: weight.detach().cpu() for name, weight in built.network.named_parameters()}, losses


@pytest.mark.parametrize("parts", [2, 3, 4])
@pytest.mark.parametrize("record", [False, True])
def test_accumulated_steps_have_the_weights_of_whole_ones(parts: int, record: bool) -> None:
    whole, losses = after_twenty_steps(1, record=False)
    in_parts, of_parts = after_twenty_steps(parts, record=record)
    assert of_parts == pytest.approx(losses, rel=1e-4)
    for name, weight in whole.items():
        assert torch.allclose(weight, in_parts[name], atol=1e-4), name


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process, as the only one of a group that talks by NCCL."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    said = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}
    for name, value in said.items():
        monkeypatch.setenv(name, value)
    torch.distributed.init_process_group("nccl")
    yield
    torch.distributed.destroy_process_group()


def trained(encoder: str, out: Path, **options: Any) -> dict[str, Tensor]:
    """The weights after 20 steps of a tiny BERT under HiTIN."""
    steady = {"norm": "layer", "dropout": 0, "leaf_dropout": 0, "encoder_learning_rate": 0.002, "epochs": 4}
    found = HierarchicalTextClassifier(TAXONOMY, device="cuda", encoder=encoder, **BERT | steady | options)
    return {name: each.cpu() for name, each in weights(found.fit(*documents(40), documents(9, 1), out=out)).items()}


@pytest.mark.parametrize(("precision", "most"), [("fp32", 1e-4), ("bf16", 0.05)])
@pytest.mark.usefixtures("group")
def test_weights_that_are_shared_out_on_a_gpu_become_the_same(precision: str, most: float, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    encoder = tiny_bert(tmp_path / "bert", dropout=0.0)
    plain = trained(encoder, tmp_path / "plain", precision=precision, record=False)
    shared = trained(encoder, tmp_path / "shared", precision=precision, record=False, shard=True)
    assert plain.keys() == shared.keys()
    for name, weight in plain.items():
        assert torch.allclose(weight, shared[name], atol=most), name
