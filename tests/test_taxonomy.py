"""`Taxonomy`: order, levels, closure, and what it refuses."""

import copy
import pickle
import random
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin import InputError, Taxonomy
from hitin.names import label_name
from tests.strategies import edge_lists, taxonomies

HEALTH = Taxonomy.from_edges(
    [("Root", "Health"), ("Root", "Sport"), ("Sport", "Football"), ("Health", "Injury"), ("Health", "Diet")]
)


def graph_of(taxonomy: Taxonomy) -> "nx.DiGraph[int]":
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(taxonomy)))
    graph.add_edges_from(taxonomy.edges.tolist())
    return graph


def test_labels_are_numbered_level_by_level_with_siblings_together() -> None:
    assert HEALTH.labels == ("Health", "Sport", "Injury", "Diet", "Football")
    assert HEALTH.level_sizes == (2, 3)
    assert HEALTH.levels.tolist() == [1, 1, 2, 2, 2]


def test_parents_children_roots_and_leaves_are_those_of_the_edges() -> None:
    assert HEALTH.children(0).tolist() == [2, 3]
    assert HEALTH.parents(4).tolist() == [1]
    assert HEALTH.roots.tolist() == [0, 1]
    assert HEALTH.leaves.tolist() == [2, 3, 4]
    assert HEALTH.depth == 2
    assert HEALTH.is_tree
    assert HEALTH.ancestors(4) == (1,)
    assert "Diet" in HEALTH
    assert "Root" not in HEALTH
    assert HEALTH.index("Diet") == 3


def test_a_label_with_two_parents_makes_a_dag() -> None:
    taxonomy = Taxonomy.from_edges([("A", "C"), ("B", "C"), ("B", "D"), ("D", "C")])
    assert not taxonomy.is_tree
    assert taxonomy.labels == ("A", "B", "D", "C")  # C stands below its deepest parent
    assert taxonomy.ancestors(taxonomy.index("C")) == (0, 1, 2)
    assert repr(taxonomy) == "Taxonomy(4 labels, 3 levels, DAG)"


def test_the_artificial_root_is_no_label_but_a_root_below_something_is() -> None:
    assert Taxonomy.from_edges([("Root", "A")]).labels == ("A",)
    assert Taxonomy.from_edges([("Plant", "Root")]).labels == ("Plant", "Root")
    assert Taxonomy.from_edges([("Root", "A")], root=None).labels == ("Root", "A")
    assert Taxonomy.from_edges([("Top", "A")], root="Top").labels == ("A",)


def test_nested_and_path_input_build_the_same_taxonomy() -> None:
    nested = {"Health": {"Injury": {}, "Diet": None}, "Sport": ["Football"]}
    named = {
        "name": "Root",
        "children": [
            {"name": "Health", "children": [{"name": "Injury"}, {"name": "Diet", "children": []}]},
            {"name": "Sport", "children": [{"name": "Football"}]},
        ],
    }
    paths = [["Health", "Injury"], ["Root", "Health", "Diet"], ["Sport", "Football"]]
    assert Taxonomy.from_nested(nested) == HEALTH
    assert Taxonomy.from_nested(named) == HEALTH
    assert Taxonomy.from_paths(paths) == HEALTH


