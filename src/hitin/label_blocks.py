"""The last layer of a network over very many labels, some labels at a time: its loss with the gradient, and its counts.

A batch of 128 documents by 100,000 labels is a table of 51 MB, of which a loss and its gradient take half a dozen. Here
a block of it exists at a time, and all that is wanted of it is made before the next: the way back is not gone again.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from hitin.losses import LossSettings, loss_of_negatives, loss_of_positives
from hitin.precision import half_precision

_CELLS = {"cpu": 1 << 19}  # of a block: on a CPU it stays in the caches
_GPU_CELLS = 1 << 24


class LastLayer(NamedTuple):
    """logits = features weight' + bias"""

    weight: Tensor
    """(|Y|, d)"""
    bias: Tensor
    """(|Y|,)"""


class Positives(NamedTuple):
    """The labels that the documents of a batch have, in pairs."""

    rows: Tensor
    """(n,): the number of the document in the batch."""
    labels: Tensor
    """(n,)"""


class Chosen(NamedTuple):
    """Labels that count, and how often each does."""

    labels: Tensor
    """(n,), rising"""
    scale: Tensor
    """(n,)"""


class Block(NamedTuple):
    """Some labels of all documents of a batch."""

    places: slice
    """Which labels; of those that were chosen, where some were."""
    weight: Tensor
    """(c, d)"""
    logits: Tensor
    """(B, c)"""
    rows: Tensor
    """(m,): the documents of the positives that are in the block."""
    columns: Tensor
    """(m,): their labels, counted from the first of the block."""
    positives: slice
    """Which they are of all, sorted by label."""


def chosen_by_chance(held: Tensor, labels: int, negatives: int) -> Chosen | None:
    """The labels that are held, and so many others, each of which stands for as many as were passed over.

    Everything, as `None`, where there are no more. The loss and its gradient are on average those of all labels.
    """
    mark = torch.zeros(labels, dtype=torch.bool)
    mark[held.cpu()] = True
    others = torch.nonzero(~mark).squeeze(1)
    if negatives >= len(others):
        return None
    drawn = others[torch.randperm(len(others))[:negatives]]
    scale = torch.ones(labels)
    scale[drawn] = len(others) / negatives
    mark[drawn] = True
    found = torch.nonzero(mark).squeeze(1)
    return Chosen(found.to(held.device), scale[found].to(held.device))


