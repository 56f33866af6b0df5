"""The graph convolution of HiAGM: each label hears its children, its parents and itself, each through a gate."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from hitin.methods.interface import Fidelity
from hitin.methods.structure import EDGE_DROPOUT, StructureEncoder, sums
from hitin.precision import in_full
from hitin.taxonomy import Taxonomy


class HierarchyGCN(StructureEncoder):
    """One layer. For a label k with the vector h_k:

    u_k = sum over children c of a_kc h_c + b_k, and v_k likewise over parents, with weights and a bias of its own;
    out_k = ReLU(g_k u_k + g'_k v_k + g''_k h_k), each gate g a sigmoid of a linear map of h_k to one number.
    """

    def __init__(self, taxonomy: Taxonomy, width: int, fidelity: Fidelity) -> None:
        super().__init__(taxonomy, width, fidelity)
        self.up_bias = nn.Parameter(torch.zeros(len(taxonomy), width))
        self.down_bias = nn.Parameter(torch.zeros(len(taxonomy), width))
        bound = math.sqrt(6 / (width + 1))  # Xavier's, of a map to one number
        # of what comes up, what comes down, and the label itself
        self.gates = nn.Parameter(torch.empty(3, width).uniform_(-bound, bound))
        self.gate_bias = nn.Parameter(torch.zeros(2, len(taxonomy)))  # the label itself has none
        self.dropout = nn.Dropout(EDGE_DROPOUT)

    def forward(self, nodes: Tensor) -> Tensor:
        nodes = in_full(nodes)  # (..., N, d)
        parents, children = self.get_buffer("edge_parents"), self.get_buffer("edge_children")
        up = _messages(nodes, children, parents, self.up()) + self.up_bias
        down = _messages(nodes, parents, children, self.down()) + self.down_bias
        bias = functional.pad(self.gate_bias.T, (0, 1))  # (N, 3)
        gates = torch.sigmoid(functional.linear(nodes, self.gates) + bias)[..., None]  # (..., N, 3, 1)
        terms = [self.dropout(gates[..., kind, :] * term) for kind, term in enumerate((up, down, nodes))]
        return torch.relu(terms[0] + terms[1] + terms[2])


def _messages(nodes: Tensor, senders: Tensor, receivers: Tensor, weights: Tensor) -> Tensor:
    """(..., N, d): what each label is sent along the edges, weighed and added up."""
    return sums(nodes.index_select(-2, senders) * weights[:, None], receivers, nodes.shape[-2])
