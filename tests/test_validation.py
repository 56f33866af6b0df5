"""Scores of validation documents, added up where the network computes: the same as counted batch by batch."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from hypothesis import given
from hypothesis import strategies as st

from hitin.batches import Examples
from hitin.devices import accelerated
from hitin.encoders.bag import Bag, BagSettings
from hitin.losses import classification_loss
from hitin.metrics import Counts, macro_f1, micro_f1
from hitin.network import (
    CPU_TOKENS_AT_ONCE,
    EVALUATION_BATCH,
    TOKENS_AT_ONCE,
    _Fetched,
    logits_of,
    scoring_batches,
    tokens_at_once,
)
from hitin.neural import NeuralModel
from hitin.settings import Run
from hitin.tokens import Ragged
from hitin.training.validation import counts_of, validation_scores
from tests.training_harness import TAXONOMY, TINY, documents


@pytest.fixture
def model() -> NeuralModel:
    return NeuralModel.build(TAXONOMY, Run.of(**TINY), documents(40)[0])


@pytest.fixture
def accelerator() -> Iterator[Accelerator]:
    with accelerated("cpu", Run.of(**TINY).training) as found:
        yield found


def labelled(model: NeuralModel, count: int) -> Examples:
    texts, labels = documents(count)
    texts = [" ".join([text] * (1 + number % 5)) for number, text in enumerate(texts)]
    return model.examples(texts, [TAXONOMY.closure([TAXONOMY.index(label[0])]) for label in labels])


def test_scores_are_those_of_one_batch_after_the_other(
    model: NeuralModel, accelerator: Accelerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitin.network.CPU_TOKENS_AT_ONCE", 40)
    val, network = labelled(model, 70), model.network.eval()
    torch.nn.init.normal_(next(reversed(list(network.method.parameters()))), std=2)  # so that some labels are given
    told: list[int] = []
    found = validation_scores(network, val, accelerator, told.append)
    loss, counts = 0.0, Counts.zero(len(TAXONOMY))
    with torch.no_grad():
        for rows in scoring_batches(val, 40):
            batch = val.batch(rows)
            logits = network(batch)[1]
            loss += float(classification_loss(logits, batch.targets)) * len(rows)
            counts += Counts.of((logits > 0).numpy(), (batch.targets > 0.5).numpy())
    assert len(told) > 5
    assert sum(told) == 70
    assert counts.predicted.any()
    assert found == {"val_loss": loss / 70, "micro_f1": micro_f1(counts), "macro_f1": macro_f1(counts)}


@pytest.mark.parametrize("processes", [1, 2, 7])
def test_several_processes_share_the_work(
    processes: int, model: NeuralModel, accelerator: Accelerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its batches, the last of seven none; what they reduce is added up here."""
    monkeypatch.setattr("hitin.network.EVALUATION_BATCH", 8)
    val = labelled(model, 40)
    wanted = validation_scores(model.network, val, accelerator)
    parts: list[list[torch.Tensor]] = []
    for rank in range(processes):
        part: list[torch.Tensor] = []
        other: Any = _Rank(accelerator, rank, processes, part)
        validation_scores(model.network, val, other)
        parts.append(part)
    if processes == 1:
        assert parts == [[]]
        return
    table, loss = (torch.stack(each).sum(dim=0) for each in zip(*parts, strict=True))
    counts = Counts(*table.numpy())
    assert float(loss) / 40 == pytest.approx(wanted["val_loss"], rel=1e-12)
    assert (micro_f1(counts), macro_f1(counts)) == (wanted["micro_f1"], wanted["macro_f1"])


class _Rank:
    """An accelerator that takes itself for one of several, and remembers what it gives to the others."""

    def __init__(self, accelerator: Accelerator, rank: int, processes: int, given: list[torch.Tensor]) -> None:
        self.device, self.autocast = accelerator.device, accelerator.autocast
        self.process_index, self.num_processes, self.given = rank, processes, given

    def reduce(self, tensor: torch.Tensor, how: str) -> torch.Tensor:
        assert how == "sum"
        self.given.append(tensor.clone())
        return tensor


