"""Batch normalisation of the nodes of HiTIN's coding tree, also of a layer that is folded into a_u p_b + c_u.

p (B, d) are documents, a (n,) and c (n, d) belong to nodes; the layer is (B, n, d).

Of several processes each sees its own documents alone, unless it has `Company`: then sums over documents are those of
all processes, on the way forward and on the way back, and what one process would compute is computed by all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from hitin.precision import in_full

_MANY = 1 << 20  # numbers of a layer from which half precision and folding save more than they cost


def are_many(numbers: int) -> bool:
    """Whether a layer of so many numbers is worth a few more steps that look at them less often."""
    return numbers >= _MANY


def outer(scale: Tensor, text: Tensor, offset: Tensor, half: torch.dtype | None = None) -> Tensor:
    """(B, n, d): a_u p_b + c_u; many of them in half precision, where there is one."""
    if half is not None and are_many(text.shape[0] * offset.numel()):
        scale, text, offset = scale.to(half), text.to(half), offset.to(half)
    made: Any = _Outer.apply
    nodes: Tensor = made(scale, text, offset)
    return nodes


class _Outer(torch.autograd.Function):
    """Back, three sums over the gradient of the layer; torch by itself would make two more layers."""

    @staticmethod
    def forward(ctx: Any, scale: Tensor, text: Tensor, offset: Tensor) -> Tensor:
        ctx.save_for_backward(scale, text)
        return torch.addcmul(offset, scale[None, :, None], text[:, None])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scale, text = ctx.saved_tensors
        of_scale = torch.bmm(gradients[0], text[:, :, None]).sum(dim=(0, 2))
        return of_scale, _over_nodes(scale, gradients[0]), gradients[0].sum(dim=0)


def _over_nodes(scale: Tensor, layer: Tensor) -> Tensor:
    """(B, d): the sum of the nodes of each document, times their scales."""
    return torch.bmm(scale.expand(len(layer), 1, -1), layer).squeeze(1)


def _over_rows(rows: Tensor) -> Tensor:
    """(d,): the sum. As a product it is several times as fast on a GPU where rows are many."""
    return rows.new_ones(len(rows)) @ rows


@dataclass(frozen=True)
class Company:
    """Other processes that have the rest of a batch."""

    documents: int
    """Of the whole batch, those of this process included."""
    counts: bool
    """Whether the documents of this process are of the batch, or it computes only to keep pace."""

    def sums(self, *own: Tensor) -> list[Tensor]:
        """Each tensor, summed over all processes. All have to ask for the same ones."""
        flat = torch.cat([each.reshape(-1) for each in own])
        flat = flat if self.counts else torch.zeros_like(flat)
        torch.distributed.all_reduce(flat)
        parts = torch.split(flat, [each.numel() for each in own])
        return [part.view(each.shape) for part, each in zip(parts, own, strict=True)]


def _summed(company: Company | None, *own: Tensor) -> list[Tensor]:
    return [*own] if company is None else company.sums(*own)


class NodeBatchNorm(nn.BatchNorm1d):
    """Batch normalisation over documents and nodes together.

    One single row, which has no variance, is given the running statistics instead. Those of a batch wait in
    `of_batch` until `remember` brings the running ones nearer to them.
    """

    running_mean: Tensor
    running_var: Tensor
    num_batches_tracked: Tensor
    of_batch: Tensor
    """(2, d): the mean but for `shift`, and the unbiased variance."""

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.register_buffer("of_batch", torch.zeros(2, width), persistent=False)
        self.shift: Tensor | None = None
        """What the mean of the last batch still wants; none if there is no batch to remember."""
        self.company: Company | None = None
        """Of the next batch in training, where its statistics are those of several processes."""

    def forward(self, nodes: Tensor, shift: Tensor | None = None) -> Tensor:
        """The nodes are still without the bias `shift`, which the mean of a batch would take away again."""
        shift = self.bias.new_zeros(()) if shift is None else shift
        rows = nodes.reshape(-1, nodes.shape[-1])  # (B n, d)
        if self.training and self._count(rows, nodes.shape[0]) > 1:
            rows = self._of_batch(_unshifted(rows, shift), self._count(rows, nodes.shape[0]))
            self.shift = shift.detach()
        else:
            rows = functional.batch_norm(
                rows + shift, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return rows.view(nodes.shape)

    def _count(self, rows: Tensor, documents: int) -> int:
        """Rows in all processes, of which these belong to so many documents."""
        return rows.shape[0] if self.company is None else rows.shape[0] // documents * self.company.documents

    def _of_batch(self, rows: Tensor, count: int) -> Tensor:
        """The rows of a layer, normalised over all of them, perhaps with those of other processes."""
        if self.company is None:
            return functional.batch_norm(  # a momentum of 1: nothing is left of the batch before
                rows, self.of_batch[0], self.of_batch[1], self.weight, self.bias, True, 1.0, self.eps
            )
        made: Any = _SharedNorm.apply
        found: Tensor
        found, mean, variance = made(rows, self.weight, self.bias, self.eps, count, self.company)
        torch.stack([mean, variance * (count / (count - 1))], out=self.of_batch)
        return found

    def folded(
        self, scale: Tensor, text: Tensor, offset: Tensor, shift: Tensor, half: torch.dtype | None = None
    ) -> Tensor:
        """`forward` of the nodes a_u p_b + c_u."""
        documents = text.shape[0] if self.company is None else self.company.documents
        rows = documents * scale.shape[0]
        if not self.training or rows <= 1:
            factor = self.weight * torch.rsqrt(self.running_var + self.eps)
            centred = offset + (shift - self.running_mean)
            return outer(scale, text * factor, torch.addcmul(self.bias, centred, factor), half)
        if not are_many(documents * offset.numel()):
            return self.forward(outer(scale, text, offset), shift)
        made: Any = _FoldedNorm.apply
        nodes: Tensor
        offset = _unshifted(offset, shift)
        nodes, mean, variance = made(
            scale, text, offset, self.weight, self.bias, self.eps, half, documents, self.company
        )
        torch.stack([mean, variance * (rows / (rows - 1))], out=self.of_batch)
        self.shift = shift.detach()
        return nodes


class _Unshifted(torch.autograd.Function):
    """Rows as they are. A bias for all of them would change nothing of what is made of them: its gradient is 0."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, shift: Tensor) -> Tensor:
        ctx.save_for_backward(shift)
        return rows.view_as(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        (shift,) = ctx.saved_tensors
        return gradients[0], torch.zeros_like(shift)


def _unshifted(rows: Tensor, shift: Tensor) -> Tensor:
    made: Any = _Unshifted.apply
    same: Tensor = made(rows, shift)
    return same


class _SharedNorm(torch.autograd.Function):
    """Rows normalised over those of all processes, `count` together: y = w (x - m) s + v, with s = 1 / deviation.

    Back, with g the gradient of y: that of x is w s (g - mean(g) - z mean(g z)), z being (x - m) s.
    """

    @staticmethod
    def forward(
        ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor, eps: float, count: int, company: Company
    ) -> tuple[Tensor, Tensor, Tensor]:
        plain = in_full(rows)
        mean = company.sums(plain.sum(dim=0))[0] / count  # (d,)
        centred = plain - mean
        variance = company.sums(centred.square().sum(dim=0))[0] / count
        inverse = torch.rsqrt(variance + eps)
        normal = centred * inverse  # z
        ctx.save_for_backward(normal, weight, inverse)
        ctx.count, ctx.company, ctx.kind = count, company, rows.dtype
        ctx.mark_non_differentiable(mean, variance)
        return torch.addcmul(bias, normal, weight).to(rows.dtype), mean, variance

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        normal, weight, inverse = ctx.saved_tensors
        gradient = in_full(gradients[0])
        of_bias, of_weight = gradient.sum(dim=0), (gradient * normal).sum(dim=0)
        share, slope = (each / ctx.count for each in ctx.company.sums(of_bias, of_weight))
        towards = torch.addcmul(share, normal, slope) if ctx.company.counts else 0.0
        of_rows = (weight * inverse * (gradient - towards)).to(ctx.kind)
        return of_rows, of_weight, of_bias, None, None, None


class _FoldedNorm(torch.autograd.Function):
    """The nodes x = a_u p_b + c_u, normalised over documents and nodes: y = w (x - m) s + v, with s = 1 / deviation.

    The mean over documents and nodes is the mean over nodes of a_u mean(p) + c_u; the variance is mean(a^2) var(p),
    within the documents, plus the variance of a_u mean(p) + c_u, between the nodes. Then y is again of the form
    a_u p' + c'_u.

    Back, with g the gradient of y and N the number of rows: that of x is w s (g - mean(g) - (x - m) k), k being
    s^2 sum(g (x - m)) / N. Of all sums over documents and nodes three remain that have to look at g: those of a_u g
    over nodes, of g over documents, and of w s p g over documents and features. Left to itself, torch would make a
    dozen tensors of the size of x.

    Of several processes, each has its own documents; mean, variance, mean(g) and k are those of all.
    """

    @staticmethod
    def forward(
        ctx: Any,
        scale: Tensor,
        text: Tensor,
        offset: Tensor,
        weight: Tensor,
        bias: Tensor,
        eps: float,
        half: torch.dtype | None,
        documents: int,
        company: Company | None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        within, centre = _spread(text, documents, company)  # (d,)
        nodes = torch.addcmul(offset, scale[:, None], centre)  # (n, d), of a document in the middle
        mean = _over_rows(nodes) / len(nodes)
        between = _over_rows((nodes - mean).square()) / len(nodes)
        variance = torch.addcmul(between, within, scale.square().mean())
        inverse = torch.rsqrt(variance + eps)
        factor, centred = weight * inverse, offset - mean
        ctx.save_for_backward(scale, text, centred, inverse, factor)
        ctx.rows, ctx.company = documents * len(scale), company
        ctx.mark_non_differentiable(mean, variance)
        return outer(scale, text * factor, torch.addcmul(bias, centred, factor), half), mean, variance

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        scale, text, centred, inverse, factor = ctx.saved_tensors
        gradient, documents = gradients[0], len(text)
        over_nodes = _over_nodes(scale.to(gradient.dtype), gradient).to(text.dtype)  # (B, d)
        over_documents = gradient.sum(dim=0, dtype=text.dtype)  # (n, d)
        over_text = torch.bmm(gradient, (text * factor).to(gradient.dtype)[:, :, None]).sum(dim=0, dtype=text.dtype)
        whole = _over_rows(over_documents)
        of_weight = inverse * ((text * over_nodes).sum(dim=0) + _over_rows(centred * over_documents))
        share, slope = (each / ctx.rows for each in _summed(ctx.company, whole, inverse * of_weight))  # mean(g) and k
        if ctx.company is not None and not ctx.company.counts:  # these documents are in no mean
            share, slope = torch.zeros_like(share), torch.zeros_like(slope)
        centre = text.mean(dim=0)
        constant = torch.addcmul(scale.sum() * share, slope, scale @ centred)
        of_text = factor * (over_nodes - torch.addcmul(constant, slope * scale.square().sum(), text))
        nodes = torch.addcmul(centred, scale[:, None], centre)
        of_offset = factor * (over_documents - documents * torch.addcmul(share, slope, nodes))
        towards = factor * centre * documents
        of_scale = over_text[:, 0] - towards @ share - centred @ (towards * slope)
        of_scale = of_scale - scale * ((factor * slope) @ text.square().sum(dim=0))
        return of_scale, of_text, of_offset, of_weight, whole, None, None, None, None


def _spread(text: Tensor, documents: int, company: Company | None) -> tuple[Tensor, Tensor]:
    """(d,) each: the variance over the documents of all processes, and the mean."""
    if company is None:
        within, centre = torch.var_mean(text, dim=0, correction=0)
        return within, centre
    centre = company.sums(text.sum(dim=0))[0] / documents
    return company.sums((text - centre).square().sum(dim=0))[0] / documents, centre


@torch.no_grad()
def remember(norms: Sequence[NodeBatchNorm]) -> None:
    """Bring the running statistics nearer to what each norm has seen, all at once.

    These are the plain mean of the batches at first: a tree of many nodes has numbers far from 0 and 1, which few
    batches would not forget.
    """
    used = [(norm, norm.shift) for norm in norms if norm.shift is not None]
    if not used:
        return
    norms = [norm for norm, _ in used]
    means = torch._foreach_add([norm.of_batch[0] for norm in norms], [shift for _, shift in used])
    seen = [each for mean, norm in zip(means, norms, strict=True) for each in (mean, norm.of_batch[1])]
    for norm in norms:
        norm.shift = None
    batches = [norm.num_batches_tracked for norm in norms]
    torch._foreach_add_(batches, 1)
    part = torch.stack([each for each in batches for _ in range(2)]).reciprocal().clamp(min=norms[0].momentum)
    running = [each for norm in norms for each in (norm.running_mean, norm.running_var)]
    moved = torch.lerp(torch.stack(running), torch.stack(seen), part.to(running[0].dtype)[:, None])
    torch._foreach_copy_(running, moved.unbind())
