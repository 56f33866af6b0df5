"""HiAGM-TP, HiAGM-LA and flat: what they compute, how large they are, and what is told before they are built."""

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from hitin import HierarchicalTextClassifier, Taxonomy
from hitin.encoders.interface import Encoded, TextEncoder, Widths
from hitin.encoders.textrcnn import TextRCNN, TextRCNNSettings
from hitin.encoders.transformer import Transformer, TransformerSettings
from hitin.errors import InputError
from hitin.methods.flat import Flat, FlatSettings
from hitin.methods.hiagm_la import HiAGMLA, HiAGMLASettings, LabelVectors, label_attention
from hitin.methods.hiagm_tp import HiAGMTP, HiAGMTPSettings, TextPropagation
from hitin.methods.interface import Fidelity, Method, trainable
from hitin.methods.quadratic import AllLabelsClassifier, quadratic_warning
from hitin.methods.structure import StructureName
from hitin.neural import NeuralModel
from hitin.settings import Run
from hitin.watcher import Watcher
from tests.networks import Largest, label_tree, vectors
from tests.strategies import taxonomies
from tests.training_harness import TAXONOMY, TINY, documents, network_of

STRUCTURES = get_args(StructureName)
FIDELITIES = get_args(Fidelity)
WIDTHS = Widths(6, 4, 5)


def close(found: Tensor | None, expected: Tensor | None) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def moved(module: nn.Module) -> nn.Module:
    """In double precision, without dropout, its parameters away from their start."""
    module = module.double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.5)
    return module


def texts(lengths: list[int]) -> Encoded:
    """Documents of these lengths. What stands at padding is far from what tokens are."""
    longest = max(lengths)
    mask = torch.arange(longest) < torch.tensor(lengths)[:, None]
    tokens = torch.randn(len(lengths), longest, WIDTHS.token, dtype=torch.float64)
    tokens[~mask] = 1e3
    return Encoded(torch.randn(len(lengths), WIDTHS.document, dtype=torch.float64), tokens, mask)


LENGTHS = st.lists(st.integers(1, 5), min_size=1, max_size=4)


