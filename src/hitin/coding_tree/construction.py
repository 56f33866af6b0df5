"""`coding_tree`: from a graph or a taxonomy to its coding tree."""

from typing import Literal, get_args

import numpy as np

from hitin.coding_tree.alternatives import random_partitions, taxonomy_draft
from hitin.coding_tree.draft import Draft
from hitin.coding_tree.entropy import entropy_by_identity, flat_entropy, structural_entropy
from hitin.coding_tree.exact import best_modules
from hitin.coding_tree.forest import uppers
from hitin.coding_tree.graph import Graph, Ids, is_whole
from hitin.coding_tree.level import layered
from hitin.coding_tree.merge import EAGER, RULES, Rule, merged
from hitin.coding_tree.moves import TALL, improved
from hitin.coding_tree.running import Runner
from hitin.coding_tree.squeeze import greedy, optimal
from hitin.coding_tree.tree import CodingTree
from hitin.taxonomy import Taxonomy

Method = Literal["optimal", "paper", "random", "taxonomy"]

EXACT = 6_000  # vertices up to which the exact optimum of a forest is tried: beyond, it is seldom found in time
FEW = 2_000  # vertices up to which a forest is worth local moves
FEWER = 200  # vertices up to which a graph is merged again with other numbers, by both rules ...
AGAIN = 3  # ... so often
SLACK = 0.1  # of `merged`, for larger graphs
ROUNDING = 1e-9  # by which two ways of computing the entropy may differ, as a part of H^1


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
      for a forest without weights, of some hundred vertices, and a height of 2 it is the best there is.
    - `paper`: Algorithm 1 to the letter.
    - `random`: nodes paired at random (Section 5.3), with a seed.
    - `taxonomy`: the label tree itself, brought to the height.

    `compiled` says whether to use numba, which gives the same tree; left alone, a large graph does if it is there.
    """
    if method not in get_args(Method):
        raise ValueError(f"there is no method {method!r}; the methods are {', '.join(get_args(Method))}")
    if not is_whole(height) or height < 1:
        raise ValueError(f"the height of a coding tree is a whole number from 1 on, not {height!r}")
    if not isinstance(graph, Graph | Taxonomy):
        raise TypeError(f"a coding tree is made of a Graph or a Taxonomy, not of {type(graph).__name__}")
    if not is_whole(seed) or not 0 <= seed < 2**32:
        raise ValueError(f"the seed is a whole number from 0 to {2**32 - 1}, not {seed!r}")
    taxonomy = graph if isinstance(graph, Taxonomy) else None
    if taxonomy is None and with_root:
        raise ValueError("with_root is for a Taxonomy: a graph has no artificial root")
    if taxonomy is None and method == "taxonomy":
        raise ValueError("the method 'taxonomy' needs a Taxonomy: a graph does not say which label is above which")
    if isinstance(graph, Taxonomy):
        graph = Graph.from_taxonomy(graph, with_root=with_root)
    runner = Runner.for_size(graph.vertices + len(graph.edges), compiled)
    partitions = _partitions(graph, taxonomy, int(height), method, seed, runner)
    return _finished(graph, partitions, method)


def _partitions(
    graph: Graph, taxonomy: Taxonomy | None, height: int, method: Method, seed: int, runner: Runner
) -> list[Ids]:
    """The node of every vertex on each layer."""
    if method == "random":
        return random_partitions(graph.vertices, height, seed)
    if method == "paper":
        draft = merged(graph, uppers(graph, runner), runner, rule="insert")
        return layered(draft, greedy(draft, height, graph.volume, runner), height, runner)
    if method == "taxonomy" and taxonomy is not None:
        return _squeezed(graph, taxonomy_draft(taxonomy, graph, runner), height, runner)
    return _optimal_partitions(graph, height, runner)


def _optimal_partitions(graph: Graph, height: int, runner: Runner) -> list[Ids]:
    """Merge and squeeze; then the exact optimum where it can be had, or else local moves where they are worth it."""
    upper = uppers(graph, runner)
    draft = _merged(graph, upper, "fuse" if upper is None else "insert", runner)
    if height == 1 or not len(graph.edges):
        return _squeezed(graph, draft, height, runner)
    exact = None
    if upper is not None and (height == 2 or graph.vertices <= EAGER):
        exact = _exact(graph, upper, draft, runner)
    if height == 2 and exact is not None:
        return exact
    if upper is not None and graph.vertices > FEW:
        return _squeezed(graph, draft, height, runner)
    return _improved(graph, upper, draft, exact, height, runner)


def _exact(graph: Graph, upper: Ids, draft: Draft, runner: Runner) -> list[Ids] | None:
    """The optimum of height 2 of a forest, if it can be found in time."""
    modules = best_modules(graph, upper) if graph.vertices <= EXACT else None
    if modules is None:
        return None
    found = _squeezed(graph, draft, 2, runner)
    return _best(graph, [found, [found[0], modules, found[2]]])


def _improved(
    graph: Graph, upper: Ids | None, draft: Draft, exact: list[Ids] | None, height: int, runner: Runner
) -> list[Ids]:
    """Local moves from several starts: of a small graph on each height up to this one, beginning with the one below."""
    drafts = [draft]
    small = graph.vertices <= EAGER
    if upper is None and small:  # so that it is never worse than `paper`, which has no better choice of these nodes
        drafts.append(_merged(graph, None, "insert", runner))
    again = _merged_again(graph, runner) if graph.vertices <= FEWER else []
    best = exact
    for step in _steps(height, small, exact is not None):
        starts = [_squeezed(graph, draft, step, runner) for draft in drafts]
        if best is not None:
            starts.append(_padded(best, step))
        if step <= TALL:
            for numbers, other in again:
                partitions = _squeezed(graph, other, step, runner)
                starts.append([partitions[0], *(partition[numbers] for partition in partitions[1:])])
            starts += [improved(graph, start, runner) for start in starts]
        best = _best(graph, starts)
    assert best is not None
    return best


def _steps(height: int, small: bool, begun: bool) -> list[int]:
    """The heights for which moves are tried one after another; a tree beyond the highest of them is not moved."""
    highest = min(height, TALL)
    steps = list(range(3 if begun else 2, highest + 1)) if small else [highest]
    return steps if height == highest else [*steps, height]


def _padded(partitions: list[Ids], height: int) -> list[Ids]:
    """A lower tree with unary nodes below the root."""
    return [*partitions[:-1], *partitions[-2:-1] * (height + 1 - len(partitions)), partitions[-1]]


def _merged(graph: Graph, upper: Ids | None, rule: Rule, runner: Runner) -> Draft:
    return merged(graph, upper, runner, rule=rule, slack=0.0 if graph.vertices <= EAGER else SLACK)


def _merged_again(graph: Graph, runner: Runner) -> list[tuple[Ids, Draft]]:
    """The same with the vertices numbered in other ways: ties, of which there are many, then go to others."""
    found = []
    for seed in range(AGAIN):
        numbers = np.random.RandomState(seed).permutation(graph.vertices)
        other = graph.renumbered(numbers)
        upper = uppers(other, runner)
        found += [(numbers, _merged(other, upper, rule, runner)) for rule in RULES]
    return found


def _squeezed(graph: Graph, draft: Draft, height: int, runner: Runner) -> list[Ids]:
    return layered(draft, optimal(draft, height, graph.volume, runner), height, runner)


def _best(graph: Graph, found: list[list[Ids]]) -> list[Ids]:
    """The first of those with the least entropy, but for the last digits, in which there is only rounding."""
    unit = flat_entropy(graph)
    return min(found, key=lambda partitions: round(_entropy(graph, partitions) / unit, 12))


def _entropy(graph: Graph, partitions: list[Ids]) -> float:
    return structural_entropy(graph, CodingTree.from_partitions(partitions))


def _finished(graph: Graph, partitions: list[Ids], method: Method) -> CodingTree:
    """The tree with its entropy, computed in two ways."""
    tree = CodingTree.from_partitions(partitions, method=method, labels=graph.labels)
    entropy, flat = structural_entropy(graph, tree), flat_entropy(graph)
    by_identity = entropy_by_identity(graph, tree)
    if abs(entropy - by_identity) > ROUNDING * flat:
        raise ArithmeticError(f"the entropy of {tree} is {entropy} by Eq. 6 but {by_identity} by the identity")
    return tree.with_entropy(entropy, flat)
