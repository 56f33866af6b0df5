"""HiTIN: the document's vector is carried up the coding tree of the labels, and the pooled tree is classified.

The symbols are those of the paper: H is the document's vector, K the height of the coding tree, X^i the vectors of
the nodes of its layer i, the leaves (layer 0) being the labels.

Eq. 8 makes a leaf v out of H as x_v = w_v p + b_v, with p = H W_p. All leaves are multiples of one vector p plus
something that no document changes, so they need not be made: the sum of the children of a first-layer node u is
a_u p + c_u, with a_u the sum of their w and c_u that of their b, and the first linear map of its MLP becomes
a_u (W p) + (W c_u + e). What is left to do for a document depends on the inner nodes of the tree, not on |Y|.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from hitin.coding_tree import CodingTree, coding_tree
from hitin.coding_tree.construction import Method as TreeMethod
from hitin.encoders.interface import Encoded, Widths
from hitin.label_blocks import LastLayer
from hitin.methods.interface import Method, prior_logits
from hitin.methods.node_norm import NodeBatchNorm, are_many, outer, remember
from hitin.methods.quadratic import gigabytes_to_train
from hitin.option_values import bad_option, check_choices, check_parts
from hitin.precision import half_precision, in_full
from hitin.taxonomy import Taxonomy

Pooling = Literal["sum", "mean", "max", "root"]
Leaves = Literal["paper", "mixed"]
Norm = Literal["batch", "layer"]

_LEAVES_AT_ONCE = 64  # leaves that exist at a time where the maximum over them is wanted


@dataclass(frozen=True)
class HiTINSettings:
    height: int = 2
    """K, the height of the coding tree."""
    tree: TreeMethod = "optimal"
    """How the coding tree is made."""
    tree_seed: int = 0
    """For a random tree."""
    width: int = 1024
    """d_V, the width of a node's vector; 0: that of the document's vector."""
    pooling: Pooling = "sum"
    """How a layer becomes one vector; `root` takes the root's alone."""
    leaves: Leaves = "paper"
    """Eq. 8; or `mixed`, the form of the published code: a full |Y| x |Y| layer over the labels."""
    norm: Norm = "layer"
    """Of a node: over its own features, or over the batch, as in the paper."""
    dropout: float = 0.2
    """On the vector of the whole tree."""
    leaf_dropout: float = 0.1
    """On the leaves: on p in the paper's form, on each leaf in the mixed one."""

    def __post_init__(self) -> None:
        check_choices(self)
        check_parts(self, "dropout", "leaf_dropout")
        if self.height < 1 or self.width < 0:
            raise bad_option("the height of the coding tree begins at 1, the width of its nodes at 0")
        if not 0 <= self.tree_seed < 2**32:
            raise bad_option(f"tree_seed is {self.tree_seed}", "It is a whole number from 0 to 4294967295.")

    def idle(self) -> dict[str, tuple[str, str]]:
        if self.tree == "random" or not self.tree_seed:
            return {}
        problem = f"tree_seed is for random coding trees: that of tree={self.tree} is always the same"
        return {"tree_seed": (problem, "Leave it out, or set tree=random.")}


