"""HTCInfoMax: its losses against loops over documents, tokens and labels; which texts are wrong ones; its sizes."""

import math
from collections import Counter
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from hitin import Taxonomy
from hitin.batches import Batch
from hitin.encoders.interface import Encoded, Widths
from hitin.encoders.textrcnn import TextRCNN, TextRCNNSettings
from hitin.methods.htcinfomax import HTCInfoMax, HTCInfoMaxSettings, Information, PairJudge, derangement, mean_of_labels
from hitin.methods.interface import Fidelity, Seen, trainable
from hitin.methods.structure import StructureName
from tests.training_harness import as_seen

CPU = torch.device("cpu")
TAXONOMY = Taxonomy.from_nested({"A": ["B", "C"], "D": {"E": ["F"]}})
WIDTH = 6
TARGETS = torch.tensor([[1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0], [0, 1, 0, 0, 1, 1.0]])
LENGTHS = torch.tensor([4, 1, 2, 3])


def texts(seed: int = 0) -> Encoded:
    """Documents with anything at all where padding is."""
    tokens = torch.randn(4, 5, WIDTH, generator=torch.Generator().manual_seed(seed))
    return Encoded(tokens.mean(dim=1), tokens, torch.arange(5) < LENGTHS[:, None])


def information(fidelity: Fidelity = "clean", **options: Any) -> Information:
    torch.manual_seed(1)
    return Information(WIDTH, len(TAXONOMY), HTCInfoMaxSettings(fidelity=fidelity, **options))


def slow_convolution(layer: nn.Conv1d, rows: list[Tensor]) -> list[Tensor]:
    """What three places give for the one in their middle, those beyond the ends being 0."""
    assert layer.bias is not None
    weight, bias = layer.weight, layer.bias
    padded = [torch.zeros_like(rows[0]), *rows, torch.zeros_like(rows[0])]
    return [
        bias + sum((weight[:, :, at] @ padded[place + at] for at in range(3)), start=0) for place in range(len(rows))
    ]


def slow_judgement(judge: PairJudge, labels: Tensor, tokens: list[Tensor]) -> Tensor:
    first = [row.relu() for row in slow_convolution(judge.first, tokens)]
    second = slow_convolution(judge.second, first)
    values = torch.cat([sum(second, start=torch.zeros(512)) / len(second), labels])
    parameters = dict(judge.layers.named_parameters())
    for layer in (0, 2, 4):
        values = parameters[f"{layer}.weight"] @ values + parameters[f"{layer}.bias"]
        values = values if layer == 4 else values.relu()
    return values[0]


