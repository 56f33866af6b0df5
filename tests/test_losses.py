"""Losses: against torch, and against loops written from the formulas."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from hitin import InputError, Taxonomy
from hitin.losses import (
    LossSettings,
    classification_loss,
    disagreement,
    positive_weights,
    recursive_regularisation,
    smoothed,
)
from tests.strategies import taxonomies

ALL = [
    LossSettings(),
    LossSettings("focal"),
    LossSettings("focal", gamma_positive=0.5, gamma_negative=1),
    LossSettings("asymmetric"),
    LossSettings("asymmetric", gamma_positive=1, gamma_negative=0.5, clip=0.2),
    LossSettings("asymmetric", clip=1e-12),
]


@st.composite
def decisions(draw: st.DrawFn, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Logits and targets of some documents, and weights of the labels."""
    documents, labels = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31)))
    logits = 4 * torch.randn(documents, labels, generator=generator, dtype=dtype)
    targets = torch.rand(documents, labels, generator=generator) < 0.4
    return logits, targets, 3 * torch.rand(labels, generator=generator, dtype=dtype)


def by_loop(logits: Tensor, targets: Tensor, chosen: LossSettings, weights: Tensor | None) -> float:
    """Focal loss (Lin et al., Eq. 4) and asymmetric loss (Ridnik et al., Eq. 3 to 6), a decision at a time."""
    usual = {"bce": (0.0, 0.0, 0.0), "focal": (2.0, 2.0, 0.0), "asymmetric": (0.0, 4.0, 0.05)}[chosen.loss]
    own = (chosen.gamma_positive, chosen.gamma_negative, chosen.clip)
    gamma_positive, gamma_negative, clip = (
        number if value is None else value for value, number in zip(own, usual, strict=True)
    )
    total = 0.0
    for row, truth in zip(logits.tolist(), targets.tolist(), strict=True):
        for label, (logit, is_true) in enumerate(zip(row, truth, strict=True)):
            p = 1 / (1 + math.exp(-logit))
            if is_true:
                weight = 1.0 if weights is None else float(weights[label])
                total -= weight * (1 - p) ** gamma_positive * math.log(p)
            else:
                p = max(p - clip, 0)
                total -= p**gamma_negative * math.log(1 - p)
    return total / logits.numel()


@given(decisions())
def test_the_default_is_torchs_binary_cross_entropy(drawn: tuple[Tensor, Tensor, Tensor]) -> None:
    logits, targets, weights = drawn
    expected = binary_cross_entropy_with_logits(logits, targets.double())
    torch.testing.assert_close(classification_loss(logits, targets), expected)
    expected = binary_cross_entropy_with_logits(logits, targets.double(), pos_weight=weights)
    torch.testing.assert_close(classification_loss(logits, targets, positive_weights=weights), expected)
    for kind in ("focal", "asymmetric"):
        plain = LossSettings(kind, gamma_positive=0, gamma_negative=0, clip=0)
        torch.testing.assert_close(classification_loss(logits, targets, plain, positive_weights=weights), expected)