class HiTIN(Method):
    """Leaves -> layers 1 .. K -> pooled layers -> logits."""

    repeats = True
    is_linear = True

    tree: CodingTree
    pool_shares: Tensor
    """(d_T,): what the sum over each layer is multiplied with."""

    def __init__(
        self, taxonomy: Taxonomy, widths: Widths, settings: HiTINSettings, tree: CodingTree | None = None
    ) -> None:
        super().__init__(taxonomy, widths, settings)
        width = widths.document
        node = settings.width or width
        self.tree = tree or coding_tree(taxonomy, settings.height, settings.tree, seed=settings.tree_seed)
        self.pooling, self.node = settings.pooling, node
        for layer, parents in enumerate(self.tree.child_to_parent):
            self.register_buffer(f"parents_{layer}", torch.from_numpy(np.array(parents)))
        self.leaves = _LEAVES[settings.leaves](width, node, self.tree, settings.leaf_dropout)
        self.layers = nn.ModuleList(NodeMLP(node, settings.norm) for _ in range(self.tree.height))
        self.dropout = nn.Dropout(settings.dropout)
        shares = [1 / _pool_size(settings.pooling, size) for size in self.tree.layer_sizes]
        self.register_buffer("pool_shares", torch.tensor(shares).repeat_interleave(node), persistent=False)
        sizes = _usual_sizes(settings.pooling, self.tree.layer_sizes)
        biases = len(sizes) if settings.leaves == "mixed" else 1  # the published code has one for each layer
        self.classifier = TreeClassifier(node, len(taxonomy), sizes, biases)

    @classmethod
    def warning(cls, taxonomy: Taxonomy, widths: Widths, settings: HiTINSettings) -> str | None:  # noqa: ARG003
        """The mixed leaves are a layer of |Y| x |Y| weights."""
        weights = len(taxonomy) ** 2
        gigabytes = gigabytes_to_train(weights)
        if settings.leaves == "paper" or gigabytes <= 1:
            return None
        return (
            f"at {len(taxonomy):,} labels the mixed leaves have {weights:,} weights, and training takes "
            f"{gigabytes:,.1f} GB of memory for them; choose leaves=paper"
        )

    @classmethod
    def restored(
        cls, taxonomy: Taxonomy, widths: Widths, settings: HiTINSettings, tensors: Mapping[str, Tensor]
    ) -> Self:
        """With the coding tree that was saved, however trees are built by now."""
        layers = [tensors[f"parents_{layer}"].numpy() for layer in range(settings.height)]
        tree = CodingTree(layers, entropy=math.nan, flat_entropy=math.nan, method=settings.tree, labels=taxonomy.labels)
        return cls(taxonomy, widths, settings, tree)

    def start(self, label_counts: NDArray[np.int64], documents: int) -> None:
        with torch.no_grad():
            self.classifier.bias.zero_()[0] = prior_logits(label_counts, documents)

    def forward(self, text: Encoded) -> Tensor:
        logits: Tensor = self.classifier(self.features(text))  # Eq. 12
        return logits

    def features(self, text: Encoded) -> Tensor:
        """(B, d_T): the vector of the whole tree."""
        whole: Tensor = self.dropout(self.read_out(text.vector))
        return whole

    def last_layer(self) -> LastLayer:
        return LastLayer(self.classifier.weight, self.classifier.whole_bias())

    def cells_of_document(self) -> int:
        return max(self._sizes[1:]) * self.node

    def read_out(self, text: Tensor) -> Tensor:
        """(B, d) -> (B, d_T): the vector of the whole tree.

        It is in full precision but for the nodes of large layers: what is small is sooner computed than cast.
        """
        half = half_precision(text.device)
        leaves: LeafLayer | MixedLeafLayer = self.leaves(text, self._parents(0))
        with torch.autocast(text.device.type, enabled=False):
            pooled = self._layers(leaves, half)
            remember([norm for norm in self.layers.modules() if isinstance(norm, NodeBatchNorm)])
            whole = pooled[0] if self.pooling == "root" else torch.cat(pooled, dim=1)  # Eq. 11
            return whole * self.pool_shares if self.pooling in ("sum", "mean") else whole

    def _layers(self, leaves: "LeafLayer | MixedLeafLayer", half: torch.dtype | None) -> list[Tensor]:
        """(B, d) for each layer that is pooled: the maximum, or the sum, which is not yet divided."""
        root = self.pooling == "root"
        pooled = [] if root else [leaves.pooled(self.pooling)]  # X^0
        nodes = leaves.next_layer(self._mlp(0), half)
        for layer in range(1, self.tree.height):  # Eq. 10
            sums = _sum_of_children(nodes, self._parents(layer), self._sizes[layer + 1])
            pooled += [] if root else [self._pooled(nodes, sums)]
            nodes = self._mlp(layer)(sums, half)
        return [*pooled, self._pooled(nodes, nodes)]

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.tree.layer_sizes

    def _parents(self, layer: int) -> Tensor:
        parents: Tensor = self.get_buffer(f"parents_{layer}")
        return parents

    def _mlp(self, layer: int) -> "NodeMLP":
        mlp = self.layers[layer]
        assert isinstance(mlp, NodeMLP)
        return mlp

    def _pooled(self, nodes: Tensor, sums: Tensor) -> Tensor:
        """(B, n, d) -> (B, d): a layer, whose nodes are summed already below each node of the next, if not further."""
        if self.pooling == "max":
            return in_full(nodes.amax(dim=1))
        return sums.squeeze(1) if sums.shape[1] == 1 else sums.sum(dim=1)


def _pool_size(pooling: Pooling, nodes: int) -> float:
    """What the sum over a layer is divided by.

    A plain sum of thousands of nodes makes the first steps of any optimiser explode. Divided by the square root of
    their number it spans the same functions, the factor being absorbed by the classifier, and learns at any size.
    """
    return nodes if pooling == "mean" else math.sqrt(nodes)


def _usual_sizes(pooling: Pooling, layer_sizes: Sequence[int]) -> list[float]:
    """About how large the numbers of each pooled layer are at the start, but no less than 1.

    The numbers of inner nodes are about 1 and few are negative; those of all leaves together are as large as those
    of the first layer, among whose children they are shared.
    """
    if pooling == "root":
        return [1.0]
    counts = (layer_sizes[1], *layer_sizes[1:])
    if pooling == "max":
        return [math.sqrt(1 + 2 * math.log(count)) for count in counts]
    return [max(1.0, count / _pool_size(pooling, nodes)) for count, nodes in zip(counts, layer_sizes, strict=True)]


