"""`Graph`: what a coding tree is made of, an undirected graph with weights, held sparsely."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hitin.errors import counted
from hitin.names import ROOT
from hitin.taxonomy import Taxonomy

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_VERTICES = 2**31  # so that a pair of vertices is a number of 64 bits
LARGEST = 2.0**300  # weights outside are scaled, which changes no entropy; what vanishes beside the others is none
SMALLEST = 2.0**-300


class Graph:
    """Vertices 0 to n - 1 and weighted edges between them.

    Edges may come in any order and direction and several times (their weights add up); those of weight 0
    are none. A self-loop counts twice in the degree of its vertex and nowhere else, as in graph theory.

    `edges` is an (m, 2) array with the smaller end first, sorted, without the loops; `weights` and `loops` are what
    they carry, `cuts` what the edges of a vertex carry together, `degrees` that and its loops twice. It does not
    change. Weights beyond 2**300 or below 2**-300 are scaled, all by the same factor.
    """

    vertices: int
    edges: Ids
    weights: Floats
    loops: Floats
    cuts: Floats
    degrees: Floats
    volume: float
    labels: tuple[str, ...] | None

    def __init__(
        self, vertices: int, edges: ArrayLike = (), weights: ArrayLike | None = None, labels: object = None
    ) -> None:
        if not is_whole(vertices):
            raise ValueError(f"the number of vertices must be a whole number, not {vertices!r}")
        if vertices < 1:
            raise ValueError("the graph is empty: a coding tree needs at least one vertex")
        if vertices > MOST_VERTICES:
            raise ValueError(f"a graph can have {MOST_VERTICES:,} vertices at most, not {vertices:,}")
        count = int(vertices)
        given = _checked_edges(edges, count)
        ends, weight = _canonical(given, _scaled(_checked_weights(weights, given)), count)
        is_loop = ends[:, 0] == ends[:, 1]
        loops = sums(ends[is_loop, 0], weight[is_loop], count)
        if is_loop.any():
            ends, weight = ends[~is_loop], weight[~is_loop]
        cuts = sums(ends[:, 0], weight, count) + sums(ends[:, 1], weight, count)
        degrees = cuts + 2 * loops
        for array in (ends, weight, loops, cuts, degrees):
            array.setflags(write=False)
        vars(self).update(vertices=count, edges=ends, weights=weight, loops=loops, cuts=cuts, degrees=degrees)
        vars(self).update(volume=float(degrees.sum()), labels=checked_labels(labels, count))

    def __setattr__(self, name: str, _: object) -> None:
        raise AttributeError(f"a graph does not change: its {name} cannot be set")

    def __reduce__(self) -> tuple[object, ...]:
        return Graph, (self.vertices, *self._all_edges(), self.labels)

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
        if not hasattr(matrix, "tocoo"):
            matrix = np.asarray(matrix)
        if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
            raise ValueError(f"the matrix of a graph is square, not of shape {matrix.shape}")
        if hasattr(matrix, "tocoo"):
            sparse = matrix.tocoo()
            rows, columns, given = sparse.row, sparse.col, sparse.data
        else:
            rows, columns = np.nonzero(matrix)
            given = matrix[rows, columns]
        ends = np.stack([rows, columns], axis=1)
        weights = _checked_weights(given, ends)
        return cls(matrix.shape[0], ends, np.where(rows == columns, weights, weights / 2))  # a loop stands there once

    def renumbered(self, numbers: Ids) -> "Graph":
        """The same graph with `numbers[i]` for vertex i, without labels."""
        edges, weights = self._all_edges()
        return Graph(self.vertices, numbers[edges], weights)

    def _all_edges(self) -> tuple[Ids, Floats]:
        """The loops too."""
        loops = np.repeat(np.flatnonzero(self.loops), 2).reshape(-1, 2)
        return np.concatenate([self.edges, loops]), np.concatenate([self.weights, self.loops[loops[:, 0]]])

    def __repr__(self) -> str:
        return f"Graph({counted(self.vertices, 'vertex', 'vertices')}, {counted(len(self.edges), 'edge')})"


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


def is_whole(number: object) -> bool:
    """Whether this is a whole number, of Python or NumPy; True and False are none."""
    return isinstance(number, int | np.integer) and not isinstance(number, bool)


def checked_labels(labels: Any, vertices: int) -> tuple[str, ...] | None:
    """The names of the vertices, in their order."""
    if labels is None:
        return None
    if isinstance(labels, str | bytes | set | frozenset) or not isinstance(labels, Iterable):
        raise ValueError(f"labels are a list of names, in the order of the vertices, not a {type(labels).__name__}")
    names = tuple(labels)
    if len(names) != vertices:
        raise ValueError(f"{counted(vertices, 'vertex needs', 'vertices need')} as many labels, not {len(names)}")
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"labels are names, which {name!r} is not")
    return names


def _checked_edges(edges: ArrayLike, vertices: int) -> Ids:
    try:
        ends = np.asarray(edges)
    except ValueError as error:
        raise ValueError(f"edges are pairs of vertices ({error})") from error
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
        given = np.asarray(weights)
        if given.dtype.kind not in "biufO":
            raise TypeError(f"these are {given.dtype}")
        weight = given.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"weights must be numbers ({error})") from error
    if weight.shape != (len(ends),):
        raise ValueError(
            f"{counted(len(ends), 'edge needs', 'edges need')} as many weights, not an array of shape {weight.shape}"
        )
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
    with np.errstate(over="ignore"):
        total = positive.sum()
    if not len(positive) or (total < LARGEST and positive.min() >= SMALLEST):
        return weights
    scaled: Floats = np.ldexp(weights, -int(np.frexp(positive.max())[1]))
    scaled[scaled < SMALLEST] = 0
    return scaled


def _canonical(ends: Ids, weights: Floats, vertices: int) -> tuple[Ids, Floats]:
    """One edge for each pair, the smaller end first, sorted; those of weight 0 dropped."""
    if (weights == 0).any():
        ends, weights = ends[weights > 0], weights[weights > 0]
    keys = np.minimum(ends[:, 0], ends[:, 1]) * vertices + np.maximum(ends[:, 0], ends[:, 1])
    if not (keys[1:] > keys[:-1]).all():
        if (weights == weights[0]).all():
            keys = np.sort(keys)
        else:
            order = np.lexsort((weights, keys))  # weights too, so that sums do not depend on the order given
            keys, weights = keys[order], weights[order]
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        keys, weights = keys[starts], np.add.reduceat(weights, starts)
    return np.stack([keys // vertices, keys % vertices], axis=1), np.array(weights)
