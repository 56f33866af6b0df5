"""What training minimises: the loss of the decisions (Eq. 13) and the recursive regularisation (Eq. 14)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from hitin.errors import shown
from hitin.option_values import bad_option
from hitin.precision import in_full

LossKind = Literal["bce", "focal", "asymmetric"]
Weighting = Literal["none", "balanced", "sqrt"]
Regularisation = Literal["difference", "printed"]

MOST_WEIGHT = 100.0
"""The weight of a rare label's positives at most; its inverse is that of a label on all documents."""

_DEFAULTS = {  # gamma_positive, gamma_negative, clip
    "bce": (0.0, 0.0, 0.0),
    "focal": (2.0, 2.0, 0.0),
    "asymmetric": (0.0, 4.0, 0.05),
}


@dataclass(frozen=True)
class LossSettings:
    """Which loss of the decisions, and how it weighs them.

    `bce`: binary cross-entropy, as in the paper. `focal`: the same times (1 - p)^gamma, p being the probability of
    the truth, so that easy decisions count little (Lin et al. 2017). `asymmetric`: a gamma for labels that a document
    has and one for those it has not, of which those with a probability below `clip` do not count (Ridnik et al. 2021).
    What is not given is as in those papers. `positive_weights` says how labels that a document has are weighted.
    """

    loss: LossKind = "bce"
    gamma_positive: float | None = None
    gamma_negative: float | None = None
    clip: float | None = None
    positive_weights: Weighting = "none"
    smoothing: float = 0.0
    """How much of the certainty of a document's labels is taken from them and spread over all labels."""
    consistency: float = 0.0
    """How much weight it has that a document read twice, with dropout of its own each time, is judged alike (R-Drop,
    Liang et al. 2021). A step takes twice as long; 0: documents are read once."""
    linear_teacher: float = 0.0
    """How much of what is to be learnt of a training document comes from linear models that have not seen it; the rest
    are its labels. They are trained first (the method `linear`, five times); 0: there are none."""
    regularisation: float = 1e-6
    """Lambda of Eq. 15."""
    regularisation_form: Regularisation = "difference"
    negatives: int = 0
    """Of the labels that no document of a batch has, how many count, chosen by chance and weighted so that the loss
    stays the same on average; 0: all. For the methods `hitin` and `flat`, without `smoothing`, `consistency` and
    `linear_teacher`."""
    labels_at_once: int = 16_384
    """With more labels, the loss is computed some labels at a time, where the method allows it: a table of the
    documents of a batch by all labels is never made. `smoothing`, `consistency` and `linear_teacher` are left out then,
    also the usual consistency of TextRCNN and transformers."""

    def __post_init__(self) -> None:
        _check_choice("loss", self.loss, get_args(LossKind))
        _check_choice("weighting of positives", self.positive_weights, get_args(Weighting))
        for name in ("gamma_positive", "gamma_negative", "clip"):
            self._check_number(name, getattr(self, name))
        _check_choice("form of the regularisation", self.regularisation_form, get_args(Regularisation))
        if not 0 <= self.smoothing < 1:
            raise bad_option(f"the smoothing is {self.smoothing}", "It is a number from 0 to below 1, such as 0.1.")
        if not 0 <= self.linear_teacher < 1:
            problem = f"the share of the linear teacher is {self.linear_teacher}"
            raise bad_option(problem, "It is a number from 0 to below 1, such as 0.3.")
        if not 0 <= self.consistency < float("inf"):
            raise bad_option(f"the consistency is {self.consistency}", "It is a number from 0 up, such as 3.")
        if not 0 <= self.regularisation < float("inf"):
            raise bad_option(f"the regularisation is {self.regularisation}", "It is a number from 0 up, such as 1e-6.")
        if self.negatives < 0 or self.labels_at_once < 0:
            least = min(self.negatives, self.labels_at_once)
            raise bad_option(f"{least} is no number of labels", "negatives and labels_at_once are 0 or more.")
        if self.loss == "focal" and self.clip:
            raise bad_option("the focal loss has no clip", "Choose the asymmetric loss, which has one.")

    def _check_number(self, name: str, value: float | None) -> None:
        if value is None:
            return
        if self.loss == "bce":
            raise bad_option(f"{name} has no meaning for the loss bce", "Choose the focal or the asymmetric loss.")
        if name == "clip" and not 0 <= value < 1:
            raise bad_option(f"the clip is {value}", "It is a probability from 0 to below 1, such as 0.05.")
        if not 0 <= value < float("inf"):
            raise bad_option(f"{name} is {value}", "It is a number from 0 up, such as 2.")

    @property
    def resolved(self) -> tuple[float, float, float]:
        """The gammas for positives and negatives and the clip, the usual ones where none are given."""
        given = (self.gamma_positive, self.gamma_negative, self.clip)
        usual = _DEFAULTS[self.loss]
        positive, negative, clip = (now if value is None else value for value, now in zip(given, usual, strict=True))
        return positive, negative, clip


def classification_loss(
    logits: Tensor,
    targets: Tensor,
    settings: LossSettings | None = None,
    *,
    positive_weights: Tensor | None = None,
) -> Tensor:
    """The mean over documents and labels of (B, n) decisions, from logits; in 32 bits where these are halves.

    `positive_weights` has a weight for each label, by which its positives are multiplied.
    """
    if logits.shape != targets.shape:
        raise ValueError(f"logits are {tuple(logits.shape)}, targets {tuple(targets.shape)}")
    settings = settings or LossSettings()
    logits = in_full(logits)
    targets = smoothed(targets.to(logits.dtype), settings.smoothing)
    if positive_weights is not None:
        positive_weights = positive_weights.to(logits)
    if settings.loss == "bce":
        return functional.binary_cross_entropy_with_logits(logits, targets, pos_weight=positive_weights)
    positives = targets * loss_of_positives(logits, settings)
    if positive_weights is not None:
        positives = positives * positive_weights
    return (positives + (1 - targets) * loss_of_negatives(logits, settings)).mean()