def _product(layer: nn.Linear, nodes: Tensor, half: torch.dtype | None) -> Tensor:
    """A linear map but for its bias; of many nodes in half precision, where there is one."""
    if half is None or not are_many(nodes.numel()):
        return functional.linear(in_full(nodes), layer.weight)
    return functional.linear(nodes.to(half), layer.weight.to(half))


def _sum_of_children(nodes: Tensor, parents: Tensor, count: int) -> Tensor:
    """(B, n, d) -> (B, count, d): the sum over the children of each node of the layer above, in full precision."""
    if count == 1:
        return nodes.sum(dim=1, keepdim=True, dtype=torch.promote_types(nodes.dtype, torch.float32))
    nodes = in_full(nodes)
    return nodes.new_zeros(nodes.shape[0], count, nodes.shape[2]).index_add_(1, parents, nodes)


class NodeMLP(nn.Module):
    """The Phi of Eq. 10: two linear maps, each followed by a normalisation and a ReLU."""

    def __init__(self, width: int, norm: Norm) -> None:
        super().__init__()
        self.first = nn.Linear(width, width)
        self.first_norm = _NORMS[norm](width)
        self.second = nn.Linear(width, width)
        self.second_norm = _NORMS[norm](width)

    def forward(self, nodes: Tensor, half: torch.dtype | None) -> Tensor:
        """(B, n, d) -> (B, n, d); many nodes in `half` precision, where it is one."""
        return self._second_part(_normalised(self.first_norm, _product(self.first, nodes, half), self.first.bias), half)

    def folded(self, scale: Tensor, text: Tensor, offset: Tensor, half: torch.dtype | None) -> Tensor:
        """`forward` of the nodes a_u p + c_u: `scale` (n,), `text` (B, d), `offset` (n, d)."""
        text, offset = (functional.linear(each, self.first.weight) for each in (text, offset))
        if isinstance(self.first_norm, NodeBatchNorm):
            nodes = self.first_norm.folded(scale, text, offset, self.first.bias, half)
        else:
            nodes = self.first_norm(outer(scale, text, offset + self.first.bias))
        return self._second_part(nodes, half)

    def _second_part(self, nodes: Tensor, half: torch.dtype | None) -> Tensor:
        product = _product(self.second, torch.relu(nodes), half)
        return torch.relu(_normalised(self.second_norm, product, self.second.bias))


def _normalised(norm: nn.Module, nodes: Tensor, bias: Tensor) -> Tensor:
    """Of nodes that are still without their bias."""
    found: Tensor = norm(nodes, bias) if isinstance(norm, NodeBatchNorm) else norm(nodes + bias)
    return found


_NORMS: dict[Norm, type[nn.Module]] = {"batch": NodeBatchNorm, "layer": nn.LayerNorm}


class TreeClassifier(nn.Module):
    """One linear map on the pooled layers side by side, which is the same as one a layer, added up.

    `sizes` tells for each layer how large its numbers are at the start. The weights are the smaller, so that no layer
    drowns the others and the first logits are about 1, whatever the number of nodes.
    """

    def __init__(self, width: int, labels: int, sizes: Sequence[float], biases: int) -> None:
        super().__init__()
        bounds = torch.tensor(sizes).mul(math.sqrt(width * len(sizes))).reciprocal().repeat_interleave(width)
        self.weight = nn.Parameter(torch.empty(labels, len(bounds)).uniform_(-1, 1) * bounds)
        self.bias = nn.Parameter(torch.zeros(biases, labels))

    def forward(self, tree: Tensor) -> Tensor:
        return functional.linear(tree, self.weight, self.whole_bias())

    def whole_bias(self) -> Tensor:
        """(|Y|,)"""
        return self.bias[0] if len(self.bias) == 1 else self.bias.sum(dim=0)


