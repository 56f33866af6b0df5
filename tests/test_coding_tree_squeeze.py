"""Merge, squeeze and layers, each against brute force."""

import itertools

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitin import Taxonomy
from hitin.coding_tree import Graph
from hitin.coding_tree.alternatives import taxonomy_draft
from hitin.coding_tree.draft import NONE, Draft
from hitin.coding_tree.forest import uppers
from hitin.coding_tree.level import layered, measure
from hitin.coding_tree.merge import RULES, Rule, merged
from hitin.coding_tree.running import Runner
from hitin.coding_tree.squeeze import greedy, optimal
from tests.coding_trees import entropy_of, literal_fusion
from tests.strategies import graphs, taxonomies

PLAIN = Runner(compiled=False)
ANY_RULE = st.sampled_from(RULES)


def check_squeeze(graph: Graph, draft: Draft, height: int) -> None:
    """`optimal` is the best of all choices that fit, and `greedy` is one of them."""

    def entropy(keep: object) -> float:
        return entropy_of(graph, layered(draft, np.array(keep, dtype=bool), height, PLAIN))

    above = draft.nodes_above.tolist()
    choices = itertools.product([False, True], repeat=len(above))
    fitting = [keep for keep in choices if measure(above, list(keep), [0] * len(keep)) <= height]
    least = min(map(entropy, fitting))
    best, quick = (squeeze(draft, height, graph.volume, PLAIN) for squeeze in (optimal, greedy))
    assert tuple(best.tolist()) in fitting
    assert tuple(quick.tolist()) in fitting
    assert entropy(best) == pytest.approx(least, abs=1e-12)
    assert entropy(quick) >= least - 1e-12


@given(graphs(8), st.integers(1, 5), ANY_RULE)
@settings(max_examples=60)
def test_the_optimal_squeeze_of_a_binary_tree_is_the_best_choice_of_its_nodes(
    graph: Graph, height: int, rule: Rule
) -> None:
    check_squeeze(graph, merged(graph, uppers(graph, PLAIN), PLAIN, rule=rule), height)


@given(taxonomies(), st.integers(1, 4))
@settings(max_examples=60)
def test_the_optimal_squeeze_of_a_taxonomy_is_the_best_choice_of_its_nodes(taxonomy: Taxonomy, height: int) -> None:
    graph = Graph.from_taxonomy(taxonomy)
    check_squeeze(graph, taxonomy_draft(taxonomy, graph, PLAIN), height)


@given(graphs(14), ANY_RULE)
def test_a_draft_knows_the_volume_of_its_nodes_and_the_edges_inside(graph: Graph, rule: Rule) -> None:
    check_draft(graph, merged(graph, uppers(graph, PLAIN), PLAIN, rule=rule))


def check_fusion(graph: Graph) -> None:
    draft = merged(graph, uppers(graph, PLAIN), PLAIN, rule="fuse")
    below: list[set[int]] = [set() for _ in draft.nodes_above]
    for node, above in enumerate(draft.above.tolist()):  # each after those below it
        if above != NONE:
            below[above] |= {node} if node < graph.vertices else below[node - graph.vertices]
    assert below == literal_fusion(graph)


@given(graphs(9, weights=st.integers(1, 4).map(float)))
@settings(max_examples=60)
def test_fusion_joins_the_neighbours_that_save_most_at_every_step(graph: Graph) -> None:
    check_fusion(graph)


@pytest.mark.parametrize("seed", range(8))
def test_fusion_joins_those_that_save_most_where_gains_rise_too(seed: int) -> None:
    network = nx.gnm_random_graph(12, 30, seed=seed)  # dense: what a merge touches may gain more than before
    check_fusion(Graph(12, list(network.edges), np.random.default_rng(seed).integers(1, 5, 30).astype(float)))


@given(taxonomies(), st.booleans())
def test_the_draft_of_a_taxonomy_knows_them_too_whatever_has_several_parents(
    taxonomy: Taxonomy, with_root: bool
) -> None:
    graph = Graph.from_taxonomy(taxonomy, with_root=with_root)
    check_draft(graph, taxonomy_draft(taxonomy, graph, PLAIN))


def check_draft(graph: Graph, draft: Draft) -> None:
    members: list[set[int]] = [set() for _ in draft.volume]
    for vertex in range(graph.vertices):
        node = int(draft.above[vertex])
        while node != -1:
            members[node].add(vertex)
            assert draft.nodes_above[node] == -1 or draft.nodes_above[node] > node
            node = int(draft.nodes_above[node])
    for node, below in enumerate(members):
        assert draft.volume[node] == pytest.approx(graph.degrees[sorted(below)].sum())
        inside = [w for edge, w in zip(graph.edges.tolist(), graph.weights, strict=True) if set(edge) <= below]
        assert draft.inside[node] == pytest.approx(sum(inside))


@given(graphs(40, weights=st.just(1.0), forest=True))
def test_a_forest_is_merged_in_the_same_order_by_its_own_way_and_by_that_of_any_graph(graph: Graph) -> None:
    if not len(graph.edges):
        return
    plain = merged(graph, uppers(graph, PLAIN), PLAIN, rule="insert")
    loops = [(i, i) for i in range(graph.vertices)]  # weightless beside the rest, but they keep the short way shut
    tiny = [1.0] * len(graph.edges) + [1e-30] * len(loops)
    other = Graph(graph.vertices, [*graph.edges.tolist(), *loops], tiny)
    general = merged(other, uppers(other, PLAIN), PLAIN, rule="insert")
    assert np.array_equal(plain.above, general.above)
    assert np.allclose(plain.inside, general.inside)


def test_a_star_is_merged_into_a_tree_as_high_as_it_is_wide_without_recursion() -> None:
    star = Graph(5_000, [(0, i) for i in range(1, 5_000)])
    draft = merged(star, uppers(star, PLAIN), PLAIN, rule="insert")
    depth, node = 0, int(draft.above[1])
    while node != -1:
        depth, node = depth + 1, int(draft.nodes_above[node])
    assert depth == 4_998  # far beyond Python's limit on calls
    for height in (2, 3, 50):
        for squeeze in (optimal, greedy):
            partitions = layered(draft, squeeze(draft, height, star.volume, PLAIN), height, PLAIN)
            assert len(partitions) == height + 1