def smoothed(targets: Tensor, share: float) -> Tensor:
    """(B, n): targets that are less sure of themselves; each document has as many labels in sum as before.

    The share is spread over all labels alike (Szegedy et al. 2016, here for documents of several labels).
    """
    return targets * (1 - share) + share * targets.mean(dim=1, keepdim=True) if share else targets


def disagreement(first: Tensor, second: Tensor) -> Tensor:
    """How far apart two judgements of the same documents are, from (B, n) logits each.

    The mean over decisions of the Kullback-Leibler divergence, half of it each way: for one decision,
    D(p || q) + D(q || p) = (p - q)(logit p - logit q).
    """
    first, second = in_full(first), in_full(second)
    return ((first.sigmoid() - second.sigmoid()) * (first - second)).mean() / 2


def loss_of_positives(logits: Tensor, settings: LossSettings) -> Tensor:
    """Of each decision, as one on a label that the document has; without its weight."""
    return -_focused(functional.logsigmoid(-logits), functional.logsigmoid(logits), settings.resolved[0])


def loss_of_negatives(logits: Tensor, settings: LossSettings) -> Tensor:
    """Of each decision, as one on a label that the document has not."""
    _, gamma, clip = settings.resolved
    return -_focused(*_log_negatives(logits, clip), gamma)


def _focused(log_wrong: Tensor, log_right: Tensor, gamma: float) -> Tensor:
    """wrong^gamma log(right). As a power of e, its gradient is finite also where the probability is 0."""
    return torch.exp(gamma * log_wrong) * log_right if gamma else log_right


def _log_negatives(logits: Tensor, clip: float) -> tuple[Tensor, Tensor]:
    """log(p) and log(1 - p) with p less by the clip, but not below 0; nor quite 0, which has no logarithm."""
    if not clip:
        return functional.logsigmoid(logits), functional.logsigmoid(-logits)
    wrong = (torch.sigmoid(logits) - clip).clamp(min=torch.finfo(logits.dtype).tiny)
    right = (torch.sigmoid(-logits) + clip).clamp(max=1)
    return wrong.log(), right.log()


def positive_weights(
    label_counts: Sequence[int] | NDArray[np.int64], documents: int, how: Weighting = "balanced"
) -> Tensor:
    """A weight for each label's positives, (n,) in 32 bits; `label_counts` says how many documents have each label.

    `balanced`: as much for the documents that have a label as for those that have not, within `MOST_WEIGHT`;
    `sqrt`: the square root of that. A label that never occurs weighs 1.
    """
    _check_choice("weighting of positives", how, get_args(Weighting))
    counts = torch.tensor(label_counts, dtype=torch.float64)
    if bool(((counts < 0) | (counts > documents)).any()):
        raise ValueError(f"a label is on fewer than 0 or more than all {documents} documents")
    if how == "none":
        return torch.ones(len(counts))
    balanced = ((documents - counts) / counts.clamp(min=1)).clamp(1 / MOST_WEIGHT, MOST_WEIGHT)
    balanced[counts == 0] = 1
    return (balanced.sqrt() if how == "sqrt" else balanced).float()


def recursive_regularisation(weight: Tensor, edges: Tensor, *, form: Regularisation = "difference") -> Tensor:
    """Eq. 14: classifier weights of a label are drawn to those of its parents (Gopal and Yang 2013).

    `weight` has a row for each label, (n, d); `edges` is (m, 2), the numbers of parent and child. `difference` is
    1/2 sum ||w_p - w_q||^2, which the authors' code computes; `printed` is what the paper says,
    1/2 sum ||w_p^2 - w_q^2||.
    """
    _check_choice("form of the recursive regularisation", form, get_args(Regularisation))
    weight = in_full(weight)
    if form == "difference":
        made: Any = _HalfOfSquares.apply
        penalty: Tensor = made(weight, edges[:, 0], edges[:, 1])
        return penalty
    parents, children = weight[edges[:, 0]], weight[edges[:, 1]]  # (m, d)
    squares = (parents.square() - children.square()).square().sum(dim=1)
    differs = squares > 0  # of equal rows the root has no finite gradient: that of 1 is taken, times 0
    return (torch.where(differs, squares, 1).sqrt() * differs).sum() / 2


class _HalfOfSquares(torch.autograd.Function):
    """1/2 sum ||w_p - w_q||^2. Back, each difference is added to one row and taken from another.

    Of indexed rows torch would sort the numbers first, which takes longer than all the rest.
    """

    @staticmethod
    def forward(ctx: Any, weight: Tensor, parents: Tensor, children: Tensor) -> Tensor:
        apart = weight.index_select(0, parents) - weight.index_select(0, children)  # (m, d)
        ctx.save_for_backward(apart, parents, children)
        ctx.rows = len(weight)
        return torch.dot(apart.flatten(), apart.flatten()) / 2

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        apart, parents, children = ctx.saved_tensors
        moved = apart * gradients[0]
        of_weight = moved.new_zeros(ctx.rows, moved.shape[1]).index_add_(0, parents, moved)
        return of_weight.index_add_(0, children, moved, alpha=-1), None, None


def _check_choice(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise bad_option(f"there is no {what} {shown(value)}", f"Choose one of {', '.join(choices)}.")