def test_the_same_name_under_two_parents_is_one_label_or_two_as_the_user_says() -> None:
    paths = [["Health", "Injury"], ["Sport", "Injury"]]
    merged = Taxonomy.from_paths(paths)
    assert merged.labels == ("Health", "Sport", "Injury")
    assert merged.parents(2).tolist() == [0, 1]
    separate = Taxonomy.from_paths(paths, homonyms="separate")
    assert separate.labels == ("Health", "Sport", "Health > Injury", "Sport > Injury")
    assert separate.is_tree


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([("A", "B"), ("B", "C"), ("C", "A")], ["cycle", "A > B > C > A"]),
        ([("R", "A"), ("A", "B"), ("B", "A")], ["cycle", "A > B > A"]),
        ([("A", "A")], ["'A' is its own parent"]),
        ([], ["no label"]),
        ([("Root", "Root")], ["'Root' is its own parent"]),
        ([("A", "")], ["name is empty"]),
        ([("A", True)], ["must be text or a number"]),
        ([("A", float("nan"))], ["must be text or a number"]),
        ([("A", "\ud800")], ["half a character"]),
    ],
)
def test_what_is_no_taxonomy_is_refused(edges: list[tuple[str, str]], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        Taxonomy.from_edges(edges)
    assert all(word in str(caught.value) for word in words)


@pytest.mark.parametrize("paths", [["A/B", "A/C"], ["A > B"], "A > B", None, [7], [{"A": ["B"]}], [b"AB"]])
def test_a_path_that_is_no_list_of_names_is_told_how_to_write_one(paths: Any) -> None:
    with pytest.raises(InputError, match="list") as caught:
        Taxonomy.from_paths(paths)
    assert 'Write [["A", "B"], ["A", "C"]], or read a file of paths with Taxonomy.read' in str(caught.value)


@pytest.mark.parametrize(
    "edges", [["AB"], "AB", None, [("A",)], [("A", "B", "C")], [7], [{"parent": "A", "child": "B"}], {"A": ["B"]}]
)
def test_an_edge_that_is_no_pair_of_names_is_told_how_to_write_one(edges: Any) -> None:
    with pytest.raises(InputError, match="pair") as caught:
        Taxonomy.from_edges(edges)
    assert 'Write [("A", "B"), ("A", "C")]' in str(caught.value)


@pytest.mark.parametrize("labels", ["AB", None, 7])
def test_labels_that_are_no_list_of_names_are_refused(labels: Any) -> None:
    with pytest.raises(InputError, match=r"labels are a list of names, not .*\nWrite \['A', 'B'\]".replace("'", '"')):
        Taxonomy.from_edges([], labels=labels)
    assert Taxonomy.from_edges([], labels={"A": 1, "B": 2}).labels == ("A", "B")


def test_a_long_cycle_is_printed_in_part() -> None:
    names = [f"label {number}" for number in range(1000)]
    with pytest.raises(InputError) as caught:
        Taxonomy.from_edges(zip(names, names[1:] + names[:1], strict=True))
    assert "... 989 more ..." in str(caught.value)
    assert len(str(caught.value)) < 400


def test_numbers_are_label_names_and_blanks_around_names_are_not_part_of_them() -> None:
    assert label_name(7) == "7"
    assert label_name(np.int64(7)) == "7"
    assert label_name(7.0) == "7"
    assert label_name(2.5) == "2.5"
    assert label_name(" a  b\n") == "a  b"


def test_a_chain_of_100_000_labels_needs_no_recursion() -> None:
    names = [str(number) for number in range(100_000)]
    taxonomy = Taxonomy.from_edges(pairwise(names))
    assert taxonomy.depth == 100_000
    assert len(taxonomy.ancestors(99_999)) == 99_999
    assert Taxonomy.from_nested({"a": {"b": {}}}).depth == 2


def test_a_taxonomy_does_not_change_and_knows_its_numbers() -> None:
    with pytest.raises(ValueError, match="read-only"):
        HEALTH.edges[0, 0] = 3
    for array in (HEALTH.children(0), HEALTH.levels, HEALTH.leaves, pickle.loads(pickle.dumps(HEALTH)).edges):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 1
    for number in (-1, 5):
        with pytest.raises(IndexError, match="from 0 to 4"):
            HEALTH.closure([number])
    assert HEALTH.closure(np.array([4])) == (1, 4)


def test_taxonomies_can_be_copied_pickled_and_used_as_keys() -> None:
    for twin in (copy.deepcopy(HEALTH), pickle.loads(pickle.dumps(HEALTH))):
        assert twin == HEALTH
        assert hash(twin) == hash(HEALTH)
    assert Taxonomy.from_edges([("A", "B")]) != HEALTH


@given(edge_lists())
def test_levels_agree_with_networkx_on_random_dags(dag: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = dag
    taxonomy = Taxonomy.from_edges(edges, labels=range(count))
    graph: nx.DiGraph[str] = nx.DiGraph([(str(parent), str(child)) for parent, child in edges])
    graph.add_nodes_from(str(label) for label in range(count))
    for level, labels in enumerate(nx.topological_generations(graph), start=1):
        assert {taxonomy.labels[at] for at in np.flatnonzero(taxonomy.levels == level)} == set(labels)
    named = {(taxonomy.labels[parent], taxonomy.labels[child]) for parent, child in taxonomy.edges.tolist()}
    assert named == set(graph.edges)


@given(taxonomies())
def test_parents_come_before_children_and_levels_are_runs(taxonomy: Taxonomy) -> None:
    assert np.all(taxonomy.edges[:, 0] < taxonomy.edges[:, 1])
    assert np.all(np.diff(taxonomy.levels) >= 0)
    assert sum(taxonomy.level_sizes) == len(taxonomy)


@given(taxonomies(), st.data())
def test_closure_is_idempotent_and_equals_networkx_ancestors(taxonomy: Taxonomy, data: st.DataObject) -> None:
    labels = data.draw(st.sets(st.integers(0, len(taxonomy) - 1)))
    closed = taxonomy.closure(labels)
    graph = graph_of(taxonomy)
    assert set(closed) == labels.union(*(nx.ancestors(graph, label) for label in labels))
    assert taxonomy.closure(closed) == closed
    ends = taxonomy.deepest(closed)
    assert set(ends) == {label for label in closed if not nx.descendants(graph, label) & set(closed)}
    assert taxonomy.closure(ends) == closed


@given(taxonomies(), st.randoms())
def test_numbers_do_not_depend_on_the_order_in_which_families_are_given(
    taxonomy: Taxonomy, chance: random.Random
) -> None:
    families: list[list[tuple[str | None, str]]] = [[(None, taxonomy.labels[label]) for label in taxonomy.roots]]
    for parent, name in enumerate(taxonomy.labels):
        families.append([(name, taxonomy.labels[child]) for child in taxonomy.children(parent)])
    chance.shuffle(families)
    assert Taxonomy.from_edges(edge for family in families for edge in family) == taxonomy
