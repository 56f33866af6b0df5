"""HiMatch: its losses and the labels it draws against slow loops; when labels are read; its sizes."""

import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from hitin import HierarchicalTextClassifier, Taxonomy
from hitin.batches import Batch, Examples
from hitin.encoders.interface import Encoded, TextEncoder, Widths, token_mask
from hitin.encoders.textrcnn import TextRCNN, TextRCNNSettings
from hitin.encoders.transformer import Transformer, TransformerSettings, need_transformers
from hitin.errors import InputError
from hitin.methods.himatch import Compared, Comparison, HiMatch, HiMatchSettings, LabelTexts, Matching, matching_losses
from hitin.methods.interface import Facts, Fidelity, Seen, trainable
from hitin.tokens import Ragged
from tests.strategies import taxonomies
from tests.training_harness import (
    BERT,
    TAXONOMY,
    Nursery,
    are_equal,
    as_seen,
    documents,
    saved_weights,
    tiny_bert,
    train_into,
    when_logged,
)

# Losses.


def test_losses_of_fixed_labels_are_those_of_slow_loops() -> None:
    torch.manual_seed(0)
    texts, labels = torch.randn(6, 5), torch.randn(7, 5) / 2
    own, parent, sibling, other = torch.randint(0, 7, (4, 6))
    has_own = torch.tensor([True, True, False, True, True, True])
    has_sibling = has_own & torch.tensor([True, True, True, True, True, False])
    has_other = has_own & torch.tensor([True, False, True, True, True, False])
    compared = Compared(own, parent, sibling, other, has_own, has_sibling, has_other)

    def squared(document: int, chosen: Tensor) -> float:
        pairs = zip(texts[document].tolist(), labels[chosen[document]].tolist(), strict=True)
        return math.fsum((left - right) ** 2 for left, right in pairs)

    terms: dict[str, list[float]] = {"own": [], "parent": [], "sibling": [], "other": []}
    for document in range(6):
        near = squared(document, own) / 5
        if has_own[document]:
            terms["own"].append(near)
            terms["parent"].append(max(0.0, (squared(document, parent) - 0.01) / 5))
        if has_sibling[document]:
            terms["sibling"].append(max(0.0, near - squared(document, sibling) / 5 + 0.1))
        if has_other[document]:
            terms["other"].append(max(0.0, near - squared(document, other) / 5 + 0.2))
    means = {name: sum(values) / len(values) for name, values in terms.items()}
    found = matching_losses(texts, labels, compared)
    assert math.isclose(found["inter"].item(), means["own"] + means["parent"], rel_tol=1e-5)
    assert math.isclose(found["intra"].item(), means["sibling"] + means["other"], rel_tol=1e-5)
    assert 0 in terms["sibling"] + terms["other"]  # of some the margin is kept


def test_documents_that_do_not_count_have_no_loss() -> None:
    nothing = torch.zeros(2, dtype=torch.bool)
    any_label = torch.zeros(2, dtype=torch.int64)
    compared = Compared(any_label, any_label, any_label, any_label, nothing, nothing, nothing)
    losses = matching_losses(torch.randn(2, 3), torch.randn(1, 3), compared)
    assert losses["inter"] == losses["intra"] == 0


# The labels that documents are compared with.

TREE = Taxonomy.from_nested({"A": ["A1", "A2", "A3", "A4"], "B": ["B1"], "C": []})


def targets(taxonomy: Taxonomy, *names: str) -> Tensor:
    found = torch.zeros(len(taxonomy))
    found[list(taxonomy.closure([taxonomy.index(name) for name in names]))] = 1
    return found


def draws(taxonomy: Taxonomy, gold: Tensor, count: int, fidelity: Fidelity = "clean") -> Compared:
    """A document's labels, drawn so many times."""
    compared: Compared = Comparison(taxonomy, fidelity)(gold.expand(count, -1))
    return compared


def about_even(drawn: Tensor, wanted: set[int]) -> None:
    """Whether exactly these come, each about as often: no number is 5 standard deviations off."""
    counts = Counter(drawn.tolist())
    assert counts.keys() == wanted
    part = 1 / len(wanted)
    bound = 5 * math.sqrt(len(drawn) * part * (1 - part))
    assert all(abs(count - part * len(drawn)) <= bound for count in counts.values())