@given(st.integers(1, 6), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_counts_of_tensors_are_counts_of_tables(rows: int, labels: int, seed: int) -> None:
    given_labels, actual = np.random.default_rng(seed).random((2, rows, labels)) < 0.5
    wanted = Counts.of(given_labels, actual)
    found = counts_of(torch.from_numpy(given_labels), torch.from_numpy(actual))
    assert found.dtype == torch.int64
    assert found.tolist() == [wanted.true_positives.tolist(), wanted.predicted.tolist(), wanted.actual.tolist()]


# Batches for scoring.


@given(st.lists(st.integers(1, 300), max_size=700), st.sampled_from([64, 4096, 65536]))
def test_batches_hold_every_document_once_and_no_more_tokens_than_wanted(lengths: list[int], tokens: int) -> None:
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    rows = Ragged(np.ones(starts[-1], dtype=np.int32), starts)
    batches = scoring_batches(Examples(rows, Ragged.of([()] * len(lengths)), 1), tokens)
    assert sorted(row for batch in batches for row in batch.tolist()) == list(range(len(lengths)))
    for batch in batches:
        longest = max(lengths[row] for row in batch)
        assert len(batch) == 1 or longest * len(batch) <= tokens
        assert len(batch) <= EVALUATION_BATCH


def test_a_cpu_reads_fewer_tokens_at_once_unless_they_cost_nothing(model: NeuralModel) -> None:
    examples, encoder = labelled(model, 3), model.network.encoder
    cpu, gpu = torch.device("cpu"), torch.device("cuda")
    assert tokens_at_once(encoder, examples, cpu) == CPU_TOKENS_AT_ONCE
    assert tokens_at_once(encoder, examples, gpu) == TOKENS_AT_ONCE
    assert tokens_at_once(Bag(9, BagSettings()), examples, cpu) == TOKENS_AT_ONCE
    assert tokens_at_once(encoder, examples.with_vectors(torch.zeros(3, 2)), cpu) == TOKENS_AT_ONCE


def test_logits_are_the_same_in_batches_of_any_size(model: NeuralModel, monkeypatch: pytest.MonkeyPatch) -> None:
    examples = labelled(model, 50)
    wanted = logits_of(model.network, examples)
    for tokens in (1, 40, 100):
        monkeypatch.setattr("hitin.network.CPU_TOKENS_AT_ONCE", tokens)
        assert logits_of(model.network, examples) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="for a GPU")
def test_what_a_gpu_made_is_fetched_whole() -> None:
    made = torch.randn(1000, 7, device="cuda")
    fetched = _Fetched(1000, 7)
    order = np.random.default_rng(0).permutation(1000)
    for start in range(0, 1000, 9):  # more batches than are waited for together
        rows = order[start : start + 9]
        fetched.take(rows, made[torch.from_numpy(rows).cuda()] * 1)
    fetched.wait()
    assert torch.equal(fetched.table, made.cpu())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="for a GPU")
def test_scores_of_a_gpu_are_those_of_the_cpu(model: NeuralModel, accelerator: Accelerator) -> None:
    val = labelled(model, 60)
    wanted = validation_scores(model.network, val, accelerator)
    logits = logits_of(model.network, val)
    model.to(torch.device("cuda"))
    with accelerated("cuda", Run.of(**TINY, precision="fp32").training) as gpu:
        assert validation_scores(model.network, val, gpu) == pytest.approx(wanted, abs=1e-4)
    assert logits_of(model.network, val) == pytest.approx(logits, abs=1e-4)


def test_batches_that_are_scored_side_by_side_are_alike_in_size() -> None:
    rows = Ragged.of([[1] * 190] * 64)
    batches = scoring_batches(Examples(rows, Ragged.of([()] * 64), 1), 4096)
    assert [len(batch) for batch in batches] == [16] * 4
    assert sorted(np.concatenate(batches).tolist()) == list(range(64))