@pytest.mark.parametrize("chosen", ALL)
@given(drawn=decisions(), weighted=st.booleans())
def test_losses_are_what_the_formulas_say(
    chosen: LossSettings, drawn: tuple[Tensor, Tensor, Tensor], weighted: bool
) -> None:
    logits, targets, weights = drawn
    some = weights if weighted else None
    loss = classification_loss(logits, targets, chosen, positive_weights=some)
    assert float(loss) == pytest.approx(by_loop(logits, targets, chosen, some), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("chosen", ALL)
def test_gradients_are_those_of_finite_differences(chosen: LossSettings) -> None:
    logits = torch.linspace(-3.1, 3.3, 12, dtype=torch.float64).view(3, 4).requires_grad_()
    targets = torch.arange(12).view(3, 4) % 3 == 0
    weights = torch.tensor([1.0, 2.0, 0.5, 3.0], dtype=torch.float64)
    torch.autograd.gradcheck(lambda x: classification_loss(x, targets, chosen, positive_weights=weights), (logits,))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("chosen", ALL)
def test_extreme_logits_have_finite_losses_and_gradients(chosen: LossSettings, dtype: torch.dtype) -> None:
    logits = torch.tensor([0.0, 1e-7, 20.0, 100.0, 6e4], dtype=dtype)
    logits = torch.cat([logits, -logits]).repeat(2, 1).requires_grad_()
    targets = torch.tensor([[1], [0]]).expand(2, 10)
    loss = classification_loss(logits, targets, chosen)
    assert loss.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert loss.isfinite()
    (gradient,) = torch.autograd.grad(loss, logits)
    assert gradient.isfinite().all()
    assert gradient[0, 9] <= 0  # never away from the truth
    assert gradient[1, 4] >= 0


def test_negatives_below_the_clip_do_not_count() -> None:
    logits = torch.tensor([[-4.0, -3.5, -30.0]], requires_grad=True)  # probabilities below 0.05
    loss = classification_loss(logits, torch.zeros(1, 3), LossSettings("asymmetric"))
    (gradient,) = torch.autograd.grad(loss, logits)
    assert loss.item() == pytest.approx(0, abs=1e-30)
    assert not gradient.any()


def test_logits_and_targets_of_different_shapes_are_refused() -> None:
    for chosen in ALL:
        with pytest.raises(ValueError, match=r"logits are \(2, 3\), targets \(3,\)"):
            classification_loss(torch.zeros(2, 3), torch.zeros(3), chosen)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "hinge"}, "there is no loss 'hinge'"),
        ({"positive_weights": "some"}, "no weighting of positives 'some'"),
        ({"gamma_positive": 2}, "gamma_positive has no meaning for the loss bce"),
        ({"loss": "focal", "gamma_negative": -1}, "gamma_negative is -1"),
        ({"loss": "focal", "gamma_negative": math.nan}, "gamma_negative is nan"),
        ({"loss": "focal", "clip": 0.1}, "the focal loss has no clip"),
        ({"loss": "asymmetric", "clip": 1.0}, "the clip is 1.0"),
        ({"smoothing": 1.0}, "the smoothing is 1.0"),
        ({"smoothing": math.nan}, "the smoothing is nan"),
        ({"consistency": -1}, "the consistency is -1"),
        ({"consistency": math.inf}, "the consistency is inf"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        LossSettings(**options)
    assert caught.value.kind == "bad-option"
    assert caught.value.remedy


def test_positive_weights_are_what_one_computes_by_hand() -> None:
    counts = [0, 1, 20, 50, 80, 100, 1000]
    balanced = [1, 100, 49, 19, 11.5, 9, 0.01]
    assert positive_weights(counts, 1000, "balanced").tolist() == pytest.approx(balanced)
    assert positive_weights(np.array(counts), 1000, "sqrt").tolist() == pytest.approx([x**0.5 for x in balanced])
    assert positive_weights(counts, 1000, "none").tolist() == [1] * 7
    assert positive_weights(counts, 1000).dtype == torch.float32
    with pytest.raises(ValueError, match="more than all 999 documents"):
        positive_weights(counts, 999)
    with pytest.raises(InputError, match="no weighting of positives 'root'"):
        positive_weights(counts, 1000, "root")  # type: ignore[arg-type]


def edges_of(taxonomy: Taxonomy) -> Tensor:
    return torch.tensor(taxonomy.edges)


@given(taxonomies(), st.integers(0, 2**31))
def test_regularisation_is_the_sum_over_parents_and_children(taxonomy: Taxonomy, seed: int) -> None:
    weight = np.random.default_rng(seed).normal(size=(len(taxonomy), 3))
    difference = printed = 0.0
    for parent in range(len(taxonomy)):
        for child in taxonomy.children(parent):
            difference += 0.5 * float(np.linalg.norm(weight[parent] - weight[child])) ** 2
            printed += 0.5 * float(np.linalg.norm(weight[parent] ** 2 - weight[child] ** 2))
    rows, edges = torch.tensor(weight, requires_grad=True), edges_of(taxonomy)
    assert recursive_regularisation(rows, edges).item() == pytest.approx(difference, rel=1e-9)
    assert recursive_regularisation(rows, edges, form="printed").item() == pytest.approx(printed, rel=1e-9)


@pytest.mark.parametrize("form", ["difference", "printed"])
def test_gradients_of_the_regularisation_are_those_of_finite_differences(form: Any) -> None:
    taxonomy = Taxonomy.from_edges([("A", "B"), ("A", "C"), ("B", "D"), ("C", "D")])  # two parents
    weight = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64, requires_grad=True)
    edges = edges_of(taxonomy)
    torch.autograd.gradcheck(lambda rows: recursive_regularisation(rows, edges, form=form), (weight,))