def slow_choices(taxonomy: Taxonomy, gold: set[int], fidelity: Fidelity) -> dict[int, set[tuple[int, frozenset[int]]]]:
    """For each label of a document, the parents it may be given, and the siblings that go with each."""
    wrong = frozenset(range(len(taxonomy))) - gold
    found: dict[int, set[tuple[int, frozenset[int]]]] = {}
    for label in gold:
        found[label] = set()
        parents = taxonomy.parents(label).tolist()
        for parent in parents or [label]:
            family = set(taxonomy.children(parent).tolist()) if parents else set(taxonomy.roots.tolist())
            siblings = frozenset(family - {label} - (gold if fidelity == "clean" else set()))
            found[label].add((parent, siblings or wrong))
    return found


@given(taxonomies(), st.data())
@pytest.mark.parametrize("fidelity", ["clean", "upstream"])
def test_only_labels_that_may_be_drawn_are(fidelity: Fidelity, taxonomy: Taxonomy, data: st.DataObject) -> None:
    chosen = data.draw(st.sets(st.integers(0, len(taxonomy) - 1)))
    gold = set(taxonomy.closure(chosen))
    row = torch.zeros(len(taxonomy))
    row[list(gold)] = 1
    torch.manual_seed(0)
    found = draws(taxonomy, row, 60, fidelity)
    choices = slow_choices(taxonomy, gold, fidelity)
    assert found.has_own.all() == bool(gold)
    assert found.has_other.all() == (0 < len(gold) < len(taxonomy))
    for own, parent, sibling, other, has_own, has_sibling, has_other in zip(
        *(part.tolist() for part in found), strict=True
    ):
        if has_own:
            possible = [siblings for above, siblings in choices[own] if above == parent]
            assert possible
            assert not has_sibling or any(sibling in siblings for siblings in possible)
            assert has_sibling or not all(possible)
        assert not has_other or other not in gold
        assert has_own or not (has_sibling or has_other)


def test_each_label_parent_sibling_and_wrong_label_comes_about_as_often() -> None:
    torch.manual_seed(0)
    index = TREE.index
    found = draws(TREE, targets(TREE, "A1", "A2"), 6000)
    about_even(found.own, {index("A"), index("A1"), index("A2")})
    low = found.own != index("A")
    assert set(found.parent[low].tolist()) == {index("A")}
    about_even(found.sibling[low], {index("A3"), index("A4")})
    about_even(found.sibling[~low], {index("B"), index("C")})
    assert (found.parent[~low] == index("A")).all()  # at the top, the label itself
    about_even(found.other, {index(name) for name in ("A3", "A4", "B", "B1", "C")})


def test_one_of_several_parents_is_drawn_and_its_children_are_the_siblings() -> None:
    taxonomy = Taxonomy.from_edges([("A", "X"), ("B", "X"), ("A", "A1"), ("B", "B1")], root=None)
    torch.manual_seed(0)
    index = taxonomy.index
    found = draws(taxonomy, targets(taxonomy, "X"), 3000)
    low = found.own == index("X")
    about_even(found.parent[low], {index("A"), index("B")})
    for parent, sibling in (("A", "A1"), ("B", "B1")):
        assert set(found.sibling[low & (found.parent == index(parent))].tolist()) == {index(sibling)}


def test_an_only_child_and_one_whose_siblings_are_the_documents_too_have_any_wrong_label() -> None:
    torch.manual_seed(0)
    found = draws(TREE, targets(TREE, "B1"), 6000)
    wrong = set(range(len(TREE))) - {TREE.index("B"), TREE.index("B1")}
    about_even(found.sibling[found.own == TREE.index("B1")], wrong)
    all_of_a = draws(TREE, targets(TREE, "A1", "A2", "A3", "A4"), 6000)
    low = all_of_a.own != TREE.index("A")
    about_even(all_of_a.sibling[low], {TREE.index(name) for name in ("B", "B1", "C")})


def test_as_published_siblings_may_be_labels_of_the_document() -> None:
    torch.manual_seed(0)
    found = draws(TREE, targets(TREE, "A1", "A2"), 6000, "upstream")
    about_even(found.sibling[found.own == TREE.index("A1")], {TREE.index(name) for name in ("A2", "A3", "A4")})


