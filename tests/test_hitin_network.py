"""The folded network against the one written out from the paper's equations; its start, its sizes, its memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional

from hitin import HierarchicalTextClassifier, Taxonomy
from hitin.encoders.interface import Widths
from hitin.encoders.textrcnn import TextRCNN, TextRCNNSettings
from hitin.encoders.transformer import Transformer, TransformerSettings
from hitin.errors import InputError
from hitin.methods import node_norm
from hitin.methods.flat import Flat, FlatSettings
from hitin.methods.hitin import HiTIN, HiTINSettings, LeafLayer, MixedLeafLayer, _sum_of_children
from hitin.methods.node_norm import NodeBatchNorm, remember
from tests.networks import Largest, NaiveHiTIN, label_tree, two_layers, vectors
from tests.strategies import taxonomies

POOLINGS = ("sum", "mean", "max", "root")
WIDTH = 5


@contextmanager
def double_precision() -> Iterator[None]:
    """What is made is made in it: a network that was made in single precision has constants rounded to that."""
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


def hitin(taxonomy: Taxonomy, width: int = WIDTH, seed: int = 0, **options: Any) -> tuple[HiTIN, HiTINSettings]:
    """A network in double precision whose parameters and statistics have left their start."""
    chosen = HiTINSettings(**{"width": 4, "dropout": 0.0, "leaf_dropout": 0.0} | options)
    torch.manual_seed(seed)
    with double_precision():
        module = HiTIN(taxonomy, Widths.of(width), chosen)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
        for norm in module.modules():
            if isinstance(norm, NodeBatchNorm):
                norm.running_mean.normal_()
                norm.running_var.uniform_(0.5, 2)
    return module, chosen


def assert_equal(module: HiTIN, naive: NaiveHiTIN, text: Tensor, seed: int = 0) -> None:
    """Logits, gradients and statistics are the same both ways."""
    texts = [text.clone().requires_grad_() for _ in range(2)]
    torch.manual_seed(seed)
    logits = module(vectors(texts[0]))
    torch.manual_seed(seed)
    expected = naive(texts[1])
    close(logits, expected)
    weights = torch.randn(logits.shape, dtype=logits.dtype, generator=torch.Generator().manual_seed(seed))
    for value in (logits, expected):
        torch.autograd.backward((value * weights).sum())
    close(texts[0].grad, texts[1].grad)
    for name, parameter in module.named_parameters():
        close(_gradient(parameter), _gradient(naive.parameters[name]))
    for name in module.state_dict().keys() & naive.buffers.keys():
        close(module.get_buffer(name), naive.buffers[name])


def close(found: Tensor | None, expected: Tensor | None) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


@settings(max_examples=100)
@given(
    taxonomy=taxonomies(),
    documents=st.integers(1, 4),
    seed=st.integers(0, 2**20),
    training=st.booleans(),
    many=st.sampled_from([0, 1 << 20]),
    options=st.fixed_dictionaries(
        {
            "height": st.integers(1, 4),
            "pooling": st.sampled_from(POOLINGS),
            "norm": st.sampled_from(["batch", "layer"]),
            "leaves": st.sampled_from(["paper", "mixed"]),
            "tree": st.sampled_from(["optimal", "random"]),
        }
    ),
)
def test_folded_and_written_out_networks_are_the_same(
    taxonomy: Taxonomy, documents: int, seed: int, training: bool, many: int, options: dict[str, Any]
) -> None:
    module, chosen = hitin(taxonomy, seed=seed, **options)
    module.train(training)
    for batch in range(2):  # the second with the statistics that the first left
        module.zero_grad()
        naive = NaiveHiTIN(module, chosen)
        text = torch.randn(documents, WIDTH, dtype=torch.float64, generator=torch.Generator().manual_seed(seed + batch))
        with patch.object(node_norm, "_MANY", many):  # the norm of the first layer folded, too, or not
            assert_equal(module, naive, text, seed)


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("leaves", ["paper", "mixed"])
def test_dropout_is_on_the_text_or_on_each_leaf_and_on_the_vector_of_the_tree(leaves: str, pooling: str) -> None:
    module, chosen = hitin(label_tree(12, 3), leaves=leaves, pooling=pooling, dropout=0.4, leaf_dropout=0.3)
    naive = NaiveHiTIN(module, chosen)
    assert_equal(module, naive, torch.randn(4, WIDTH, dtype=torch.float64), seed=5)
    naive.training = module.eval().training
    assert_equal(module, naive, torch.randn(4, WIDTH, dtype=torch.float64), seed=6)


def leaves_of(module: HiTIN, text: Tensor) -> object:
    return module.leaves(text, module.get_buffer("parents_0"))


def test_mixed_leaves_are_made_only_where_each_has_a_dropout() -> None:
    text = torch.randn(3, WIDTH, dtype=torch.float64)
    module, _ = hitin(label_tree(12), leaves="mixed", leaf_dropout=0.1)
    assert isinstance(leaves_of(module, text), MixedLeafLayer)
    assert isinstance(leaves_of(module.eval(), text), LeafLayer)
    module, _ = hitin(label_tree(12), leaves="mixed", leaf_dropout=0.0)
    assert isinstance(leaves_of(module, text), LeafLayer)


@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize("pooling", ["sum", "mean", "root"])
@pytest.mark.parametrize("training", [True, False])
def test_no_tensor_of_documents_by_labels_by_width_exists(pooling: str, norm: str, training: bool) -> None:
    labels, documents, width = 60, 11, 7
    tree = two_layers([label % 6 for label in range(labels)])
    chosen = HiTINSettings(pooling=pooling, norm=norm, width=width)  # type: ignore[arg-type]
    module = HiTIN(label_tree(labels), Widths.of(width), chosen, tree).train(training)
    text = torch.randn(documents, width, requires_grad=True)
    with Largest() as folded:
        torch.autograd.backward(module(vectors(text)).sum())
    assert folded.numbers == max(module.classifier.weight.numel(), documents * labels)
    with Largest() as written_out:
        torch.autograd.backward(NaiveHiTIN(module, chosen)(text).sum())
    assert written_out.numbers == documents * labels * width


@pytest.mark.parametrize("height", [1, 2, 3, 4])
@pytest.mark.parametrize("labels", [1, 30])
def test_a_last_batch_of_one_document_can_be_learnt_from(labels: int, height: int) -> None:
    module, _ = hitin(label_tree(labels), height=height, norm="batch")
    before = {name: buffer.clone() for name, buffer in module.named_buffers()}
    logits = module(vectors(torch.randn(1, WIDTH, dtype=torch.float64)))
    torch.autograd.backward(logits.sum())
    assert logits.isfinite().all()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in module.parameters())
    top = f"layers.{height - 1}.second_norm"  # of the root alone
    close(module.get_buffer(f"{top}.running_mean"), before[f"{top}.running_mean"])
    close(module.get_buffer(f"{top}.running_var"), before[f"{top}.running_var"])


def seen_by(norm: NodeBatchNorm, batch: Tensor) -> None:
    norm(batch)
    remember([norm])


def test_statistics_are_the_mean_of_the_first_batches() -> None:
    norm = NodeBatchNorm(3).double()
    batches = [torch.randn(4, 2, 3, dtype=torch.float64) * 9 + 100 for _ in range(3)]
    for batch in batches:
        seen_by(norm, batch)
    rows = [batch.reshape(-1, 3) for batch in batches]
    close(norm.running_mean, torch.stack([each.mean(dim=0) for each in rows]).mean(dim=0))
    close(norm.running_var, torch.stack([each.var(dim=0) for each in rows]).mean(dim=0))
    for _ in range(100):
        seen_by(norm, batches[0])
    before = norm.running_mean.clone()
    seen_by(norm, batches[1])
    close(norm.running_mean, 0.9 * before + 0.1 * rows[1].mean(dim=0))


def toy(labels: int, documents: int = 32, width: int = 16) -> tuple[Tensor, Tensor]:
    """Documents of four kinds, each with a label and its ancestors in a `label_tree`."""
    chance = torch.Generator().manual_seed(0)
    kinds = torch.arange(documents) % 4
    noise = 0.3 * torch.randn(documents, width, generator=chance)
    text = torch.randn(4, width, generator=chance)[kinds] + noise
    targets = torch.zeros(documents, labels)
    for document, kind in enumerate(kinds.tolist()):
        label = labels - 1 - kind * (labels // 5)
        while label:
            targets[document, label] = 1
            label = (label - 1) // 10
        targets[document, 0] = 1
    return text.relu(), targets


SIZES_AND_RATES = [
    *((10, 1e-3), (10, 5e-3), (1000, 5e-3)),
    *(
        pytest.param(labels, rate, marks=pytest.mark.slow)
        for labels, rate in ((1000, 1e-3), (5000, 1e-3), (5000, 5e-3))
    ),
]


@pytest.mark.parametrize(("labels", "rate"), SIZES_AND_RATES)
@pytest.mark.parametrize("height", [1, 2, 3, 4])
def test_the_start_learns_whatever_the_size_of_the_tree(height: int, labels: int, rate: float) -> None:
    text, targets = toy(labels)
    taxonomy = label_tree(labels)
    tree = HiTIN(taxonomy, Widths.of(1), HiTINSettings(height=height, width=1)).tree
    for pooling in POOLINGS:
        for norm in ("batch", "layer"):
            torch.manual_seed(0)
            chosen = HiTINSettings(height=height, width=16, pooling=pooling, norm=norm)  # type: ignore[arg-type]
            module = HiTIN(taxonomy, Widths.of(text.shape[1]), chosen, tree)
            module.start(targets.sum(dim=0).long().numpy(), len(targets))
            first = module.classifier.bias.sum(dim=0)
            spread = (module(vectors(text)) - first).std().item()
            assert 0.1 < spread < 2, (pooling, norm)
            prior = functional.binary_cross_entropy_with_logits(first.expand_as(targets), targets).item()
            losses = trained(module, text, targets, rate, steps=20)
            assert losses[0] < 1.3 * prior, (pooling, norm)
            assert max(losses) < 1.1 * losses[0], (pooling, norm)
            assert losses[-1] < (0.95 if rate < 5e-3 else 0.85) * losses[0], (pooling, norm)


def trained(module: HiTIN, text: Tensor, targets: Tensor, rate: float, steps: int) -> list[float]:
    """The loss before each step and after the last."""
    optimiser = torch.optim.Adam(module.parameters(), lr=rate)
    losses = []
    for _ in range(steps):
        loss = functional.binary_cross_entropy_with_logits(module(vectors(text)), targets)
        losses.append(loss.item())
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
    module.eval()
    return [*losses, functional.binary_cross_entropy_with_logits(module(vectors(text)), targets).item()]


@pytest.mark.parametrize("leaves", ["paper", "mixed"])
def test_labels_begin_as_probable_as_they_are_frequent(leaves: str) -> None:
    module, _ = hitin(label_tree(4), leaves=leaves)
    counts = np.array([40_000, 20_000, 2, 0])
    module.start(counts, 40_000)
    expected = (counts + 0.5) / 40_001
    probable = module.classifier.bias.sum(dim=0).sigmoid().double()
    torch.testing.assert_close(probable, torch.from_numpy(expected), rtol=1e-4, atol=0)


def test_sums_over_many_children_lose_nothing_in_half_precision() -> None:
    nodes = torch.ones(1, 1000, 1, dtype=torch.bfloat16)  # whose sum, one by one, stays at 256
    parents = torch.arange(1000) % 2
    assert _sum_of_children(nodes, parents, 2).tolist() == [[[500.0], [500.0]]]


@pytest.mark.parametrize("norm", ["batch", "layer"])
@pytest.mark.parametrize("leaves", ["paper", "mixed"])
@pytest.mark.parametrize("training", [False, True])
def test_texts_that_come_in_half_precision_are_carried_up(leaves: str, norm: str, training: bool) -> None:
    settings = HiTINSettings(width=8, leaves=leaves, norm=norm)  # type: ignore[arg-type]
    module = HiTIN(label_tree(30), Widths.of(16), settings).train(training)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = module(vectors(torch.randn(4, 16).bfloat16()))
        assert logits.shape == (4, 30)
        logits.float().sum().backward()


@pytest.mark.parametrize("many", [0, 1 << 20])
def test_halves_are_precise_enough(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitin.methods.node_norm._MANY", many)
    torch.manual_seed(0)
    module = HiTIN(label_tree(200), Widths.of(64), HiTINSettings(width=64, leaf_dropout=0.0))
    text = torch.randn(32, 64).relu()
    full = module.read_out(text)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half = module.read_out(text)
    error = (half - full).view(32, 3, 64).std(dim=(0, 2))
    assert (error < 0.03 * (full - full.mean(dim=0)).view(32, 3, 64).std(dim=(0, 2))).all()


def test_restored_keeps_the_tree_that_was_saved(monkeypatch: pytest.MonkeyPatch) -> None:
    taxonomy = label_tree(30)
    module, _ = hitin(taxonomy, height=3, tree="random", tree_seed=7)
    assert module.tree != HiTIN(taxonomy, Widths.of(WIDTH), HiTINSettings(height=3)).tree
    monkeypatch.setattr("hitin.methods.hitin.coding_tree", None)
    with double_precision():
        again = HiTIN.restored(taxonomy, Widths.of(WIDTH), HiTINSettings(height=3, width=4), module.state_dict())
    again.load_state_dict(module.state_dict())
    assert again.tree == module.tree
    text = vectors(torch.randn(3, WIDTH, dtype=torch.float64))
    close(again.eval()(text), module.eval()(text))


def parameters(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


def test_networks_have_as_many_parameters_as_the_published_ones(shared: Path) -> None:
    taxonomy = Taxonomy.read(shared / "hierarchies" / "wos.taxonomy")
    labels = len(taxonomy)
    textrcnn = parameters(TextRCNN(50_002, TextRCNNSettings(hidden=64, layers=1)))
    assert (labels, textrcnn) == (141, 15_256_644)
    for width, head, flat in ((300, 601_245, 42_441), (768, 3_304_413, 108_429)):
        assert parameters(HiTIN(taxonomy, Widths.of(width), HiTINSettings(width=width, leaves="mixed"))) == head
        assert parameters(Flat(taxonomy, Widths.of(width), FlatSettings())) == flat
        leaves = width * width + labels + labels * width  # W_p, W_d, B_H
        layers = 2 * 2 * (width * width + width + 2 * width)
        classifier = 3 * width * labels + labels
        assert parameters(HiTIN(taxonomy, Widths.of(width), HiTINSettings(width=0))) == leaves + layers + classifier
    assert (textrcnn + 42_441, textrcnn + 601_245) == (15_299_085, 15_857_889)


def test_networks_on_bert_have_as_many_parameters_as_the_published_ones() -> None:
    transformers = pytest.importorskip("transformers")
    with torch.device("meta"):
        bert = Transformer(
            transformers.BertModel(transformers.BertConfig()), TransformerSettings(text_pooling="pooler")
        )
    assert parameters(bert) == 109_482_240
    assert (parameters(bert) + 108_429, parameters(bert) + 3_304_413) == (109_590_669, 112_786_653)


@pytest.mark.parametrize(
    "wrong",
    [
        {"height": 0},
        {"width": -1},
        {"dropout": 1.0},
        {"leaf_dropout": -0.1},
        {"pooling": "median"},
        {"leaves": "folded"},
        {"norm": "none"},
        {"tree": "oak"},
    ],
)
def test_settings_that_make_no_network_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        HiTINSettings(**wrong)


@pytest.mark.parametrize("leaves", ["paper", "mixed"])
def test_it_learns_64_documents_by_heart(leaves: str) -> None:
    taxonomy = label_tree(20, 4)
    chance = np.random.default_rng(0)
    texts = [" ".join(chance.choice([f"word{number}" for number in range(60)], size=8)) for _ in range(64)]
    labels = [[str(number % len(taxonomy)), str(chance.integers(len(taxonomy)))] for number in range(64)]
    small: dict[str, Any] = {"embedding": 24, "hidden": 16, "layers": 1, "filters": 16, "width": 32, "min_count": 1}
    classifier = HierarchicalTextClassifier(
        taxonomy,
        **small,
        leaves=leaves,
        device="cpu",
        epochs=40,
        batch_size=16,
        learning_rate=1e-2,
        embedding_dropout=0.0,
        dropout=0.1,
        consistency=0.0,
        validation=0.0,
    )
    scores = classifier.fit(texts, labels).evaluate(texts, labels)
    assert (scores.micro_f1, scores.macro_f1) == (1.0, 1.0)
