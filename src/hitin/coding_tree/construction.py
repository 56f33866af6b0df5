"""`coding_tree`: from a graph or a taxonomy to its coding tree."""

from typing import Literal, get_args

import numpy as np

from hitin.coding_tree.alternatives import random_partitions, taxonomy_draft
from hitin.coding_tree.entropy import entropy_by_identity, flat_entropy, structural_entropy
from hitin.coding_tree.exact import best_modules
from hitin.coding_tree.forest import uppers
from hitin.coding_tree.graph import Graph, Ids
from hitin.coding_tree.level import layered
from hitin.coding_tree.merge import EAGER, merged
from hitin.coding_tree.moves import improved
from hitin.coding_tree.running import Runner
from hitin.coding_tree.squeeze import greedy, optimal
from hitin.coding_tree.tree import CodingTree
from hitin.taxonomy import Taxonomy

Method = Literal["optimal", "paper", "random", "taxonomy"]

EXACT = 6_000  # vertices up to which the exact optimum of a forest is tried
FEW = 2_000  # vertices up to which a forest is worth local moves
SLACK = 0.1  # of `merged`, for larger graphs
ROUNDING = 1e-9  # by which two ways of computing the entropy may differ, as a part of it


def coding_tree(
    graph: Graph | Taxonomy,
    height: int = 2,
    method: Method = "optimal",
    *,
    with_root: bool = False,
    seed: int = 0,
    compiled: bool | None = None,
) -> CodingTree:
    """The coding tree of a graph, or of a taxonomy without its artificial root (`with_root` keeps it).

    - `optimal`: joins neighbours, keeps the best choice of nodes for the height and improves it by local moves;
      for a forest of some hundred vertices and a height of 2 it is the best there is.
    - `paper`: Algorithm 1 to the letter.
    - `random`: nodes paired at random (Section 5.3), with a seed.
    - `taxonomy`: the label tree itself, brought to the height.

    `compiled` says whether to use numba, which gives the same tree; left alone, a large graph does if it is there.
    """
    if method not in get_args(Method):
        raise ValueError(f"there is no method {method!r}; the methods are {', '.join(get_args(Method))}")
    if isinstance(height, bool) or not isinstance(height, int | np.integer) or height < 1:
        raise ValueError(f"the height of a coding tree is a whole number from 1 on, not {height!r}")
    taxonomy = graph if isinstance(graph, Taxonomy) else None
    if taxonomy is None and method == "taxonomy":
        raise ValueError("the method 'taxonomy' needs a Taxonomy: a graph does not say which label is above which")
    if isinstance(graph, Taxonomy):
        graph = Graph.from_taxonomy(graph, with_root=with_root)
    runner = Runner.for_size(graph.vertices, compiled)
    partitions = _partitions(graph, taxonomy, int(height), method, seed, runner)
    return _finished(graph, partitions, method)


def _partitions(
    graph: Graph, taxonomy: Taxonomy | None, height: int, method: Method, seed: int, runner: Runner
) -> list[Ids]:
    """The node of every vertex on each layer."""
    if method == "random":
        return random_partitions(graph.vertices, height, seed)
    if method == "paper":
        draft = merged(graph, runner, rule="insert")
        return layered(draft, greedy(draft, height, graph.volume, runner), height, runner)
    if method == "taxonomy" and taxonomy is not None:
        draft = taxonomy_draft(taxonomy, graph, runner)
        return layered(draft, optimal(draft, height, graph.volume, runner), height, runner)
    return _optimal_partitions(graph, height, runner)


def _optimal_partitions(graph: Graph, height: int, runner: Runner) -> list[Ids]:
    upper = uppers(graph, runner)
    slack = 0.0 if graph.vertices <= EAGER else SLACK
    draft = merged(graph, runner, rule="fuse" if upper is None else "insert", slack=slack)
    partitions = layered(draft, optimal(draft, height, graph.volume, runner), height, runner)
    if upper is not None and height == 2 and graph.vertices <= EXACT:
        modules = best_modules(graph, upper)
        if modules is not None:
            exact = [partitions[0], modules, partitions[2]]
            return min(partitions, exact, key=lambda found: round(_entropy(graph, found), 12))
    return improved(graph, partitions, runner) if upper is None or graph.vertices <= FEW else partitions


def _entropy(graph: Graph, partitions: list[Ids]) -> float:
    return structural_entropy(graph, CodingTree.from_partitions(partitions))


def _finished(graph: Graph, partitions: list[Ids], method: Method) -> CodingTree:
    """The tree with its entropy, computed in two ways."""
    tree = CodingTree.from_partitions(partitions, method=method, labels=graph.labels)
    entropy, flat = structural_entropy(graph, tree), flat_entropy(graph)
    by_identity = entropy_by_identity(graph, tree)
    if abs(entropy - by_identity) > ROUNDING * max(flat, 1.0):
        raise ArithmeticError(f"the entropy of {tree} is {entropy} by Eq. 6 but {by_identity} by the identity")
    return tree.with_entropy(entropy, flat)
