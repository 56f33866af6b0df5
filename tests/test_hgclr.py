"""HGCLR, each part against a slow loop: the paths between labels, the positive view, the contrast."""

import importlib
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from hitin import HierarchicalTextClassifier, Taxonomy
from hitin.encoders.interface import Widths
from hitin.encoders.transformer import Transformer, TransformerSettings
from hitin.errors import InputError
from hitin.methods.hgclr import (
    HGCLR,
    GraphLayer,
    HGCLRSettings,
    PositiveViews,
    TokenLabelAttention,
    contrast,
    gumbel_softmax,
    kept_words,
)
from hitin.methods.interface import Fidelity, Seen, trainable
from hitin.methods.path_bias import FARTHEST, MOST_EDGES, PathBias
from hitin.neural import NeuralModel
from hitin.settings import Run
from tests.networks import label_tree
from tests.strategies import taxonomies
from tests.training_harness import TAXONOMY, as_seen, documents, network_of, tiny_bert

SMALL: dict[str, Any] = {"method": "hgclr", "max_length": 16, "heads": 4, "attention_heads": 2, "validation": 0}
FORMS: list[Fidelity] = ["clean", "upstream"]


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_bert(tmp_path_factory.mktemp("bert") / "tiny")


def seen_of(bert: str, count: int = 12, **options: Any) -> tuple[NeuralModel, Seen]:
    """A model that has been prepared, and what is seen of its first batch."""
    model = NeuralModel.build(TAXONOMY, Run.of(**SMALL | {"encoder": bert} | options), [])
    texts, labels = documents(count)
    numbers = [TAXONOMY.closure([TAXONOMY.index(name) for name in names]) for names in labels]
    examples = model.examples(texts, numbers)
    model.network.method.prepare(model.facts(examples, None))
    batch = examples.batch(np.arange(count))
    text, logits = model.network(batch)
    return model, as_seen(model.network.encoder, batch, text, logits)


def views_of(model: NeuralModel) -> PositiveViews:
    views = model.network.method.auxiliary
    assert isinstance(views, PositiveViews)
    return views


# The paths between labels.


def slow_bias(taxonomy: Taxonomy, bias: PathBias, *, is_upstream: bool) -> Tensor:
    """Along the paths that networkx finds, an edge at a time."""
    tree = networkx.Graph()
    for label in range(len(taxonomy)):
        parents = taxonomy.parents(label)
        tree.add_edge(int(parents[0]) if len(parents) else "root", label, lower=label)
    found = torch.zeros(len(taxonomy), len(taxonomy))
    by_edge, by_distance = bias.by_edge.tolist(), bias.by_distance.tolist()
    for first in range(len(taxonomy)):
        for second in set(range(len(taxonomy))) - {first}:
            path = networkx.shortest_path(tree, first, second)
            lower = [tree.edges[edge]["lower"] for edge in pairwise(path)]
            total = sum(by_edge[label] for label in (lower[:MOST_EDGES] if is_upstream else lower))
            place = min(len(lower), FARTHEST) - (0 if is_upstream else 1)
            found[first, second] = by_distance[place] + total / len(lower)
    return found