def test_where_all_labels_are_the_documents_none_is_wrong_and_where_none_is_nothing_counts() -> None:
    everything = draws(TREE, torch.ones(len(TREE)), 5)
    assert everything.has_own.all()
    assert not (everything.has_sibling | everything.has_other).any()
    published = draws(TREE, torch.ones(len(TREE)), 400, "upstream")
    assert torch.equal(published.has_sibling, published.own != TREE.index("B1"))
    nothing = draws(TREE, torch.zeros(len(TREE)), 5)
    assert not (nothing.has_own | nothing.has_sibling | nothing.has_other).any()
    alone = draws(Taxonomy.from_nested({"A": []}), torch.ones(1), 5)
    assert (alone.own == alone.parent).all()
    assert not (alone.has_sibling | alone.has_other).any()


# When the texts of labels are read.


class Reader(TextEncoder):
    """Counts what it reads: the vector of a text is the sum of its numbers, and how often any was read before."""

    def __init__(self) -> None:
        super().__init__()
        self.widths, self.read = Widths.of(2), 0
        self.scale = torch.nn.Parameter(torch.ones(()))

    def forward(self, ids: Tensor, lengths: Tensor, words: Tensor | None = None) -> Encoded:
        assert words is None
        self.read += len(ids)
        sums = self.scale * torch.stack([row[:length].sum() for row, length in zip(ids, lengths, strict=True)])
        vector = torch.stack([sums, torch.full_like(sums, (self.read - 1) // 300)], dim=1)
        return Encoded(vector, vector[:, None], token_mask(lengths, ids.shape[1], ids.device)[:, :1])


def test_label_texts_are_read_at_first_and_then_every_so_many_steps() -> None:
    reader, texts = Reader(), LabelTexts(300, 2, refresh=4)
    texts.texts = Ragged.of([[label] * (1 + label % 3) for label in range(300)])
    wanted = [label * (1 + label % 3) for label in range(300)]
    read = []
    for step in [0, 0, 1, 2, 3, 4, 4, 5, 8]:  # a step may be made of several batches
        vectors = texts(reader, step)
        assert not vectors.requires_grad
        assert vectors[:, 0].tolist() == wanted
        read.append(reader.read // 300)
    assert read == [1, 1, 1, 1, 1, 2, 2, 2, 3]
    assert vectors[:, 1].eq(2).all()


def test_a_training_that_goes_on_keeps_what_was_read() -> None:
    first, second = LabelTexts(3, 2, refresh=50), LabelTexts(3, 2, refresh=50)
    first.texts, second.texts = Ragged.of([[1], [2], [3]]), Ragged.of([[4], [5], [6]])
    kept = first(Reader(), 50)
    second.load_state_dict(first.state_dict())
    other = Reader()
    assert torch.equal(second(other, 51), kept)
    assert not other.read
    assert other.training
    assert not torch.equal(second(other, 100), kept)


def test_a_killed_training_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    options: dict[str, Any] = {"method": "himatch", "refresh": 4, "match_width": 4, "epochs": 4}
    train_into(str(tmp_path / "whole"), dict(options))
    with Nursery() as nursery:
        assert nursery.train_and_kill(tmp_path / "killed", [when_logged(1), when_logged(3)], **options)
    assert are_equal(saved_weights(tmp_path / "whole"), saved_weights(tmp_path / "killed"))


# The method.


def method_and_seen(**options: Any) -> tuple[HiMatch, Seen]:
    torch.manual_seed(0)
    settings = HiMatchSettings(width=6, match_width=8, dropout=0, match_dropout=0, **options)
    method = HiMatch(TREE, Widths.of(2), settings).eval()
    rows = [[3, 4, 5], [4, 6], [7, 7, 3, 8]]
    gold = [TREE.closure([TREE.index(name)]) for name in ("A1", "B1", "C")]
    examples = Examples(Ragged.of(rows), Ragged.of(gold), len(TREE))
    names = Ragged.of([[9 + label] for label in range(len(TREE))])
    method.prepare(Facts(examples, None, names, np.array([1], dtype=np.int32)))
    reader, batch = Reader(), examples.batch(np.arange(3))
    text, logits = method.score(reader, batch)
    return method, as_seen(reader, batch, text, logits)


@pytest.mark.parametrize("normalise", [False, True])
def test_losses_compare_the_text_s_labels_with_the_labels_read(normalise: bool) -> None:
    method, seen = method_and_seen(normalise=normalise)
    matching = method.auxiliary
    assert isinstance(matching, Matching)
    torch.manual_seed(3)
    found = method.losses(seen)
    torch.manual_seed(3)
    compared = matching.comparison(seen.targets)
    texts = matching.label_texts.texts
    assert texts is not None
    sums = torch.tensor([[float(texts[label].sum()), 0] for label in range(len(TREE))])
    nodes = method.propagation(torch.stack([torch.tensor([12.0, 10, 25]), torch.zeros(3)], dim=1))
    left, right = matching.text_map(nodes.flatten(1)), matching.label_map(matching.structure(sums))
    if normalise:
        left, right = (vectors / vectors.square().sum(dim=1, keepdim=True).sqrt() for vectors in (left, right))
    torch.testing.assert_close(found, matching_losses(left, right, compared))


def test_what_is_seen_of_documents_gives_the_same_logits() -> None:
    method, seen = method_and_seen()
    vector = torch.stack([torch.tensor([12.0, 10, 25]), torch.zeros(3)], dim=1)
    alone = method(Encoded(vector, vector[:, None], torch.ones(3, 1, dtype=torch.bool)))
    torch.testing.assert_close(method.score(seen.encoder, seen.batch)[1], alone)


def test_as_published_logits_are_dropped() -> None:
    method, seen = method_and_seen(fidelity="upstream")
    method.train()
    dropped = torch.cat([method.score(seen.encoder, seen.batch)[1].flatten() for _ in range(40)]) == 0
    assert 0.4 < dropped.float().mean() < 0.6
    clean, seen = method_and_seen()
    assert (clean.train().score(seen.encoder, seen.batch)[1] != 0).all()


def test_it_can_be_trained_on_a_bag_and_on_a_frozen_transformer(tmp_path: Path) -> None:
    common: dict[str, Any] = {"method": "himatch", "width": 4, "match_width": 4, "refresh": 3, "epochs": 1}
    bert = BERT | {"encoder": tiny_bert(tmp_path / "bert"), "freeze": True}
    for options in ({"encoder": "bag", "embedding": 8, "min_count": 1, "validation": 0}, bert):
        trained = HierarchicalTextClassifier(TAXONOMY, device="cpu", **options | common).fit(*documents(24))
        assert np.isfinite(trained.predict_proba(["purr"])).all()


def test_a_batch_of_vectors_has_labels_read_by_the_encoder_itself() -> None:
    method, seen = method_and_seen()
    vectors = Batch(None, None, seen.targets, torch.randn(3, 2))
    text, logits = method.score(seen.encoder, vectors)
    losses = method.losses(as_seen(seen.encoder, vectors, text, logits))
    assert all(loss.isfinite() for loss in losses.values())


@pytest.mark.parametrize("name", ["match_width", "refresh", "label_words", "match_dropout", "logit_dropout", "width"])
def test_options_out_of_range_are_refused(name: str) -> None:
    options: dict[str, Any] = {name: -1}
    with pytest.raises(InputError, match=name):
        HiMatchSettings(**options)


WOS = Taxonomy.from_nested({f"{top}": [f"{top}.{area}" for area in range(19)] for top in range(7)} | {"x": []})


def test_as_published_it_has_as_many_parameters_as_the_published_one() -> None:
    encoder = TextRCNN(50_002, TextRCNNSettings(hidden=100, layers=1))
    assert trainable(encoder) == 15_422_100
    method = HiMatch(WOS, encoder.widths, HiMatchSettings(fidelity="upstream"))
    assert trainable(method) == 27_548_629


def test_as_published_on_bert_it_has_as_many_parameters_as_the_published_one() -> None:
    transformers = need_transformers()
    with torch.device("meta"):
        model = transformers.BertModel(transformers.BertConfig(vocab_size=28_996))
        encoder = Transformer(model, TransformerSettings(text_pooling="pooler"))
    assert trainable(encoder) == 108_310_272
    method = HiMatch(WOS, encoder.widths, HiMatchSettings(fidelity="upstream"))
    assert trainable(method) == 47_572_009


def test_much_memory_is_told_of_before_it_is_taken() -> None:
    many = Taxonomy.from_edges([], labels=[f"{label}" for label in range(3000)])
    assert "himatch" in (HiMatch.warning(many, Widths.of(300), HiMatchSettings()) or "")
    assert HiMatch.warning(TREE, Widths.of(300), HiMatchSettings()) is None
