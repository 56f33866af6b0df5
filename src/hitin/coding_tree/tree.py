"""`CodingTree`: a tree over the vertices of a graph, all of them at the same depth."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from hitin.coding_tree.graph import Ids, checked_labels

if TYPE_CHECKING:
    from hitin.taxonomy import Taxonomy


class CodingTree:
    """Vertices below, the root on top, every vertex at depth `height`.

    Nodes are numbered layer by layer from below: 0 to n - 1 are the vertices (layer 0), the root (layer
    `height`) is the last. Within a layer they are in the order of the smallest vertex below them, so that
    equal trees have equal arrays. It does not change once built.

    `child_to_parent[k][i]` is the place in layer k + 1 of the parent of the node at place i of layer k: what
    `index_add` wants. `entropy` is the structural entropy of the graph under this tree in bits, `flat_entropy`
    that under a single layer (H^1), `method` how it was made, `labels` the names of the vertices.
    """

    child_to_parent: tuple[Ids, ...]
    height: int
    vertices: int
    layer_sizes: tuple[int, ...]
    entropy: float
    flat_entropy: float
    method: str
    labels: tuple[str, ...] | None

    def __init__(
        self,
        child_to_parent: Iterable[ArrayLike],
        *,
        entropy: float,
        flat_entropy: float,
        method: str = "",
        labels: Iterable[str] | None = None,
    ) -> None:
        given = [_checked_layer(layer, number) for number, layer in enumerate(child_to_parent)]
        if not given or not len(given[0]):
            raise ValueError("a coding tree needs a height of at least 1 and at least one vertex")
        partitions = [np.arange(len(given[0]))]
        for number, layer in enumerate(given):
            below = int(partitions[-1].max()) + 1
            if len(layer) != below:
                raise ValueError(f"layer {number} has {len(layer)} nodes, but the layer below leads to {below}")
            partitions.append(layer[partitions[-1]])
        if partitions[-1].any():
            raise ValueError("all nodes of the last layer must lead to one root, numbered 0")
        for number, (layer, partition) in enumerate(zip(given, partitions[1:], strict=True), start=1):
            if len(np.unique(partition)) != layer.max() + 1:
                raise ValueError(f"layer {number} has a node that no vertex leads to")
        self._set(_linked(partitions), entropy, flat_entropy, method, labels)

    @property
    def saved(self) -> float:
        """The part of the flat entropy that the tree saves; not a number where there is none, or it is not known."""
        return 1 - self.entropy / self.flat_entropy if self.flat_entropy > 0 else math.nan

    @classmethod
    def from_partitions(
        cls,
        partitions: Sequence[Ids],
        *,
        method: str = "",
        labels: Iterable[str] | None = None,
    ) -> "CodingTree":
        """From the node of every vertex on each layer, the vertices first, the root last, numbered in any way.

        Vertices that are together on a layer must be so on those above: this is not checked.
        """
        tree = cls.__new__(cls)
        tree._set(_linked(partitions), math.nan, math.nan, method, labels)
        return tree

    def with_entropy(self, entropy: float, flat_entropy: float) -> "CodingTree":
        """The same tree with these numbers."""
        tree = type(self).__new__(type(self))
        vars(tree).update(vars(self), entropy=float(entropy), flat_entropy=float(flat_entropy))
        return tree

    def _set(
        self, layers: list[Ids], entropy: float, flat_entropy: float, method: str, labels: Iterable[str] | None
    ) -> None:
        if not isinstance(method, str):
            raise TypeError(f"the method of a tree is a name, not {method!r}")
        for layer in layers:
            layer.setflags(write=False)
        vars(self).update(
            child_to_parent=tuple(layers),
            height=len(layers),
            vertices=len(layers[0]),
            layer_sizes=(*(len(layer) for layer in layers), 1),
            entropy=float(entropy),
            flat_entropy=float(flat_entropy),
            method=method,
            labels=checked_labels(labels, len(layers[0])),
        )

    def __setattr__(self, name: str, _: object) -> None:
        raise AttributeError(f"a coding tree does not change: its {name} cannot be set")

    def __len__(self) -> int:
        """The number of nodes, the vertices and the root among them."""
        return sum(self.layer_sizes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CodingTree):
            return NotImplemented
        return (
            self.labels == other.labels
            and self.layer_sizes == other.layer_sizes
            and all(map(np.array_equal, self.child_to_parent, other.child_to_parent))
        )

    def __hash__(self) -> int:
        return hash((self.labels, *(layer.tobytes() for layer in self.child_to_parent)))

    def __repr__(self) -> str:
        sizes = " > ".join(f"{size:,}" for size in self.layer_sizes)
        return f"CodingTree({sizes}, {self.entropy:.4f} of {self.flat_entropy:.4f} bits)"

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.to_json(),)

    @cached_property
    def parents(self) -> Ids:
        """The number of each node's parent; -1 for the root."""
        starts = np.cumsum(self.layer_sizes)
        parents = [layer + start for layer, start in zip(self.child_to_parent, starts, strict=False)]
        return _frozen(np.concatenate([*parents, [-1]]))

    @cached_property
    def layers(self) -> Ids:
        """The layer of each node: 0 for a vertex, `height` for the root."""
        return _frozen(np.repeat(np.arange(self.height + 1), self.layer_sizes))

    def partitions(self) -> Iterator[Ids]:
        """For each layer from 0 to `height`, the place in it of the node above every vertex."""
        partition = np.arange(self.vertices)
        yield partition
        for layer in self.child_to_parent:
            partition = layer[partition]
            yield partition

    def groups(self, layer: int = 1) -> list[tuple[int, ...]]:
        """The vertices below each node of a layer."""
        if layer not in range(self.height + 1):
            raise ValueError(f"layers are numbered 0 to {self.height}, there is no {layer}")
        partition = next(part for number, part in enumerate(self.partitions()) if number == layer)
        order = np.argsort(partition, kind="stable")
        ends = np.cumsum(np.bincount(partition))[:-1]
        return [tuple(group.tolist()) for group in np.split(order, ends)]

    def to_json(self) -> dict[str, object]:
        """Plain lists, for `json.dump` and `from_json`."""
        return {
            "height": self.height,
            "method": self.method,
            "entropy": self.entropy,
            "flat_entropy": self.flat_entropy,
            "layer_sizes": list(self.layer_sizes),
            "child_to_parent": [layer.tolist() for layer in self.child_to_parent],
            "labels": None if self.labels is None else list(self.labels),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "CodingTree":
        """What `to_json` made; a `ValueError` says what is wrong with anything else."""
        try:
            tree = cls(
                data["child_to_parent"],
                entropy=data["entropy"],
                flat_entropy=data["flat_entropy"],
                method=data.get("method", ""),
                labels=data.get("labels"),
            )
            said = data.get("height", tree.height), data.get("layer_sizes", list(tree.layer_sizes))
        except KeyError as error:
            raise ValueError(f"this is not a coding tree: it has no {error}") from error
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(f"this is not a coding tree ({error})") from error
        if said != (tree.height, list(tree.layer_sizes)):
            raise ValueError("this is not a coding tree: its height or layer sizes are not those of its layers")
        return tree

    def to_dot(self) -> str:
        """A drawing for Graphviz."""
        from hitin.coding_tree.writing import to_dot

        return to_dot(self)

    def to_newick(self) -> str:
        """The Newick format of tree viewers."""
        from hitin.coding_tree.writing import to_newick

        return to_newick(self)

    def to_svg(self) -> str:
        """A picture."""
        from hitin.coding_tree.drawing import to_svg

        return to_svg(self)

    def to_html(self, taxonomy: "Taxonomy | None" = None, *, title: str = "Coding tree") -> str:
        """A page of one file, to look at the tree beside the taxonomy, if there is one."""
        from hitin.coding_tree.drawing import to_html

        return to_html(self, taxonomy, title=title)


def _checked_layer(layer: ArrayLike, number: int) -> Ids:
    array = np.asarray(layer)
    places = array.ndim == 1 and array.size and array.dtype.kind in "iu"
    if not places or (array < 0).any() or (array >= array.size).any():  # no layer is wider than the one below
        raise ValueError(f"layer {number} must be a list of the places of parents in the layer above")
    return array.astype(np.int64)


def _linked(partitions: Sequence[Ids]) -> list[Ids]:
    """`child_to_parent` of every layer but the last; each layer's nodes in the order of their smallest vertices."""
    vertices = np.arange(len(partitions[0]))
    layers = []
    smallest = vertices  # of each node of the layer below
    for partition in partitions[1:]:
        first = np.empty(int(partition.max()) + 1, dtype=np.int64)
        first[partition[::-1]] = vertices[::-1]  # where several write, the last one stays: the smallest vertex
        first = first[partition]
        is_smallest = first == vertices
        place = np.cumsum(is_smallest) - 1
        layers.append(place[first[smallest]])
        smallest = vertices[is_smallest]
    return layers


def _frozen(array: Ids) -> Ids:
    array.setflags(write=False)
    return array


def _restored(data: dict[str, Any]) -> CodingTree:
    return CodingTree.from_json(data)