@settings(max_examples=50, deadline=None)
@given(labels=st.integers(1, 6), lengths=LENGTHS, seed=st.integers(0, 2**20))
def test_each_label_finds_the_tokens_that_are_like_it(labels: int, lengths: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    text, wanted = texts(lengths), torch.randn(labels, WIDTHS.token, dtype=torch.float64)
    found = label_attention(wanted, text.tokens, text.mask)
    for row, length in enumerate(lengths):
        for label in range(labels):
            scores = [float(wanted[label] @ text.tokens[row, place]) for place in range(length)]
            weights = np.exp(np.array(scores) - max(scores))
            expected = sum(weights[place] / weights.sum() * text.tokens[row, place] for place in range(length))
            assert isinstance(expected, Tensor)
            close(found[row, label], expected)


def test_what_is_masked_is_as_if_it_were_not_there() -> None:
    tokens, labels = torch.randn(2, 3, 4), torch.randn(5, 4)
    found = label_attention(labels, tokens, torch.tensor([[True, True, False]] * 2))
    everything = torch.ones(2, 3, dtype=torch.bool)
    torch.testing.assert_close(found, label_attention(labels, tokens[:, :2], everything[:, :2]))
    assert not torch.allclose(found, label_attention(labels, tokens, everything))


@pytest.mark.parametrize("name", STRUCTURES)
@settings(max_examples=15, deadline=None)
@given(taxonomy=taxonomies(), lengths=LENGTHS, seed=st.integers(0, 2**20))
def test_logits_come_from_what_all_labels_find(
    name: StructureName, taxonomy: Taxonomy, lengths: list[int], seed: int
) -> None:
    torch.manual_seed(seed)
    module = moved(HiAGMLA(taxonomy, WIDTHS, HiAGMLASettings(structure=name)))
    assert isinstance(module, HiAGMLA)
    text = texts(lengths)
    found = module(text)
    labels = module.labels.structure(module.labels.table)
    for row, length in enumerate(lengths):  # each document by itself, without padding
        tokens = text.tokens[row, :length]
        values = torch.cat([torch.softmax(tokens @ label, dim=0) @ tokens for label in labels])
        close(found[row], module.classifier.weight @ values + module.classifier.bias)


def test_as_published_labels_have_no_influence_and_do_not_learn() -> None:
    module = moved(HiAGMLA(TAXONOMY, WIDTHS, HiAGMLASettings(fidelity="upstream")))
    assert isinstance(module, HiAGMLA)
    text = texts([2, 3])
    close(module(text), module.classifier(text.vector[:, None].repeat(1, len(TAXONOMY), 1)))
    close(module(text), module.classifier(label_attention(module.labels(), text.vector[:, None], text.mask[:, :1])))
    learnt = {name for name, parameter in module.named_parameters() if parameter.requires_grad}
    assert learnt == {"classifier.weight", "classifier.bias"}


class Watched(TextEncoder):
    """Remembers whether it was told to leave out the document's vector."""

    left_out = False

    def leave_out_vector(self, *, keep: bool = False) -> None:
        assert not keep
        self.left_out = True


@pytest.mark.parametrize(("fidelity", "sight"), [("clean", "tokens"), ("upstream", "document")])
def test_labels_look_at_tokens_or_as_published_at_the_document(fidelity: Fidelity, sight: str) -> None:
    chosen, encoder = HiAGMLASettings(fidelity=fidelity), Watched()
    HiAGMLA.adapt(encoder, chosen)
    assert HiAGMLA.sight(chosen) == sight
    assert encoder.left_out == (sight == "tokens")
    width = {"tokens": WIDTHS.token, "document": WIDTHS.document}[sight]
    assert HiAGMLA(TAXONOMY, WIDTHS, chosen).labels.table.shape == (len(TAXONOMY), width)


def test_attention_makes_nothing_larger_than_labels_by_tokens_or_by_width() -> None:
    taxonomy = label_tree(200)
    module = HiAGMLA(taxonomy, Widths.of(8), HiAGMLASettings())
    text = Encoded(torch.randn(16, 8), torch.randn(16, 30, 8), torch.ones(16, 30, dtype=torch.bool))
    with Largest() as largest:
        torch.autograd.backward(module(text).sum())
    assert largest.numbers <= 200 * max(16 * 30, 200 * 8)  # (B, N, L), or the weights of the classifier


@pytest.mark.parametrize("name", STRUCTURES)
@settings(max_examples=15, deadline=None)
@given(taxonomy=taxonomies(), rows=st.integers(1, 3), fidelity=st.sampled_from(FIDELITIES), seed=st.integers(0, 99))
def test_the_document_becomes_a_vector_for_each_label(
    name: StructureName, taxonomy: Taxonomy, rows: int, fidelity: Fidelity, seed: int
) -> None:
    torch.manual_seed(seed)
    module = moved(HiAGMTP(taxonomy, WIDTHS, HiAGMTPSettings(structure=name, width=4, fidelity=fidelity)))
    assert isinstance(module, HiAGMTP)
    vector = torch.randn(rows, WIDTHS.document, dtype=torch.float64)
    projection = module.propagation.projection
    for row, logits in enumerate(module(vectors(vector))):
        parts = [
            projection.weight[4 * label : 4 * label + 4] @ vector[row] + projection.bias[4 * label : 4 * label + 4]
            for label in range(len(taxonomy))
        ]
        nodes = module.propagation.structure(torch.stack(parts))
        close(logits, module.classifier.weight @ torch.cat(list(nodes)) + module.classifier.bias)


def is_dropped(found: Tensor) -> float:
    """The part of zeros."""
    return float((found == 0).double().mean())


def test_dropout_is_where_the_settings_say() -> None:
    torch.manual_seed(0)
    table = LabelVectors(label_tree(400), 20, HiAGMLASettings(dropout=0.4))
    propagation = TextPropagation(label_tree(400), 6, HiAGMTPSettings(dropout=0.4, width=20))
    dropped: list[float] = []
    for module in (table, propagation):
        module.structure.register_forward_pre_hook(lambda _, given: dropped.append(is_dropped(given[0])))
    table()
    propagation(torch.randn(2, 6))
    np.testing.assert_allclose(dropped, 0.4, atol=0.03)


@pytest.mark.parametrize(
    ("kind", "settings"), [(Flat, FlatSettings), (HiAGMTP, HiAGMTPSettings), (HiAGMLA, HiAGMLASettings)]
)
def test_the_published_forms_drop_logits(kind: type[Method], settings: Any) -> None:
    torch.manual_seed(0)
    text = Encoded(torch.randn(50, 6), torch.randn(50, 3, 4), torch.ones(50, 3, dtype=torch.bool))
    parts: dict[Fidelity, float] = {"clean": 0, "upstream": 0.3}
    for fidelity, part in parts.items():
        module = kind(label_tree(200), WIDTHS, settings(dropout=0.3, fidelity=fidelity))
        assert is_dropped(module(text)) == pytest.approx(part, abs=0.03)
        assert is_dropped(module.eval()(text)) == 0


METHODS: list[tuple[type[Method], Any]] = [(HiAGMTP, HiAGMTPSettings(width=8)), (HiAGMLA, HiAGMLASettings())]


@pytest.mark.parametrize(("kind", "chosen"), METHODS)
def test_each_label_begins_as_probable_as_it_is_frequent(kind: type[Method], chosen: Any) -> None:
    taxonomy = label_tree(4)
    module = kind(taxonomy, Widths.of(8), chosen).eval()
    counts = np.array([40_000, 20_000, 2, 0])
    module.start(counts, 40_000)
    nn.init.zeros_(module.label_weights())  # what the text adds to it
    text = Encoded(torch.randn(1, 8), torch.randn(1, 2, 8), torch.ones(1, 2, dtype=torch.bool))
    expected = (counts + 0.5) / 40_001
    np.testing.assert_allclose(module(text).sigmoid().detach().numpy()[0], expected, rtol=1e-4)


@pytest.mark.parametrize(("kind", "chosen"), METHODS)
def test_first_logits_are_small_whatever_the_number_of_labels(kind: type[Method], chosen: Any) -> None:
    torch.manual_seed(0)
    for labels in (5, 100, 500):
        module = kind(label_tree(labels), Widths.of(8), chosen)
        text = Encoded(torch.randn(16, 8), torch.randn(16, 20, 8), torch.ones(16, 20, dtype=torch.bool))
        assert float(module(text).detach().std()) < 2
        assert module.label_weights().shape == (labels, labels * 8)


def numbers(*modules: nn.Module) -> int:
    """All parameters, also those that do not learn."""
    return sum(parameter.numel() for module in modules for parameter in module.parameters())


def test_networks_have_as_many_parameters_as_the_published_ones(shared: Path) -> None:
    taxonomy = Taxonomy.read(shared / "hierarchies" / "wos.taxonomy")
    with torch.device("meta"):
        encoder = TextRCNN(50_002, TextRCNNSettings(hidden=64, layers=1))
    widths = encoder.widths
    assert numbers(encoder, Flat(taxonomy, widths, FlatSettings(fidelity="upstream"))) == 15_299_085
    for name, label_attention_size, text_propagation_size in (
        ("gcn", 21_388_929, 34_078_929),
        ("tree-lstm", 21_890_697, 34_580_697),
    ):
        options: Any = {"structure": name, "fidelity": "upstream"}
        assert numbers(encoder, HiAGMLA(taxonomy, widths, HiAGMLASettings(**options))) == label_attention_size
        assert numbers(encoder, HiAGMTP(taxonomy, widths, HiAGMTPSettings(**options))) == text_propagation_size


def test_networks_on_bert_have_as_many_parameters_as_the_published_ones(shared: Path) -> None:
    transformers = pytest.importorskip("transformers")
    taxonomy = Taxonomy.read(shared / "hierarchies" / "wos.taxonomy")
    with torch.device("meta"):
        model = transformers.BertModel(transformers.BertConfig())
    bert = Transformer(model, TransformerSettings(text_pooling="pooler"))
    assert numbers(bert, Flat(taxonomy, bert.widths, FlatSettings(fidelity="upstream"))) == 109_590_669
    method = HiAGMTP(taxonomy, bert.widths, HiAGMTPSettings(fidelity="upstream"))
    assert numbers(bert, method) == trainable(bert) + trainable(method) == 148_100_925


@pytest.mark.parametrize(("kind", "chosen"), [(HiAGMTP, HiAGMTPSettings()), (HiAGMLA, HiAGMLASettings())])
def test_many_gigabytes_are_told_without_taking_them(kind: type[Method], chosen: Any) -> None:
    taxonomy, widths = label_tree(5_000), Widths.of(300)
    with Largest() as largest:
        warning = kind.warning(taxonomy, widths, chosen)
    assert largest.numbers == 0
    assert warning is not None
    assert "7,500,000,000 weights" in warning
    assert "120.0 GB" in warning
    assert ("smaller width" in warning) == (kind is HiAGMTP)
    assert kind.warning(label_tree(141), widths, chosen) is None


@pytest.mark.parametrize(("labels", "is_told"), [(456, False), (457, True)])
def test_a_gigabyte_is_worth_a_word(labels: int, is_told: bool) -> None:
    assert (300 * 16 * labels**2 > 10**9) == is_told
    assert (quadratic_warning("any", 300, labels, has_width=False) is not None) == is_told


class NotBuiltError(Exception):
    pass


class Notes(Watcher):
    def __init__(self) -> None:
        self.messages: list[str] = []

    def note(self, message: str) -> None:
        self.messages.append(message)


@pytest.mark.parametrize("method", ["hiagm-tp", "hiagm-la"])
def test_the_word_comes_before_the_layer_is_built(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise NotBuiltError

    monkeypatch.setattr(AllLabelsClassifier, "__init__", refuse)
    watcher = Notes()
    options = {name: value for name, value in TINY.items() if name != "width"}
    with pytest.raises(NotBuiltError):
        NeuralModel.build(label_tree(5_000), Run.of(method=method, **options), documents(4)[0], watcher)
    assert any(message.startswith("warning: at 5,000 labels") and method in message for message in watcher.messages)


@pytest.mark.parametrize("method", ["hiagm-tp", "hiagm-la"])
def test_a_tree_lstm_learns_64_documents_by_heart(method: str) -> None:
    sizes = {"embedding": 32, "hidden": 16, "filters": 16, "epochs": 60, "batch_size": 16, "learning_rate": 0.01}
    options = {name: value for name, value in TINY.items() if name != "width" or method == "hiagm-tp"}
    options |= sizes | {"structure": "tree-lstm", "dropout": 0.1, "policy": "raw"}
    given_documents = documents(64)
    trained = HierarchicalTextClassifier(TAXONOMY, device="cpu", method=method, **options).fit(*given_documents)
    scores = trained.evaluate(*given_documents)
    assert min(scores.micro_f1, scores.macro_f1) > 0.99
    assert network_of(trained).method.label_weights().isfinite().all()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"method": "hiagm-tp", "width": 0}, "width is 0"),
        ({"method": "hiagm-tp", "width": 5, "structure": "tree-lstm"}, "width 5"),
        ({"method": "hiagm-la", "dropout": 1}, "dropout is 1"),
        ({"method": "hiagm-la", "structure": "tree"}, "structure cannot be 'tree'"),
        ({"method": "flat", "fidelity": "exact"}, "fidelity cannot be 'exact'"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Run.of(**options)
    with pytest.raises(InputError):
        FlatSettings(fidelity="exact")  # type: ignore[arg-type]