@pytest.mark.parametrize("form", ["difference", "printed"])
def test_equal_rows_cost_nothing_and_have_a_gradient_of_zero(form: Any) -> None:
    weight = torch.ones(3, 4, requires_grad=True)
    loss = recursive_regularisation(weight, torch.tensor([[0, 1], [0, 2]]), form=form)
    (gradient,) = torch.autograd.grad(loss, weight)
    assert loss == 0
    assert not gradient.any()


@pytest.mark.parametrize("form", ["difference", "printed"])
def test_without_edges_the_regularisation_is_nothing_and_still_on_the_graph(form: Any) -> None:
    weight = torch.randn(2, 3, dtype=torch.bfloat16, requires_grad=True)
    loss = recursive_regularisation(weight, torch.empty((0, 2), dtype=torch.long), form=form)
    assert (loss.item(), loss.shape, loss.dtype) == (0, (), torch.float32)
    loss.backward()  # type: ignore[no-untyped-call]
    assert weight.grad is not None
    assert not weight.grad.any()


def test_an_unknown_form_is_refused() -> None:
    with pytest.raises(InputError, match="Choose one of difference, printed"):
        recursive_regularisation(torch.zeros(1, 1), torch.zeros((0, 2), dtype=torch.long), form="cubed")  # type: ignore[arg-type]


@given(decisions())
def test_smoothed_targets_keep_the_number_of_labels_and_give_a_share_to_every_label(
    drawn: tuple[Tensor, Tensor, Tensor],
) -> None:
    logits, truth, _ = drawn
    targets = truth.double()
    soft = smoothed(targets, 0.1)
    torch.testing.assert_close(soft.sum(dim=1), targets.sum(dim=1))
    for row, before in zip(soft, targets, strict=True):
        share = 0.1 * float(before.sum()) / len(before)
        assert row.tolist() == pytest.approx([0.9 * target + share for target in before.tolist()])
    found = classification_loss(logits, truth, LossSettings(smoothing=0.1))
    torch.testing.assert_close(found, binary_cross_entropy_with_logits(logits, soft))
    assert torch.equal(smoothed(targets, 0), targets)


@given(decisions(), st.integers(0, 2**31))
def test_disagreement_is_the_divergence_of_the_decisions_both_ways(
    drawn: tuple[Tensor, Tensor, Tensor], seed: int
) -> None:
    first = drawn[0]
    second = first + torch.randn(first.shape, generator=torch.Generator().manual_seed(seed), dtype=first.dtype)
    one, two = (torch.distributions.Bernoulli(logits=each) for each in (first, second))
    both = [torch.distributions.kl_divergence(one, two), torch.distributions.kl_divergence(two, one)]
    torch.testing.assert_close(disagreement(first, second), torch.stack(both).mean())
    assert disagreement(first, first) == 0