@given(taxonomies(), st.sampled_from(FORMS))
def test_the_bias_of_two_labels_is_that_of_the_path_between_them(taxonomy: Taxonomy, form: Fidelity) -> None:
    bias = PathBias(taxonomy, form)
    torch.testing.assert_close(bias(), slow_bias(taxonomy, bias, is_upstream=form == "upstream"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("second", [3, 13, 18])
def test_long_paths_end_after_15_edges_in_the_published_form_alone(form: Fidelity, second: int) -> None:
    """Two chains: paths of up to 18 + 18 edges, which are cut on the way down, or already on the way up."""
    chains = [("a", 18), ("b", second)]
    edges = [(f"{name}{at}", f"{name}{at + 1}") for name, length in chains for at in range(1, length)]
    taxonomy = Taxonomy.from_edges(edges, root=None)
    bias = PathBias(taxonomy, form)
    torch.testing.assert_close(bias(), slow_bias(taxonomy, bias, is_upstream=form == "upstream"))


@pytest.mark.parametrize("form", FORMS)
def test_all_numbers_of_the_bias_learn_but_the_spare_ones(form: Fidelity) -> None:
    taxonomy = Taxonomy.from_nested({"A": {"B": ["C", "D"]}, "E": ["F"]})
    bias = PathBias(taxonomy, form)
    (bias() * torch.randn(6, 6)).sum().backward()
    moving = [parameter.grad for parameter in (bias.by_distance, bias.by_edge)]
    assert moving[0] is not None
    assert moving[1] is not None
    assert moving[1].count_nonzero() == 6
    assert moving[0].count_nonzero() == 5  # distances 1 to 5 occur
    assert [len(grad) for grad in moving if grad is not None] == ([5, 6] if form == "clean" else [20, 7])
    if form == "upstream":
        assert bias.by_distance[0] == moving[0][0] == 0
        assert moving[1][6] == 0


def test_nothing_is_larger_than_labels_by_labels() -> None:
    bias = PathBias(label_tree(300))
    assert max(buffer.numel() for buffer in bias.buffers()) == 300 * 300
    assert not bias.state_dict().keys() - {"by_distance", "by_edge"}


# The labels.


def test_padding_is_no_part_of_a_name(bert: str) -> None:
    model, seen = seen_of(bert)
    features = views_of(model).labels
    model.network.eval()
    names = model.facts(model.examples([], []), None).names
    for label, found in enumerate(features(seen.encoder)):
        alone = seen.encoder.embedded(torch.from_numpy(names[label])[None])[0]  # (T, e)
        torch.testing.assert_close(found, alone.mean(dim=0) + features.own[label])


def test_a_name_may_be_longer_than_others(bert: str) -> None:
    taxonomy = Taxonomy.from_edges([("a", "mew purr whisker bone"), ("a", "leaf")], root=None)
    model = NeuralModel.build(taxonomy, Run.of(**SMALL | {"encoder": bert}), [])
    facts = model.facts(model.examples(["leaf"], [(0,)]), None)
    model.network.method.prepare(facts)
    assert sorted(views_of(model).labels.get_buffer("inside").sum(dim=1).tolist()) == [3, 3, 6]


@pytest.mark.parametrize("form", FORMS)
def test_labels_attend_to_each_other_as_a_loop_over_heads_and_labels_says(form: Fidelity) -> None:
    layer = GraphLayer(TAXONOMY, 12, HGCLRSettings(heads=3, dropout=0, fidelity=form))
    labels = torch.randn(len(TAXONOMY), 12)
    bias, queries, keys, values = layer.bias(), layer.queries(labels), layer.keys(labels), layer.values(labels)
    rows = []
    for label in range(len(labels)):
        parts = []
        for head in (slice(0, 4), slice(4, 8), slice(8, 12)):
            scores = torch.stack(
                [queries[label, head] @ keys[other, head] / 2 + bias[label, other] for other in range(len(labels))]
            )
            parts.append(sum(share * value for share, value in zip(scores.softmax(0), values[:, head], strict=True)))
        rows.append(torch.cat(parts))
    expected = layer.norm(labels + layer.output(torch.stack(rows)))
    torch.testing.assert_close(layer(labels), expected)


def test_words_are_shared_out_to_labels_as_a_loop_over_heads_and_words_says() -> None:
    attention = TokenLabelAttention(8, HGCLRSettings(attention_heads=2))
    words, labels = torch.randn(2, 3, 8), torch.randn(5, 8)
    shares = attention(words, labels)
    for document in range(2):
        for place in range(3):
            query, keys = attention.queries(words[document, place]), attention.keys(labels)
            heads = [(keys[:, head] @ query[head] / 2).softmax(0) for head in (slice(0, 4), slice(4, 8))]
            torch.testing.assert_close(shares[document, place], (heads[0] + heads[1]) / 2)
    torch.testing.assert_close(shares.sum(dim=2), torch.ones(2, 3))


# The positive view.


def test_chance_shares_words_out_as_a_loop_says() -> None:
    shares = torch.rand(2, 4, 5).softmax(dim=2)
    torch.manual_seed(7)
    found = gumbel_softmax(shares, 0.5)
    torch.manual_seed(7)
    noise = torch.empty_like(shares).exponential_()
    for document in range(2):
        for place in range(4):
            powers = [
                math.exp((float(shares[document, place, label]) - math.log(noise[document, place, label])) / 0.5)
                for label in range(5)
            ]
            expected = torch.tensor([power / sum(powers) for power in powers])
            torch.testing.assert_close(found[document, place], expected)


def test_chance_follows_the_softmax() -> None:
    """The largest of logits with Gumbel noise is as probable as the softmax says."""
    torch.manual_seed(0)
    logits = torch.tensor([0.0, 1.0, 2.0])
    drawn = gumbel_softmax(logits.expand(20_000, 3), 1.0).argmax(dim=1).bincount() / 20_000
    torch.testing.assert_close(drawn, logits.softmax(0), atol=0.015, rtol=0)


def test_words_stay_where_their_own_labels_have_enough_and_learn_there_alone() -> None:
    settings = HGCLRSettings(keep=0.3)
    torch.manual_seed(5)
    shares = torch.rand(3, 6, 5, requires_grad=True)
    targets = torch.tensor([[1.0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 0, 0]])
    torch.manual_seed(3)
    kept = kept_words(shares, targets, settings)
    torch.manual_seed(3)
    drawn = gumbel_softmax(shares, 1.0)
    upstream = torch.randn(3, 6)
    expected_loss = torch.zeros(())
    for document in range(3):
        for place in range(6):
            own = torch.stack(
                [drawn[document, place, k] for k in range(5) if targets[document, k]] or [torch.zeros(())]
            )
            stays = float(own.detach().sum()) > 0.3
            assert float(kept[document, place].detach()) == pytest.approx(float(stays))
            expected_loss = expected_loss + own.sum() * upstream[document, place] * stays
    assert 0 < int(kept.detach().round().sum()) < 12
    assert not kept[2].any()  # a document without labels
    (found,) = torch.autograd.grad((kept * upstream).sum(), shares, retain_graph=True)
    (expected,) = torch.autograd.grad(expected_loss, shares)
    torch.testing.assert_close(found, expected)
    assert not found[kept.detach() < 0.5].any()


def test_the_encoder_reads_the_words_that_stay(bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, seen = seen_of(bert)
    model.network.eval()
    views, ids = views_of(model), seen.batch.ids
    assert ids is not None
    monkeypatch.setattr("hitin.methods.hgclr.kept_words", lambda *_: torch.ones(ids.shape))
    torch.testing.assert_close(views(seen).vector, seen.encoder(ids, seen.batch.lengths).vector)
    monkeypatch.setattr("hitin.methods.hgclr.kept_words", lambda *_: torch.zeros(ids.shape))
    wiped = torch.zeros(*ids.shape, 16)
    torch.testing.assert_close(views(seen).vector, seen.encoder(ids, seen.batch.lengths, words=wiped).vector)


def test_padding_changes_no_positive_view(bert: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitin.methods.hgclr.gumbel_softmax", lambda shares, _: shares)  # chance depends on the length
    model, seen = seen_of(bert, keep=0.1)
    model.network.eval()
    ids, lengths = seen.batch.ids, seen.batch.lengths
    assert ids is not None
    assert lengths is not None
    together = views_of(model)(seen).vector
    for row, length in enumerate(lengths.tolist()):
        batch = type(seen.batch)(ids[row : row + 1, :length], lengths[row : row + 1], seen.targets[row : row + 1], None)
        alone = views_of(model)(seen._replace(batch=batch)).vector
        torch.testing.assert_close(alone[0], together[row], atol=1e-5, rtol=1e-4)


# The contrast.


def slow_contrast(one: Tensor, other: Tensor, temperature: float) -> float:
    views = [row / row.norm() for row in (*one, *other)]
    losses = []
    for place, view in enumerate(views):
        partner = (place + len(one)) % len(views)
        powers = [math.exp(float(view @ each) / temperature) for at, each in enumerate(views) if at != place]
        losses.append(-math.log(math.exp(float(view @ views[partner]) / temperature) / sum(powers)))
    return sum(losses) / len(losses)


@given(st.integers(1, 6), st.sampled_from([0.1, 1.0, 2.0]), st.integers(0, 100))
def test_the_contrast_is_that_of_a_loop(count: int, temperature: float, seed: int) -> None:
    torch.manual_seed(seed)
    one, other = torch.randn(count, 4), torch.randn(count, 4)
    expected = slow_contrast(one, other, temperature)
    assert float(contrast(one, other, temperature)) == pytest.approx(expected, abs=1e-5)


@given(st.integers(2, 6), st.floats(0.2, 2))
def test_the_contrast_of_views_that_agree_is_known(count: int, temperature: float) -> None:
    """With equal views at right angles to the others, e^(1/t) stands against itself and 2 (B - 1) times 1."""
    views = torch.eye(count) * 3
    expected = math.log1p(2 * (count - 1) * math.exp(-1 / temperature))
    assert float(contrast(views, 5 * views, temperature)) == pytest.approx(expected, abs=1e-5)


def test_one_document_has_no_contrast_and_no_gradient_that_is_no_number() -> None:
    view = torch.randn(1, 4, requires_grad=True)
    loss = contrast(view, view * 2 + 1, 1.0)
    torch.autograd.backward(loss)
    assert float(loss.detach()) == 0
    assert view.grad is not None
    assert not view.grad.any()


# The whole.


@pytest.mark.parametrize("form", FORMS)
def test_all_that_is_learnt_gets_a_gradient(form: Fidelity, bert: str) -> None:
    model, seen = seen_of(bert, fidelity=form)
    torch.autograd.backward(
        torch.stack([seen.logits.square().mean(), *model.network.method.losses(seen).values()]).sum()
    )
    without = [name for name, value in model.network.named_parameters() if value.grad is None or not value.grad.any()]
    assert not without


@pytest.mark.parametrize("form", FORMS)
def test_only_the_published_form_has_numbers_that_change_nothing(form: Fidelity) -> None:
    """What adds the same to all that a softmax compares has a gradient of rounding errors."""
    torch.manual_seed(0)
    settings = HGCLRSettings(heads=2, attention_heads=2, fidelity=form)
    graph, attention = GraphLayer(TAXONOMY, 8, settings), TokenLabelAttention(8, settings)
    shares = attention(3 * torch.randn(4, 5, 8), graph(3 * torch.randn(len(TAXONOMY), 8)))
    torch.autograd.backward((shares * torch.randn_like(shares)).sum())
    named = [*graph.named_parameters(prefix="graph"), *attention.named_parameters(prefix="attention")]
    idle = {name for name, value in named if value.grad is not None and value.grad.abs().max() < 1e-5}
    assert idle == ({"graph.keys.bias", "graph.norm.bias", "attention.keys.bias"} if form == "upstream" else set())


def test_without_contrast_there_is_nothing_to_project(bert: str) -> None:
    model, seen = seen_of(bert, contrast=0)
    assert views_of(model).projection is None
    assert model.network.method.losses(seen).keys() == {"positive"}


def test_halves_are_no_trouble(bert: str) -> None:
    model, seen = seen_of(bert)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        text, logits = model.network(seen.batch)
        losses = model.network.method.losses(as_seen(seen.encoder, seen.batch, text, logits))
    assert all(loss.dtype == torch.float32 and loss.isfinite() for loss in losses.values())


def bert_base() -> Transformer:
    """BERT-base on no device: numbers are counted, none is kept."""
    transformers: Any = importlib.import_module("transformers")
    with torch.device("meta"):
        return Transformer(transformers.BertModel(transformers.BertConfig()), TransformerSettings())


def test_the_published_form_has_the_published_number_of_weights() -> None:
    encoder = bert_base()
    taxonomy = label_tree(141)
    with torch.device("meta"):
        upstream = HGCLR(taxonomy, encoder.widths, HGCLRSettings(fidelity="upstream"))
        clean = HGCLR(taxonomy, encoder.widths, HGCLRSettings())
    head = sum(parameter.numel() for parameter in upstream.parameters())
    assert head == 4_943_919
    assert head + sum(parameter.numel() for parameter in encoder.parameters()) == 113_835_567
    distances = int(clean.get_submodule("auxiliary.graph.bias").get_buffer("distances").max())
    spare = 768 + 1 + (20 - distances) + 3 * 768  # rows for no label, distances that do not occur, biases without use
    assert trainable(clean) == head - spare


def test_training_learns_64_documents_by_heart(bert: str) -> None:
    texts, labels = documents(64)
    options = {"epochs": 50, "batch_size": 16, "learning_rate": 0.01, "encoder_learning_rate": 0.005, "policy": "raw"}
    model = HierarchicalTextClassifier(TAXONOMY, device="cpu", **SMALL | {"encoder": bert} | options).fit(texts, labels)
    scores = model.evaluate(texts, labels)
    assert min(scores.micro_f1, scores.macro_f1) > 0.99


def test_what_only_training_needs_is_neither_saved_nor_built_again(
    bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = SMALL | {"encoder": bert, "epochs": 1}
    HierarchicalTextClassifier(TAXONOMY, device="cpu", **options).fit(*documents(16)).save(tmp_path)
    monkeypatch.setattr("hitin.methods.hgclr.PositiveViews", None)
    loaded = HierarchicalTextClassifier.load(tmp_path, device="cpu")
    assert network_of(loaded).method.auxiliary is None
    assert len(loaded.predict(documents(3)[0])) == 3


@pytest.mark.parametrize("option", ["heads", "attention_heads"])
def test_heads_that_do_not_divide_the_width_are_refused_with_those_that_do(option: str) -> None:
    options: dict[str, Any] = {"heads": 4, "attention_heads": 4} | {option: 5}
    with pytest.raises(InputError, match=rf"{option} is 5.*\n.*1, 2, 4, 8, 16"):
        HGCLR(TAXONOMY, Widths.of(16), HGCLRSettings(**options))


@pytest.mark.parametrize(
    "options",
    [
        {"contrast": -1},
        {"keep": 1},
        {"gumbel_temperature": 0},
        {"contrast_temperature": math.inf},
        {"heads": 0},
        {"attention_heads": 0},
        {"dropout": 1},
        {"fidelity": "exact"},
    ],
)
def test_options_that_mean_nothing_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(options))} (is|cannot be) .*\n"):
        HGCLRSettings(**options)


def test_much_memory_is_told_before_it_is_taken() -> None:
    settings = HGCLRSettings()
    assert HGCLR.warning(label_tree(1000), Widths.of(768), settings) is None
    assert "10,000 labels" in (HGCLR.warning(label_tree(10_000), Widths.of(768), settings) or "")


def test_training_can_go_on_from_its_weights_alone(bert: str) -> None:
    """What is known before training is not among them: it is told again."""
    first, seen = seen_of(bert)
    second, again = seen_of(bert, seed=1)
    second.network.fill(first.network.state_dict())
    assert not {name.split(".")[-1] for name in first.network.state_dict()} & {"names", "inside", "meeting"}
    losses = []
    for model, looked in ((first, seen), (second, again)):
        torch.manual_seed(0)
        text, logits = model.network(looked.batch)
        losses.append(model.network.method.losses(looked._replace(text=text, logits=logits)))
    assert losses[0] == losses[1]


def test_an_encoder_whose_embedding_layer_cannot_be_looked_at_is_refused(
    bert: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before anything is trained; other methods have no need to look."""
    monkeypatch.delattr(Transformer, "embedded")
    with pytest.raises(InputError, match="kind bert cannot be looked at"):
        NeuralModel.build(TAXONOMY, Run.of(**SMALL | {"encoder": bert}), [])
    NeuralModel.build(TAXONOMY, Run.of(method="flat", encoder=bert, max_length=16), [])
