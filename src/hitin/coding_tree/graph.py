"""`Graph`: what a coding tree is made of, an undirected graph with weights, held sparsely."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitin.names import ROOT
from hitin.taxonomy import Taxonomy

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

LARGEST = 2.0**300  # weights outside are scaled, which changes no entropy; what then vanishes beside the others is none
SMALLEST = 2.0**-300


class Graph:
    """Vertices 0 to n - 1 and weighted edges between them.

    Edges may come in any order and direction and several times (their weights add up); those of weight 0
    are none. A self-loop counts twice in the degree of its vertex and nowhere else, as in graph theory.

    `edges` is an (m, 2) array with the smaller end first, sorted; `weights` and `loops` are what they carry.
    """

    def __init__(
        self, vertices: int, edges: ArrayLike = (), weights: ArrayLike | None = None, *, labels: object = None
    ) -> None:
        if isinstance(vertices, bool) or not isinstance(vertices, int | np.integer):
            raise ValueError(f"the number of vertices must be a whole number, not {vertices!r}")
        if vertices < 1:
            raise ValueError("the graph is empty: a coding tree needs at least one vertex")
        self.vertices = int(vertices)
        ends = _checked_edges(edges, self.vertices)
        weight = _scaled(_checked_weights(weights, ends))
        is_loop = ends[:, 0] == ends[:, 1]
        self.loops = sums(ends[is_loop, 0], weight[is_loop], self.vertices)
        self.edges, self.weights = _canonical(ends[~is_loop], weight[~is_loop], self.vertices)
        self.cuts = sums(self.edges[:, 0], self.weights, self.vertices)
        self.cuts += sums(self.edges[:, 1], self.weights, self.vertices)
        self.degrees: Floats = self.cuts + 2 * self.loops
        self.volume = float(self.degrees.sum())
        self.labels: tuple[str, ...] | None = _checked_labels(labels, self.vertices)
        for array in (self.edges, self.weights, self.loops, self.cuts, self.degrees):
            array.setflags(write=False)

    @classmethod
    def from_taxonomy(cls, taxonomy: Taxonomy, *, with_root: bool = False) -> "Graph":
        """Labels and the edges from parents to children; `with_root` adds the artificial root as the last vertex."""
        count = len(taxonomy)
        if not with_root:
            return cls(count, taxonomy.edges, labels=taxonomy.labels)
        tops = np.stack([taxonomy.roots, np.full(len(taxonomy.roots), count)], axis=1)
        return cls(count + 1, np.concatenate([taxonomy.edges, tops]), labels=(*taxonomy.labels, ROOT))

    @classmethod
    def from_matrix(cls, matrix: Any) -> "Graph":
        """From a square matrix of weights, dense or of `scipy.sparse`; one that is not symmetric is made so."""
        if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"the matrix of a graph is square, not of shape {matrix.shape}")
        if hasattr(matrix, "tocoo"):
            sparse = matrix.tocoo()
            rows, columns, values = sparse.row, sparse.col, sparse.data
        else:
            rows, columns = np.nonzero(matrix)
            values = np.asarray(matrix)[rows, columns]
        loop = rows == columns  # an edge stands twice in the matrix, a self-loop once
        return cls(matrix.shape[0], np.stack([rows, columns], axis=1), np.where(loop, values, np.asarray(values) / 2))

    def renumbered(self, numbers: Ids) -> "Graph":
        """The same graph with `numbers[i]` for vertex i, without labels."""
        edges = np.concatenate([self.edges, np.repeat(np.arange(self.vertices), 2).reshape(-1, 2)])
        return Graph(self.vertices, numbers[edges], np.concatenate([self.weights, self.loops]))

    def __repr__(self) -> str:
        return f"Graph({self.vertices:,} vertices, {len(self.edges):,} edges)"


def adjacency(graph: Graph) -> tuple[Ids, Ids, Floats]:
    """Compressed rows: the neighbours of i and the weights to them stand from starts[i] to starts[i + 1]."""
    ends = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    order = np.lexsort((ends[:, 1], ends[:, 0]))
    starts = np.zeros(graph.vertices + 1, dtype=np.int64)
    np.cumsum(np.bincount(ends[:, 0], minlength=graph.vertices), out=starts[1:])
    return starts, ends[order, 1], np.concatenate([graph.weights, graph.weights])[order]


def sums(places: Ids, values: Floats, size: int) -> Floats:
    """The sum of the values at each place from 0 to size - 1."""
    return np.bincount(places, values, size).astype(np.float64, copy=False)


def _checked_edges(edges: ArrayLike, vertices: int) -> Ids:
    ends = np.asarray(edges)
    if not ends.size:
        return np.empty((0, 2), dtype=np.int64)
    if ends.ndim != 2 or ends.shape[1] != 2:
        raise ValueError(f"edges are pairs of vertices, an array of shape (edges, 2), not {ends.shape}")
    if ends.dtype.kind not in "iu":
        raise ValueError(f"the ends of edges are vertex numbers, not {ends.dtype}")
    outside = ((ends < 0) | (ends >= vertices)).any(axis=1)
    if outside.any():
        edge = int(np.argmax(outside))
        raise ValueError(
            f"edge {edge} joins {ends[edge, 0]} and {ends[edge, 1]}, but the vertices are numbered 0 to {vertices - 1}"
        )
    return ends.astype(np.int64, copy=False)


def _checked_weights(weights: ArrayLike | None, ends: Ids) -> Floats:
    if weights is None:
        return np.ones(len(ends))
    try:
        weight = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"weights must be numbers ({error})") from error
    if weight.shape != (len(ends),):
        raise ValueError(f"{len(ends)} edges need as many weights, not an array of shape {weight.shape}")
    wrong = ~np.isfinite(weight) | (weight < 0)
    if wrong.any():
        edge = int(np.argmax(wrong))
        raise ValueError(
            f"edge {edge} ({ends[edge, 0]}, {ends[edge, 1]}) has the weight {weight[edge]}: "
            "weights must be finite and not negative"
        )
    return weight


def _scaled(weights: Floats) -> Floats:
    """Weights that neither overflow nor underflow in products and ratios; ordinary ones are left alone."""
    positive = weights[weights > 0]
    if not len(positive) or (positive.max() < LARGEST and positive.min() > SMALLEST):
        return weights
    scaled: Floats = np.ldexp(weights, -int(np.frexp(positive.max())[1]))
    scaled[scaled < SMALLEST] = 0
    return scaled


def _canonical(ends: Ids, weights: Floats, vertices: int) -> tuple[Ids, Floats]:
    """One edge for each pair, the smaller end first, sorted; those of weight 0 dropped."""
    if (weights == 0).any():
        ends, weights = ends[weights > 0], weights[weights > 0]
    low, high = np.minimum(ends[:, 0], ends[:, 1]), np.maximum(ends[:, 0], ends[:, 1])
    keys = low * vertices + high
    if not (keys[1:] > keys[:-1]).all():
        if (weights == weights[0]).all():
            keys = np.sort(keys)
        else:
            order = np.lexsort((weights, keys))  # weights too, so that sums do not depend on the order given
            keys, weights = keys[order], weights[order]
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        keys, weights = keys[starts], np.add.reduceat(weights, starts)
    return np.stack([keys // vertices, keys % vertices], axis=1), np.array(weights)


def _checked_labels(labels: Any, vertices: int) -> tuple[str, ...] | None:
    if labels is None:
        return None
    names = tuple(labels)
    if len(names) != vertices:
        raise ValueError(f"{vertices} vertices need as many labels, not {len(names)}")
    return names