class Blocks:
    """The logits of a batch, block by block."""

    def __init__(
        self, features: Tensor, layer: LastLayer, positives: Positives | None = None, chosen: Chosen | None = None
    ) -> None:
        """`features` are (B, d). In mixed precision, products are in half precision and the rest is not."""
        device = features.device
        self.half = half_precision(device)
        self.features, self.layer, self.chosen = self.short(features), layer, chosen
        self.count = len(layer.weight) if chosen is None else len(chosen.labels)
        self.size = max(1, _CELLS.get(device.type, _GPU_CELLS) // max(len(features), 1))
        rows = labels = torch.zeros(0, dtype=torch.int64, device=device)
        if positives is not None:
            rows, labels = positives
            labels = labels if chosen is None else torch.searchsorted(chosen.labels, labels)
        self.order = torch.argsort(labels, stable=True)
        self.rows, self.labels = rows[self.order], labels[self.order]

    def short(self, values: Tensor) -> Tensor:
        return values if self.half is None else values.to(self.half)

    def __iter__(self) -> Iterator[Block]:
        starts = [*range(0, self.count, self.size), self.count]
        wanted = torch.tensor(starts, device=self.labels.device)
        cuts = torch.searchsorted(self.labels, wanted).tolist()
        for (start, end), (first, last) in zip(pairwise(starts), pairwise(cuts), strict=True):
            weight, bias = (self._part(values, slice(start, end)) for values in self.layer)
            weight = self.short(weight)
            wide = torch.promote_types(self.features.dtype, torch.float32)
            if self.half is None:
                logits = torch.addmm(bias, self.features, weight.t())
            else:
                logits = (self.features @ weight.t()).to(wide) + bias
            own = slice(first, last)
            yield Block(slice(start, end), weight, logits, self.rows[own], self.labels[own] - start, own)

    def _part(self, values: Tensor, places: slice) -> Tensor:
        return values[places] if self.chosen is None else values[self.chosen.labels[places]]


def loss_in_blocks(
    features: Tensor,
    layer: LastLayer,
    positives: Positives,
    settings: LossSettings,
    *,
    positive_weights: Tensor | None = None,
    chosen: Chosen | None = None,
) -> Tensor:
    """`classification_loss` of the logits of (B, d) features, without the table of them; perhaps of some labels."""
    made: Any = _LossInBlocks.apply
    with torch.no_grad():
        weights = None if positive_weights is None else positive_weights[positives.labels]
    loss: Tensor = made(features, *layer, positives, settings, weights, chosen)
    return loss


class _LossInBlocks(torch.autograd.Function):
    """The gradient is that of the sum over all decisions: that of their mean would be too small for half precision."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        bias: Tensor,
        positives: Positives,
        settings: LossSettings,
        positive_weights: Tensor | None,
        chosen: Chosen | None,
    ) -> Tensor:
        blocks = Blocks(features, LastLayer(weight, bias), positives, chosen)
        wide = torch.promote_types(features.dtype, torch.float32)
        weights = None if positive_weights is None else positive_weights[blocks.order].to(wide)
        sums = _Sums(features, weight, bias) if any(ctx.needs_input_grad) else None
        total = features.new_zeros((), dtype=wide)
        with torch.autocast(features.device.type, enabled=False):
            for block in blocks:
                values, slopes = _decided(block, settings, None if weights is None else weights[block.positives])
                if chosen is not None:
                    scale = chosen.scale[block.places].to(wide)
                    values, slopes = values * scale, slopes * scale
                total += values.sum()
                if sums is not None:
                    sums.add(block, slopes, blocks)
        ctx.share = 1 / (len(features) * len(weight))
        ctx.save_for_backward(*(() if sums is None else sums.tables))
        mean: Tensor = total * ctx.share
        return mean

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        factor = gradients[0] * ctx.share
        return (*(table * factor for table in ctx.saved_tensors), None, None, None, None)


class _Sums:
    """The gradient by features, weight and bias, as it adds up."""

    def __init__(self, features: Tensor, weight: Tensor, bias: Tensor) -> None:
        wide = torch.promote_types(features.dtype, torch.float32)
        self.of_features = torch.zeros_like(features, dtype=wide)
        self.of_weight, self.of_bias = torch.zeros_like(weight), torch.zeros_like(bias)

    @property
    def tables(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.of_features, self.of_weight, self.of_bias

    def add(self, block: Block, slopes: Tensor, blocks: Blocks) -> None:
        """`slopes` (B, c) are the gradient by the logits of a block."""
        short = blocks.short(slopes)
        self.of_features += short @ block.weight
        of_weight, of_bias = (short.t() @ blocks.features).to(self.of_weight.dtype), slopes.sum(dim=0)
        places = block.places if blocks.chosen is None else blocks.chosen.labels[block.places]
        self.of_weight[places] = of_weight
        self.of_bias[places] = of_bias.to(self.of_bias.dtype)


def _decided(block: Block, settings: LossSettings, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """The loss of each decision of a block and its derivative by the logit, (B, c) both."""
    cells = block.rows, block.columns
    own = block.logits[cells]  # those of labels that the document has
    if settings.loss == "bce":
        values, slopes = -functional.logsigmoid(-block.logits), torch.sigmoid(block.logits)
        own_values, own_slopes = -functional.logsigmoid(own), -torch.sigmoid(-own)
    else:
        values, slopes = _with_slopes(loss_of_negatives, block.logits, settings)
        own_values, own_slopes = _with_slopes(loss_of_positives, own, settings)
    if weights is not None:
        own_values, own_slopes = own_values * weights, own_slopes * weights
    values[cells], slopes[cells] = own_values, own_slopes
    return values, slopes


def _with_slopes(loss: Any, logits: Tensor, settings: LossSettings) -> tuple[Tensor, Tensor]:
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        values: Tensor = loss(leaf, settings)
        (slopes,) = torch.autograd.grad(values.sum(), leaf)
    return values.detach(), slopes


def judged_in_blocks(features: Tensor, layer: LastLayer, positives: Positives) -> tuple[Tensor, Tensor]:
    """The cross-entropy of a batch, the mean over its decisions; and (3, |Y|) how many documents were rightly given
    each label at a threshold of one half, were given it, and have it."""
    settings, total = LossSettings(), torch.zeros((), dtype=torch.float32, device=features.device)
    counts = torch.zeros(3, len(layer.weight), dtype=torch.int64, device=features.device)
    blocks = Blocks(features, layer, positives)
    with torch.autocast(features.device.type, enabled=False):
        for block in blocks:
            values, _ = _decided(block, settings, None)
            total += values.sum()
            own = block.columns[block.logits[block.rows, block.columns] > 0]
            right, given, actual = (each[block.places] for each in counts)
            right += torch.bincount(own, minlength=len(right))
            given += (block.logits > 0).sum(dim=0)
            actual += torch.bincount(block.columns, minlength=len(actual))
    return total / (len(features) * len(layer.weight)), counts
