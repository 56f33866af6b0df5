"""HiTIN the long way, from the paper's equations: every leaf is made, every sum is a loop. Slow on purpose."""

import math
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from hitin import Taxonomy
from hitin.coding_tree import CodingTree
from hitin.encoders.interface import Encoded
from hitin.methods.hitin import HiTIN, HiTINSettings


class NaiveHiTIN:
    """The network of a `HiTIN`, with copies of its parameters and buffers under the same names."""

    def __init__(self, module: HiTIN, settings: HiTINSettings) -> None:
        self.tree: CodingTree = module.tree
        self.settings = settings
        self.training = module.training
        self.parameters = {name: value.detach().clone().requires_grad_() for name, value in module.named_parameters()}
        self.buffers = {name: value.clone() for name, value in module.named_buffers()}

    def __call__(self, text: Tensor) -> Tensor:
        layers = [self._leaves(text)]
        for height in range(1, self.tree.height + 1):
            layers.append(self._phi(height - 1, self._sums(layers[-1], height)))
        vector = functional.dropout(self._read_out(layers), self.settings.dropout, self.training)
        return vector @ self.parameters["classifier.weight"].T + self.parameters["classifier.bias"].sum(dim=0)

    def _leaves(self, text: Tensor) -> Tensor:
        """Eq. 8: (B, n, d). The parameters are W_d and B_H in units of a child's share of its parent."""
        if self.settings.leaves == "mixed":
            return self._mixed_leaves(text)
        projected = self._dropout(text @ self.parameters["leaves.projection.weight"].T)
        families = [list(self.tree.child_to_parent[0]).count(parent) for parent in self.tree.child_to_parent[0]]
        scales = [scale / size for scale, size in zip(self.parameters["leaves.scale"], families, strict=True)]
        offsets = [row / math.sqrt(size) for row, size in zip(self.parameters["leaves.offset"], families, strict=True)]
        return torch.stack([scale * projected + offset for scale, offset in zip(scales, offsets, strict=True)], dim=1)

    def _mixed_leaves(self, text: Tensor) -> Tensor:
        """The published form: copies, a linear map of each, one over the labels."""
        copies = torch.stack([self._linear("leaves.projection", text)] * self.tree.vertices, dim=2)  # (B, d, n)
        return self._dropout(self._linear("leaves.mixing", self._dropout(copies))).transpose(1, 2)

    def _dropout(self, values: Tensor) -> Tensor:
        return functional.dropout(values, self.settings.leaf_dropout, self.training)

    def _sums(self, below: Tensor, height: int) -> Tensor:
        """The sum over the children of each node of a layer."""
        sums: list[Tensor] = []
        for node in range(self.tree.layer_sizes[height]):
            children = [child for child, parent in enumerate(self.tree.child_to_parent[height - 1]) if parent == node]
            total = below[:, children[0]]
            for child in children[1:]:
                total = total + below[:, child]
            sums.append(total)
        return torch.stack(sums, dim=1)

    def _phi(self, layer: int, nodes: Tensor) -> Tensor:
        """The MLP of Eq. 10, on the rows of all documents and nodes."""
        rows = nodes.reshape(-1, nodes.shape[2])
        for part in ("first", "second"):
            rows = self._norm(f"layers.{layer}.{part}_norm", self._linear(f"layers.{layer}.{part}", rows)).relu()
        return rows.reshape(nodes.shape)

    def _linear(self, name: str, values: Tensor) -> Tensor:
        return values @ self.parameters[f"{name}.weight"].T + self.parameters[f"{name}.bias"]

    def _norm(self, name: str, rows: Tensor) -> Tensor:
        weight, bias = self.parameters[f"{name}.weight"], self.parameters[f"{name}.bias"]
        if self.settings.norm == "layer":
            return functional.layer_norm(rows, (rows.shape[1],), weight, bias)
        mean, variance = self.buffers[f"{name}.running_mean"], self.buffers[f"{name}.running_var"]
        learning = self.training and len(rows) > 1
        momentum = 0.0
        if learning:
            tracked = self.buffers[f"{name}.num_batches_tracked"].add_(1)
            momentum = max(0.1, 1 / int(tracked))
        return functional.batch_norm(rows, mean, variance, weight, bias, learning, momentum)

    def _read_out(self, layers: list[Tensor]) -> Tensor:
        """Eq. 11."""
        if self.settings.pooling == "root":
            return layers[-1][:, 0]
        return torch.cat([self._pool(layer) for layer in layers], dim=1)

    def _pool(self, layer: Tensor) -> Tensor:
        nodes = [layer[:, node] for node in range(layer.shape[1])]
        if self.settings.pooling == "max":
            best = nodes[0]
            for node in nodes[1:]:
                best = torch.maximum(best, node)
            return best
        total = torch.zeros_like(nodes[0])
        for node in nodes:
            total = total + node
        # A sum is divided by the root of the number of nodes, as if the classifier's weights were so much smaller.
        return total / (len(nodes) if self.settings.pooling == "mean" else math.sqrt(len(nodes)))


class Largest(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Remembers the largest tensor that any operation makes, by the numbers that are stored."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers = 0

    def __torch_dispatch__(
        self, func: object, types: object, args: tuple[object, ...] = (), kwargs: Mapping[str, object] | None = None
    ) -> object:
        made = func(*args, **(kwargs or {}))  # type: ignore[operator]
        for tensor in made if isinstance(made, tuple | list) else [made]:
            if isinstance(tensor, Tensor):
                self.numbers = max(self.numbers, tensor.untyped_storage().nbytes() // tensor.element_size())
        return made


def vectors(values: Tensor) -> Encoded:
    """Documents by their vectors alone."""
    return Encoded(values, values[:, None], torch.ones(len(values), 1, dtype=torch.bool))


def label_tree(labels: int, children: int = 10) -> Taxonomy:
    """Label i is below label (i - 1) // children."""
    edges = [(f"{(label - 1) // children}", f"{label}") for label in range(1, labels)]
    return Taxonomy.from_edges(edges, labels=[f"{label}" for label in range(labels)], root=None)


def two_layers(group_of_each_label: list[int]) -> CodingTree:
    """A coding tree of height 2, by hand."""
    groups = max(group_of_each_label) + 1
    return CodingTree([group_of_each_label, [0] * groups], entropy=math.nan, flat_entropy=math.nan)
