"""Very many labels: the last layer some labels at a time, negatives chosen by chance, decisions on the best labels."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given as for_all
from hypothesis import settings as testing
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from hitin import Document, InputError, Taxonomy
from hitin.answers import Answers
from hitin.batches import Examples
from hitin.calibration import Calibration
from hitin.decisions import Decisions, DecisionSettings, rows_to_tune_on
from hitin.decisions.best import BestLabels, decided_best
from hitin.decisions.closure import best_closed
from hitin.decisions.fitting import MANY_LABELS, candidates
from hitin.decisions.goals import best_point, best_points
from hitin.encoders.interface import Widths
from hitin.label_blocks import Blocks, Chosen, LastLayer, Positives, chosen_by_chance, judged_in_blocks, loss_in_blocks
from hitin.losses import LossSettings, classification_loss, positive_weights
from hitin.methods.hitin import HiTIN, HiTINSettings
from hitin.tokens import Ragged
from hitin.training.validation import counts_of
from hitin.watcher import Watcher
from measuring import measured
from tests.conftest import REPOSITORY
from tests.strategies import taxonomies
from tests.training_harness import STEADY, TAXONOMY, classifier, documents

DOCUMENTS, LABELS, WIDTH = 5, 23, 4
LOSSES = [
    LossSettings(),
    LossSettings("focal"),
    LossSettings("focal", gamma_positive=0.5, gamma_negative=0.0),
    LossSettings("asymmetric"),
    LossSettings("asymmetric", gamma_positive=1.0, clip=0.2),
]
IN_BLOCKS: dict[str, Any] = {"labels_at_once": 1}
"""Few labels treated as very many."""


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven labels in a block, so that the last has fewer."""
    monkeypatch.setattr("hitin.label_blocks._CELLS", {"cpu": 7 * DOCUMENTS})


