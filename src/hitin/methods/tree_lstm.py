"""The Tree-LSTM of HiAGM: labels are read from the bottom up and from the top down, a level at a time."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from hitin.methods.interface import Facts, Fidelity
from hitin.methods.structure import EDGE_DROPOUT, EdgeWeights, StructureEncoder, sums
from hitin.option_values import bad_option
from hitin.precision import in_full
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import level_slices
from hitin.taxonomy.taxonomy import Ids


class TreeLSTM(StructureEncoder):
    """out_k = [what was read up to k ; what was read down to k], half the width each."""

    def __init__(self, taxonomy: Taxonomy, width: int, fidelity: Fidelity) -> None:
        check_even(width)
        super().__init__(taxonomy, width, fidelity)
        levels = list(level_slices(taxonomy))
        parents, children = taxonomy.edges.T
        self.upwards = Reading(width, _steps(levels[::-1], parents, children))
        self.downwards = Reading(width, _steps(levels, children, parents))
        self.dropout = nn.Dropout(EDGE_DROPOUT)
        if fidelity == "upstream":  # the published program has it, and never uses it
            self.unused = nn.Linear(width, width // 2).requires_grad_(False)

    def prepare(self, facts: Facts) -> None:
        """As published, the shares of children are looked up the wrong way round, where there are none."""
        super().prepare(facts)
        if self.fidelity == "upstream":
            self.down.begin(torch.zeros(len(self.edges)))

    def forward(self, nodes: Tensor) -> Tensor:
        halves = [self.upwards(nodes, self.up), self.downwards(nodes, self.down)]
        return torch.cat([self.dropout(half) for half in halves], dim=-1)  # (..., N, d)


def check_even(width: int) -> None:
    """Refuse a width that has no half."""
    if width % 2:
        remedy = "Half of it is read upwards, half downwards: choose an even width, or structure gcn."
        raise bad_option(f"a tree-lstm cannot give labels vectors of the width {width}", remedy)


class Step(NamedTuple):
    """The edges that end in the labels of one level."""

    level: slice
    edges: Tensor
    """(e,): their numbers."""
    senders: Tensor
    """(e,): the labels they come from, all of levels that were read before."""
    receivers: Tensor
    """(e,): the labels they end in, counted from the first of the level."""


def _steps(levels: Sequence[slice], receivers: Ids, senders: Ids) -> list[Step]:
    """The edges by the level they end in, in the order of these levels."""
    steps = []
    for level in levels:
        edges = np.flatnonzero((receivers >= level.start) & (receivers < level.stop))
        arrays = (edges, senders[edges], receivers[edges] - level.start)
        steps.append(Step(level, *map(torch.from_numpy, arrays)))
    return steps


class Reading(nn.Module):
    """One direction: a child-sum LSTM cell, of which every label remembers half a vector.

    A label k with the vector x_k is sent states (c_j, h_j) along edges, which first are multiplied by their weights:
    i, o, u = sigmoid, sigmoid, tanh of W x_k + U sum_j h_j; f_j = sigmoid(W' x_k + U' h_j);
    c_k = i u + sum_j f_j c_j; h_k = o tanh(c_k). Without an edge, the sums are 0.
    """

    def __init__(self, width: int, steps: Sequence[Step]) -> None:
        super().__init__()
        half = width // 2
        self.label = nn.Linear(width, 3 * half)
        self.state = nn.Linear(half, 3 * half)
        self.label_forget = nn.Linear(width, half)
        self.state_forget = nn.Linear(half, half)
        self.levels = [step.level for step in steps]
        for number, step in enumerate(steps):
            for name in ("edges", "senders", "receivers"):
                self.register_buffer(f"{name}_{number}", getattr(step, name), persistent=False)

    def forward(self, nodes: Tensor, weights: EdgeWeights) -> Tensor:
        """(..., N, d) -> (..., N, d / 2)"""
        gates, forget = self.label(nodes), self.label_forget(nodes)  # (..., N, 3 d / 2), (..., N, d / 2)
        states = in_full(forget).new_zeros(2, *forget.shape)  # c and h of each label
        for number, level in enumerate(self.levels):
            sent = states.index_select(-2, self._of("senders", number)) * weights()[self._of("edges", number), None]
            receivers = self._of("receivers", number)
            found = self._cell(gates[..., level, :], forget[..., level, :], sent, receivers)
            states = torch.slice_scatter(states, found, -2, level.start, level.stop)
        return states[1]

    def _cell(self, gates: Tensor, forget: Tensor, sent: Tensor, receivers: Tensor) -> Tensor:
        """(2, ..., n, d / 2): c and h of the labels of a level; `sent` (2, ..., e, d / 2) are those of the edges."""
        count = gates.shape[-2]
        memories, outputs = sent
        gates = in_full(gates + self.state(sums(outputs, receivers, count)))
        let_in, let_out, new = gates.chunk(3, dim=-1)
        kept = torch.sigmoid(in_full(forget.index_select(-2, receivers) + self.state_forget(outputs)))
        memory = torch.sigmoid(let_in) * torch.tanh(new) + sums(kept * memories, receivers, count)
        return torch.stack([memory, torch.sigmoid(let_out) * torch.tanh(memory)])

    def _of(self, name: str, number: int) -> Tensor:
        return self.get_buffer(f"{name}_{number}")