def slow_losses(module: Information, labels: Tensor, text: Encoded, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """The two losses and the weight of the first, document by document and label by label."""
    assert module.pairs
    assert module.prior
    assert module.mixing
    torch.manual_seed(seed)
    others = derangement(4, CPU) if module.is_clean else torch.randperm(4)
    drawn = torch.rand(len(labels), WIDTH)
    projected = [module.projection.weight @ row for row in labels]
    lengths = LENGTHS.tolist() if module.is_clean else [5] * 4
    tokens = [[text.tokens[document, place] for place in range(lengths[document])] for document in range(4)]
    wrong, right = [], []
    for document in (0, 1, 3):  # the third one has no labels
        own = [projected[label] for label in range(len(labels)) if TARGETS[document, label]]
        mean = sum(own, start=torch.zeros(WIDTH)) / len(own)
        wrong.append((1 + slow_judgement(module.pairs, mean, tokens[others[document]]).exp()).log())
        right.append((1 + (-slow_judgement(module.pairs, mean, tokens[document])).exp()).log())
    mutual = sum(wrong, start=torch.zeros(())) / 3 + sum(right, start=torch.zeros(())) / 3
    prior = torch.zeros(())
    for label, vector in enumerate(projected):
        real, learnt = module.prior(drawn[label]).sigmoid(), module.prior(vector).sigmoid()
        prior = prior - (real.log() + (1 - learnt).log())[0] / len(projected)
    every = [token for document in tokens for token in document]
    score = module.mixing.text.weight[0] @ (sum(every, start=torch.zeros(WIDTH)) / len(every))
    score = score + module.mixing.labels.weight[0] @ torch.cat(projected)
    score = score + module.mixing.text.bias[0] + module.mixing.labels.bias[0]
    return mutual, prior, 1 / (1 + (-score).exp())


@pytest.mark.parametrize("fidelity", ["clean", "upstream"])
def test_losses_and_their_weight_are_those_of_slow_loops(fidelity: Fidelity) -> None:
    module, text = information(fidelity), texts()
    labels = torch.randn(len(TAXONOMY), WIDTH)
    mask = text.mask if fidelity == "clean" else torch.ones_like(text.mask)
    mutual, prior, weight = slow_losses(module, labels, text, seed=5)
    torch.manual_seed(5)
    found = module(labels, text.tokens, mask, TARGETS)
    torch.testing.assert_close(found["mutual_information"], weight * mutual)
    torch.testing.assert_close(found["prior_matching"], (1 - weight) * prior)
    assert 0 < weight < 1


@pytest.mark.parametrize("fidelity", ["clean", "upstream"])
def test_one_loss_alone_counts_in_full(fidelity: Fidelity) -> None:
    labels, text = torch.randn(len(TAXONOMY), WIDTH), texts()
    mutual = information(fidelity, prior_matching=False)
    prior = information(fidelity, mutual_information=False)
    assert mutual.mixing is None
    assert prior.mixing is None
    assert mutual(labels, text.tokens, text.mask, TARGETS).keys() == {"mutual_information"}
    assert prior(labels, text.tokens, text.mask, TARGETS).keys() == {"prior_matching"}


def test_without_either_loss_there_is_nothing_but_the_attention() -> None:
    settings = HTCInfoMaxSettings(mutual_information=False, prior_matching=False)
    method = HTCInfoMax(TAXONOMY, Widths.of(WIDTH), settings)
    assert method.auxiliary is None
    assert not method.losses(seen(method, texts(), TARGETS))


@given(st.integers(2, 40), st.integers(0, 10**6))
def test_every_document_is_given_the_text_of_another_and_every_text_is_given(count: int, seed: int) -> None:
    torch.manual_seed(seed)
    others = derangement(count, CPU)
    assert sorted(others.tolist()) == list(range(count))
    assert not (others == torch.arange(count)).any()


def test_each_other_document_comes_about_as_often() -> None:
    torch.manual_seed(0)
    counts = Counter(int(derangement(5, CPU)[2]) for _ in range(4000))
    assert counts.keys() == {0, 1, 3, 4}
    assert all(abs(count - 1000) < 120 for count in counts.values())  # 4 standard deviations


def seen(method: HTCInfoMax, text: Encoded, targets: Tensor) -> Seen:
    """What a method is shown in training; its encoder is not asked again."""
    unused: Any = None
    return as_seen(unused, Batch(None, None, targets, None), text, method(text))


def built(fidelity: Fidelity = "clean", **options: Any) -> HTCInfoMax:
    torch.manual_seed(2)
    return HTCInfoMax(TAXONOMY, Widths.of(WIDTH), HTCInfoMaxSettings(fidelity=fidelity, **options))


def test_one_document_alone_has_no_wrong_text_and_its_term_is_left_out() -> None:
    method, text = built(), Encoded(*(part[:1] for part in texts()))
    losses = method.losses(seen(method, text, TARGETS[:1]))
    assert losses["mutual_information"] == 0
    assert losses["prior_matching"] > 0
    torch.autograd.backward(sum(losses.values(), start=torch.zeros(())))
    assert isinstance(method.auxiliary, Information)
    assert all(parameter.grad is not None for parameter in method.auxiliary.parameters())  # as several processes need


def test_documents_without_labels_are_no_trouble() -> None:
    method = built()
    losses = method.losses(seen(method, texts(), torch.zeros_like(TARGETS)))
    assert losses["mutual_information"] == 0
    torch.autograd.backward(sum(losses.values(), start=torch.zeros(())))
    assert all(found.grad is None or found.grad.isfinite().all() for found in method.parameters())


def test_padding_changes_neither_logits_nor_losses() -> None:
    method = built(dropout=0).eval()
    text = texts()
    other = text._replace(tokens=torch.where(text.mask[:, :, None], text.tokens, 100.0))
    torch.testing.assert_close(method(text), method(other))
    found = []
    for each in (text, other):
        torch.manual_seed(0)
        found.append(method.losses(seen(method, each, TARGETS)))
    torch.testing.assert_close(found[0], found[1])


def test_as_published_padding_is_attended_to() -> None:
    method, text = built("upstream").eval(), texts()
    assert not torch.allclose(method(text), method(text._replace(tokens=text.tokens * text.mask[:, :, None])))


def test_as_published_what_judges_does_not_learn_but_the_labels_do() -> None:
    method = built("upstream")
    assert isinstance(method.auxiliary, Information)
    learning = {name for name, parameter in method.auxiliary.named_parameters() if parameter.requires_grad}
    assert learning == {"projection.weight"}
    losses = method.losses(seen(method, texts(), TARGETS))
    torch.autograd.backward(sum(losses.values(), start=torch.zeros(())))
    assert method.labels.table.grad is not None
    assert method.labels.table.grad.any()


def test_losses_in_mixed_precision_are_in_full_precision() -> None:
    method, text = built(dropout=0).eval(), texts()
    torch.manual_seed(0)
    full = method.losses(seen(method, text, TARGETS))
    torch.manual_seed(0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = method.losses(seen(method, text, TARGETS))
        mean = mean_of_labels(text.vector, torch.ones(1, 4))
    torch.testing.assert_close(mean[0], text.vector.mean(dim=0))
    for name, loss in full.items():
        assert mixed[name].dtype == torch.float32
        assert math.isclose(loss.item(), mixed[name].item(), rel_tol=0.05)


@pytest.mark.parametrize(("structure", "head"), [("gcn", 8_177_325), ("tree-lstm", 8_679_093)])
def test_as_published_it_has_as_many_parameters_as_the_published_one(structure: StructureName, head: int) -> None:
    settings = HTCInfoMaxSettings(structure=structure, fidelity="upstream")
    taxonomy = Taxonomy.from_nested({f"{top}": [f"{top}.{area}" for area in range(19)] for top in range(7)} | {"x": []})
    assert len(taxonomy) == 141
    encoder = TextRCNN(50_002, TextRCNNSettings(hidden=150, layers=1))
    HTCInfoMax.adapt(encoder, settings)
    assert sum(parameter.numel() for parameter in encoder.parameters()) == 15_677_700
    assert trainable(encoder) == 15_677_700 - 270_300
    method = HTCInfoMax(taxonomy, encoder.widths, settings)
    assert sum(parameter.numel() for parameter in method.parameters()) == head


def test_much_memory_is_told_of_before_it_is_taken() -> None:
    many = Taxonomy.from_edges([], labels=[f"{label}" for label in range(3000)])
    assert "htcinfomax" in (HTCInfoMax.warning(many, Widths.of(300), HTCInfoMaxSettings()) or "")
    assert HTCInfoMax.warning(TAXONOMY, Widths.of(300), HTCInfoMaxSettings()) is None