class Given:
    """Some documents, with logits of both signs, and a table of the labels they have: some none, one label on all."""

    def __init__(self, dtype: torch.dtype = torch.float64, seed: int = 0) -> None:
        chance = torch.Generator().manual_seed(seed)
        self.features = torch.randn(DOCUMENTS, WIDTH, generator=chance, dtype=dtype, requires_grad=True)
        weight = 2 * torch.randn(LABELS, WIDTH, generator=chance, dtype=dtype)
        bias = torch.randn(LABELS, generator=chance, dtype=dtype)
        self.layer = LastLayer(weight.requires_grad_(), bias.requires_grad_())
        self.targets = (torch.rand(DOCUMENTS, LABELS, generator=chance) < 0.2).to(dtype)
        self.targets[1] = 0
        self.targets[:, 3] = 1
        shuffled = torch.randperm(int(self.targets.sum()), generator=chance)
        self.positives = Positives(*(each[shuffled] for each in torch.nonzero(self.targets, as_tuple=True)))
        self.weights = positive_weights(self.targets.sum(dim=0).long().numpy(), DOCUMENTS)

    @property
    def learnt(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.features, *self.layer

    def logits(self) -> Tensor:
        return functional.linear(self.features, *self.layer)

    def gradient(self, loss: Tensor) -> list[Tensor]:
        return list(torch.autograd.grad(3 * loss, self.learnt))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("settings", LOSSES, ids=str)
def test_the_loss_in_blocks_and_its_gradient_are_those_of_the_whole_table(
    settings: LossSettings, weighted: bool
) -> None:
    given = Given()
    weights = given.weights if weighted else None
    plain = classification_loss(given.logits(), given.targets, settings, positive_weights=weights)
    found = loss_in_blocks(given.features, given.layer, given.positives, settings, positive_weights=weights)
    torch.testing.assert_close(found, plain, rtol=1e-12, atol=0)
    torch.testing.assert_close(given.gradient(found), given.gradient(plain), rtol=1e-10, atol=1e-14)


def test_the_gradient_agrees_with_small_changes() -> None:
    given = Given()

    def loss(features: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return loss_in_blocks(features, LastLayer(weight, bias), given.positives, LossSettings("asymmetric", clip=0.0))

    assert torch.autograd.gradcheck(loss, given.learnt)


def test_no_block_holds_more_than_its_share_of_the_table() -> None:
    given = Given()
    blocks = list(Blocks(given.features, given.layer, given.positives))
    assert [block.logits.shape[1] for block in blocks] == [7, 7, 7, 2]
    torch.testing.assert_close(torch.cat([block.logits for block in blocks], dim=1), given.logits())


def test_in_mixed_precision_the_loss_is_near_that_of_the_table_and_the_gradient_is_finite() -> None:
    given = Given(torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        plain = classification_loss(given.logits(), given.targets)
        found = loss_in_blocks(given.features, given.layer, given.positives, LossSettings())
    assert found.dtype == torch.float32
    torch.testing.assert_close(found, plain, rtol=0.02, atol=0.01)
    for mine, theirs in zip(given.gradient(found), given.gradient(plain), strict=True):
        assert mine.dtype == torch.float32
        torch.testing.assert_close(mine, theirs, rtol=0.1, atol=0.01)


def test_documents_without_labels_have_a_loss_too() -> None:
    given = Given()
    nothing = Positives(*torch.zeros(2, 0, dtype=torch.int64))
    found = loss_in_blocks(given.features, given.layer, nothing, LossSettings())
    torch.testing.assert_close(found, classification_loss(given.logits(), torch.zeros_like(given.targets)))


@pytest.mark.parametrize("settings", LOSSES[:4:3], ids=str)
def test_over_all_choices_of_negatives_the_mean_of_losses_and_gradients_is_the_whole(settings: LossSettings) -> None:
    given = Given()
    held = torch.tensor(sorted({*given.positives.labels.tolist()}))
    others = [label for label in range(LABELS) if label not in held.tolist()]
    assert len(others) >= 3
    losses, gradients = [], []
    for first, one in enumerate(others):  # every pair once: each is as likely as any other
        for two in others[first + 1 :]:
            labels = torch.tensor(sorted([*held.tolist(), one, two]))
            scale = torch.where(torch.isin(labels, held), 1.0, len(others) / 2)
            chosen = Chosen(labels, scale)
            loss = loss_in_blocks(given.features, given.layer, given.positives, settings, chosen=chosen)
            losses.append(loss.detach())
            gradients.append(given.gradient(loss))
    plain = classification_loss(given.logits(), given.targets, settings)
    torch.testing.assert_close(torch.stack(losses).mean(), plain.detach())
    means = [torch.stack(each).mean(dim=0) for each in zip(*gradients, strict=True)]
    torch.testing.assert_close(means, given.gradient(plain))


def test_negatives_are_chosen_alike_by_the_same_chance_and_each_as_often_as_any_other() -> None:
    held, times = torch.tensor([4, 4, 0, 9]), torch.zeros(12)
    for seed in range(500):
        torch.manual_seed(seed)
        chosen = chosen_by_chance(held, 12, 3)
        assert chosen is not None
        assert chosen.labels.tolist() == sorted(set(chosen.labels.tolist()))
        assert [float(scale) for label, scale in zip(*chosen, strict=True) if int(label) in (0, 4, 9)] == [1.0] * 3
        assert float(chosen.scale.sum()) == pytest.approx(12)
        times[chosen.labels] += 1
        last = chosen.labels.tolist()
    torch.manual_seed(seed)
    again = chosen_by_chance(held, 12, 3)
    assert again is not None
    assert again.labels.tolist() == last
    assert times[[0, 4, 9]].tolist() == [500] * 3
    rest = [label for label in range(12) if label not in (0, 4, 9)]
    assert times[rest].numpy() == pytest.approx(np.full(9, 500 / 3), rel=0.25)  # four deviations


def test_no_more_negatives_than_there_are_means_all() -> None:
    assert chosen_by_chance(torch.tensor([0, 1]), 5, 3) is None
    assert chosen_by_chance(torch.tensor([0, 1]), 5, 2) is not None


def test_counts_in_blocks_are_those_of_the_table() -> None:
    given = Given(torch.float32)
    logits = given.logits().detach()
    loss, counts = judged_in_blocks(given.features.detach(), given.layer, given.positives)
    torch.testing.assert_close(loss, classification_loss(logits, given.targets))
    assert counts.tolist() == counts_of(logits > 0, given.targets > 0.5).tolist()


def test_a_batch_names_its_labels_in_pairs() -> None:
    examples = Examples(Ragged.of([[5], [6, 7], [8]]), Ragged.of([[0, 2], [], [1]]), 3)
    rows = np.array([2, 1, 0])
    batch, table = replace(examples, in_pairs=True).batch(rows), examples.batch(rows)
    assert batch.table is None
    assert batch.pairs is not None
    assert batch.pairs.tolist() == [[0, 2, 2], [1, 0, 2]]
    assert len(batch) == len(table) == 3
    with pytest.raises(ValueError, match="in pairs"):
        _ = batch.targets
    assert batch.to(torch.device("meta")).pairs.device.type == "meta"  # type: ignore[union-attr]


@pytest.mark.parametrize("method", ["hitin", "flat"])
def test_training_in_blocks_is_training(method: str) -> None:
    texts, labels = documents(60)
    own = STEADY if method == "hitin" else {name: STEADY[name] for name in ("embedding_dropout", "dropout")}
    own = own | {"method": method, "epochs": 2, "consistency": 0}  # which very many labels go without
    plain, blocks = classifier(**own), classifier(**own, **IN_BLOCKS)
    for each in (plain, blocks):
        each.fit(texts, labels, (texts[:30], labels[:30]))
    one, other = (dict(each.model_.tensors()) for each in (plain, blocks))
    assert one.keys() == other.keys()
    torch.testing.assert_close(other, one, rtol=1e-3, atol=2e-4)
    for mine, theirs in zip(blocks.history_.epochs, plain.history_.epochs, strict=True):
        for name in ("loss", "val_loss", "micro_f1", "macro_f1"):
            assert mine[name] == pytest.approx(theirs[name], rel=1e-3, abs=1e-4)
    assert blocks.predict(texts[:20]) == plain.predict(texts[:20])


def test_with_chosen_negatives_it_learns_and_repeats_itself() -> None:
    texts, labels = documents(80)
    options: dict[str, Any] = {"negatives": 2, "epochs": 6}
    one, other = (classifier(**options).fit(texts, labels, (texts, labels)) for _ in range(2))
    assert one.score(texts, labels) > 0.5  # with all labels it is no more
    for name, tensor in one.model_.tensors().items():
        assert torch.equal(tensor, other.model_.tensors()[name]), name


def test_methods_that_need_all_labels_refuse_chosen_negatives() -> None:
    texts, labels = documents(20)
    with pytest.raises(InputError, match="hiagm-tp needs all labels"):
        classifier(method="hiagm-tp", negatives=2).fit(texts, labels)
    with pytest.raises(InputError, match="0 or more"):
        replace(LossSettings(), negatives=-1)


def test_a_method_that_needs_all_labels_trains_with_a_table() -> None:
    texts, labels = documents(20)
    found = classifier(method="hiagm-tp", epochs=1, **IN_BLOCKS).fit(texts, labels)
    assert len(found.classes_) == len(TAXONOMY)


def calibrations(depth: int) -> list[Calibration]:
    """None; temperatures; curves that put many logits on the same log-odds of 32 bits."""
    curve = ((-3.0, -1.0), (-2.0, -0.999999), (0.0, -0.99999), (1.0, 2.0))
    temperatures = tuple(0.5 + level for level in range(depth))
    return [
        Calibration(),
        Calibration("temperature", temperatures),
        Calibration("isotonic", temperatures, (curve,) * depth),
    ]


@testing(max_examples=60, deadline=None)
@for_all(taxonomies(), st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from([0.0, 0.3, 0.6]))
def test_the_best_labels_are_decided_and_shown_as_by_the_whole_table(
    taxonomy: Taxonomy, seed: int, k: int, stop: float
) -> None:
    chance = np.random.default_rng(seed)
    logits = chance.choice(np.arange(-4, 3) / 2, (3, len(taxonomy))).astype(np.float32)  # many are equal
    cut = int(chance.integers(1, len(taxonomy) + 1))
    for calibration in calibrations(taxonomy.depth):
        decisions = Decisions("top-k", k=k, stop=stop, calibration=calibration)
        best = BestLabels(3, k, calibration, taxonomy)
        for start in range(0, len(taxonomy), cut):
            best.add(start, logits[:, start : start + cut])
        given, stopped = decisions.decide_and_stop(logits, taxonomy)
        shown = decisions.probabilities(logits, taxonomy)
        for row, labels in enumerate(best.labels.tolist()):
            closure = taxonomy.closure(labels)
            found = decided_best(closure, logits[row, list(closure)], decisions, taxonomy)
            assert found.labels[found.given].tolist() == np.flatnonzero(given[row]).tolist()
            assert found.labels[found.stopped].tolist() == np.flatnonzero(stopped[row]).tolist()
            assert found.probabilities.tolist() == shown[row, found.labels].tolist()


@pytest.mark.parametrize("stop", [0.0, 0.4])
def test_a_model_answers_by_its_best_labels_as_by_all(stop: float) -> None:
    texts, labels = documents(60)
    found = classifier(epochs=2, **IN_BLOCKS).fit(texts, labels, (texts[:30], labels[:30]))
    decisions = found.decisions_.with_options(policy="top-k", k=2, stop=stop)
    answers, given = Answers(found, decisions=decisions, digits=3), [Document(text) for text in texts]
    best = answers.scores(found.model_.prepared(texts))
    assert isinstance(best, list)
    assert answers.of(given, best) == answers.of(given, found.model_.logits(texts))
    assert not isinstance(replace(answers, top=2).scores(found.model_.prepared(texts)), list)
    found.decisions_ = decisions
    every = [{found.classes_[label] for label in np.flatnonzero(row)} for row in found.scored(texts).given]
    assert found.predict(texts) == every


@testing(max_examples=60, deadline=None)
@for_all(taxonomies(), st.integers(0, 2**32 - 1))
def test_labels_that_no_document_could_have_are_left_out_without_a_trace(taxonomy: Taxonomy, seed: int) -> None:
    gains = np.random.default_rng(seed).choice([-3.0, -1.0, -0.5, 0.0, 0.5, 2.0], (4, len(taxonomy)))
    with pytest.MonkeyPatch.context() as patch:
        whole = best_closed(gains, taxonomy)
        patch.setattr("hitin.decisions.closure._MANY", 0)
        assert np.array_equal(best_closed(gains, taxonomy), whole)


@testing(max_examples=40, deadline=None)
@for_all(st.integers(1, 6), st.integers(1, 9), st.integers(0, 2**32 - 1))
def test_the_best_points_of_many_rows_are_those_of_each(rows: int, points: int, seed: int) -> None:
    values = np.random.default_rng(seed).choice([0.0, 0.5, 1.0], (rows, points))
    assert best_points(values).tolist() == [best_point(row) for row in values]


def test_of_very_many_labels_a_threshold_a_label_is_only_tried_where_it_is_wished() -> None:
    many = Taxonomy.from_nested({"A": [str(number) for number in range(MANY_LABELS)]})
    for taxonomy, kinds in ((TAXONOMY, {"fixed", "one", "level", "label"}), (many, {"fixed", "one", "level"})):
        assert {one.thresholds for one in candidates(DecisionSettings(), taxonomy) if one.thresholds} == kinds
    (wished,) = candidates(DecisionSettings(policy="consistent", thresholds="label"), many)
    assert wished.thresholds == "label"
    assert 400 <= len(rows_to_tune_on(100_000, many)) < 10_000


def test_a_person_is_told_that_some_documents_were_enough_to_tune_on(monkeypatch: pytest.MonkeyPatch) -> None:
    texts, labels = documents(40)
    monkeypatch.setattr("hitin.decisions.tuning._CELLS", 0)
    monkeypatch.setattr("hitin.decisions.tuning._FEWEST", 12)
    told: list[str] = []
    watcher = Watcher()
    monkeypatch.setattr(watcher, "note", told.append)
    classifier(epochs=1).fit(texts, labels, (texts, labels), watcher=watcher)
    assert "tuning decisions on 12 of 40 documents, for labels are many" in told


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_forty_seven_thousand_labels_train_in_eight_gigabytes_and_a_document_takes_fifty_milliseconds() -> None:
    script = str(REPOSITORY / "benchmarks" / "many_labels.py")
    found = measured(script, "6:1:0")
    assert found["labels"] == 46_969
    assert found["gigabytes"] < 8
    assert found["all_gigabytes"] < 8
    assert found["one"] < 50
    assert found["one_best"] < 50
    assert found["micro_f1"] > 0.3  # a model of nothing but how frequent labels are has less than a tenth


def test_leaves_that_are_mixed_are_warned_of_where_labels_are_many() -> None:
    many = Taxonomy.from_nested({"A": [str(number) for number in range(10_000)]})
    widths = Widths(8, 8, 8)
    told = HiTIN.warning(many, widths, HiTINSettings(leaves="mixed"))
    assert told is not None
    assert "at 10,001 labels the mixed leaves have 100,020,001 weights" in told
    assert "1.6 GB" in told
    assert HiTIN.warning(many, widths, HiTINSettings()) is None
    assert HiTIN.warning(TAXONOMY, widths, HiTINSettings(leaves="mixed")) is None