class LeafLayer:
    """The leaves x_v = w_v p + b_v of a batch, without making them: their sums below each first-layer node will do."""

    def __init__(self, scale: Tensor, text: Tensor, offset: Tensor, parents: Tensor, families: Tensor) -> None:
        """`text` (B, d) is p, `parents` (n,) and `families` (n1,) say which leaf is below which first-layer node.

        `scale` (n,) is W_d times the size of the family, `offset` B_H times the root of it: (n, d), or (n, 1) where
        all features share it.
        """
        self.scale, self.text, self.offset = scale, text, offset
        self.parents, self.families = parents, families
        count = len(families)
        self.sum_of_scales = scale.new_zeros(count).index_add_(0, parents, scale) / families  # a_u
        sums = offset.new_zeros(count, offset.shape[1]).index_add_(0, parents, offset)
        self.sum_of_offsets = sums / families.sqrt()[:, None]  # c_u

    def pooled(self, pooling: Pooling) -> Tensor:
        """(B, d): the maximum of the leaf layer, or the sum."""
        if pooling == "max":
            return self._maximum()
        scale, offset = self.sum_of_scales.sum(dim=0, keepdim=True), self.sum_of_offsets.sum(dim=0, keepdim=True)
        return outer(scale, self.text, offset.expand(-1, self.text.shape[1])).squeeze(1)

    def next_layer(self, mlp: NodeMLP, half: torch.dtype | None) -> Tensor:
        """(B, n1, d): the nodes of layer 1."""
        return mlp.folded(self.sum_of_scales, self.text, self.sum_of_offsets.expand(-1, self.text.shape[1]), half)

    def _maximum(self) -> Tensor:
        best = self.text.new_full(self.text.shape, -math.inf)
        for start in range(0, len(self.scale), _LEAVES_AT_ONCE):
            some = slice(start, start + _LEAVES_AT_ONCE)
            siblings = self.families[self.parents[some]]
            leaves = outer(self.scale[some] / siblings, self.text, self.offset[some] / siblings.sqrt()[:, None])
            # a maximum with indices keeps nothing of the size of the leaves for the way back
            best = torch.maximum(best, leaves.max(dim=1).values)
        return best


class PaperLeaves(nn.Module):
    """X_G = W_d H W_p + B_H (Eq. 8).

    The start: the children of a node share its scale and its offset, so that every first-layer node begins with a
    text of the same size and an offset of its own, whatever the number of labels. What is learnt are multiples of
    these shares: a step of the optimiser, which moves all children at once, must not throw a large family far.
    """

    def __init__(self, width: int, node: int, tree: CodingTree, dropout: float) -> None:
        super().__init__()
        self.projection = nn.Linear(width, node, bias=False)  # W_p; B_H is the bias
        self.dropout = nn.Dropout(dropout)
        families = torch.from_numpy(np.bincount(tree.child_to_parent[0]))
        self.register_buffer("families", families.to(torch.get_default_dtype()), persistent=False)
        self.scale = nn.Parameter(torch.ones(tree.vertices))  # W_d
        self.offset = nn.Parameter(torch.randn(tree.vertices, node))  # B_H

    def forward(self, text: Tensor, parents: Tensor) -> LeafLayer:
        with torch.autocast(text.device.type, enabled=False):
            projected = self.dropout(self.projection(in_full(text)))
            return LeafLayer(self.scale, projected, self.offset, parents, self.get_buffer("families"))


class MixedLeaves(nn.Module):
    """The form of the published code: copies of p with a dropout each, mixed by a full layer over the labels.

    Without dropout the copies are equal, and what is left is the paper's form: w is the sum of a row of the layer,
    b its bias. In training, a tensor of |Y| d numbers a document is made."""

    def __init__(self, width: int, node: int, tree: CodingTree, dropout: float) -> None:
        super().__init__()
        self.projection = nn.Linear(width, node)
        self.mixing = nn.Linear(tree.vertices, tree.vertices)
        self.dropout = dropout
        self.first_layer = tree.layer_sizes[1]

    def forward(self, text: Tensor, parents: Tensor) -> "LeafLayer | MixedLeafLayer":
        projected = self.projection(text)
        if not self.training or not self.dropout:
            scale, offset = self.mixing.weight.sum(dim=1), self.mixing.bias[:, None]
            return LeafLayer(scale, in_full(projected), offset, parents, scale.new_ones(self.first_layer))
        copies = projected[:, :, None].expand(-1, -1, self.mixing.in_features)  # (B, d, n)
        mixed = self.mixing(functional.dropout(copies, self.dropout))
        return MixedLeafLayer(functional.dropout(mixed, self.dropout).transpose(1, 2), parents, self.first_layer)


class MixedLeafLayer:
    """The leaves of a batch, made: (B, n, d)."""

    def __init__(self, nodes: Tensor, parents: Tensor, first_layer: int) -> None:
        self.nodes = nodes
        self.parents = parents
        self.first_layer = first_layer

    def pooled(self, pooling: Pooling) -> Tensor:
        if pooling == "max":
            return in_full(self.nodes.amax(dim=1))
        return _sum_of_children(self.nodes, self.parents, 1).squeeze(1)

    def next_layer(self, mlp: NodeMLP, half: torch.dtype | None) -> Tensor:
        nodes: Tensor = mlp(_sum_of_children(self.nodes, self.parents, self.first_layer), half)
        return nodes


_LEAVES: dict[Leaves, type[nn.Module]] = {"paper": PaperLeaves, "mixed": MixedLeaves}
