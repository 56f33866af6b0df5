"""Structure encoders of HiAGM: the vectors of labels, changed by those of the labels around them in the taxonomy.

Both kinds weigh the edges of the taxonomy, each way, by numbers that are learnt. They begin at what the training
documents tell: upwards at 1, for who has a label has its parents; downwards at the share P(c|p) of a child among the
documents of all children of its parent.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hitin.methods.interface import Facts, Fidelity
from hitin.option_values import check_choices, check_parts
from hitin.taxonomy import Taxonomy

StructureName = Literal["gcn", "tree-lstm"]

EDGE_DROPOUT = 0.05
"""On what labels send to one another."""


@dataclass(frozen=True)
class StructureSettings:
    """What methods with a structure encoder have in common."""

    structure: StructureName = "gcn"
    """How labels hear of one another: a graph convolution, or an LSTM up and down the taxonomy."""
    dropout: float = 0.5
    """On the vectors of labels, before they hear of one another."""
    fidelity: Fidelity = "clean"
    """As the method is meant; or `upstream`, as its published program computes it."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_parts(self, "dropout")


class StructureEncoder(nn.Module):
    """Vectors of all labels in, as many out: (..., |Y|, d) -> (..., |Y|, d)."""

    def __init__(self, taxonomy: Taxonomy, width: int, fidelity: Fidelity) -> None:  # noqa: ARG002
        super().__init__()
        self.edges = taxonomy.edges
        self.fidelity: Fidelity = fidelity
        parents, children = torch.from_numpy(np.array(taxonomy.edges.T))
        self.register_buffer("edge_parents", parents, persistent=False)  # (m,)
        self.register_buffer("edge_children", children, persistent=False)  # (m,)
        self.up = edge_weights(parents, children, len(taxonomy), fidelity)
        self.down = edge_weights(children, parents, len(taxonomy), fidelity)
        self.up.begin(torch.ones(len(parents)))

    def prepare(self, facts: Facts) -> None:
        """Let the weights of the edges begin at what is known of the documents.

        The published programs count validation documents as well.
        """
        counts = facts.train.label_counts()
        if self.fidelity == "upstream" and facts.held_counts is not None:
            counts = counts + facts.held_counts
        self.down.begin(torch.from_numpy(child_shares(self.edges, counts)).float())

    @abstractmethod
    def forward(self, nodes: Tensor) -> Tensor:
        """(..., |Y|, d) -> (..., |Y|, d)"""


def child_shares(edges: NDArray[np.int64], label_counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """(m,): P(c|p) of each edge, the documents of the child among those of all children of its parent, added up.

    Documents have the ancestors of their labels, so those with the parent and the child are those with the child.
    Where no child has a document, it is 0.
    """
    parents, children = edges.T
    found = label_counts[children].astype(np.float64)
    totals = np.bincount(parents, weights=found, minlength=len(label_counts))[parents]
    shares: NDArray[np.float64] = found / np.maximum(totals, 1)
    return shares


class EdgeWeights(nn.Module):
    """A number for each edge."""

    def __init__(self, edges: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(edges))

    def begin(self, values: Tensor) -> None:
        with torch.no_grad():
            self.weight.copy_(values)

    def forward(self) -> Tensor:
        """(m,)"""
        return self.weight


class TableOfEdgeWeights(EdgeWeights):
    """The published form: a number for each two labels, of which those of edges are used."""

    def __init__(self, receivers: Tensor, senders: Tensor, labels: int) -> None:
        super().__init__(0)
        self.weight = nn.Parameter(torch.zeros(labels, labels))
        self.register_buffer("receivers", receivers, persistent=False)  # (m,)
        self.register_buffer("senders", senders, persistent=False)  # (m,)

    def begin(self, values: Tensor) -> None:
        with torch.no_grad():
            self.weight[self.get_buffer("receivers"), self.get_buffer("senders")] = values.to(self.weight)

    def forward(self) -> Tensor:
        return self.weight[self.get_buffer("receivers"), self.get_buffer("senders")]


def edge_weights(receivers: Tensor, senders: Tensor, labels: int, fidelity: Fidelity) -> EdgeWeights:
    if fidelity == "upstream":
        return TableOfEdgeWeights(receivers, senders, labels)
    return EdgeWeights(len(receivers))


def build_structure(name: StructureName, taxonomy: Taxonomy, width: int, fidelity: Fidelity) -> StructureEncoder:
    """The structure encoder of a name, for labels with vectors of this width."""
    from hitin.methods.gcn import HierarchyGCN  # which stand on what is above
    from hitin.methods.tree_lstm import TreeLSTM

    kinds: dict[StructureName, type[StructureEncoder]] = {"gcn": HierarchyGCN, "tree-lstm": TreeLSTM}
    return kinds[name](taxonomy, width, fidelity)


def sums(values: Tensor, receivers: Tensor, count: int) -> Tensor:
    """(..., m, d) -> (..., count, d): what each receiver is sent, added up."""
    return values.new_zeros(*values.shape[:-2], count, values.shape[-1]).index_add_(-2, receivers, values)
