"""The compiled way gives the same trees, and is taken when a graph is large."""

import subprocess
import sys

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin.coding_tree import Graph, Method, coding_tree
from tests.strategies import graphs

METHODS: tuple[Method, ...] = ("optimal", "paper", "random")


@given(graphs(30), st.integers(1, 5), st.sampled_from(METHODS))
def test_compiled_gives_the_same_tree(graph: Graph, height: int, method: Method) -> None:
    plain = coding_tree(graph, height, method, compiled=False)
    fast = coding_tree(graph, height, method, compiled=True)
    assert plain == fast
    assert plain.entropy == fast.entropy


@given(graphs(60, weights=st.just(1.0), forest=True), st.integers(1, 5), st.sampled_from(METHODS))
def test_compiled_gives_the_same_tree_of_a_forest(graph: Graph, height: int, method: Method) -> None:
    assert coding_tree(graph, height, method, compiled=False) == coding_tree(graph, height, method, compiled=True)


WILD = st.integers(-20, 20).map(lambda power: 10.0**power)


@given(graphs(11, weights=WILD), st.integers(2, 4), st.sampled_from(METHODS))
def test_weights_of_any_size_beside_each_other_are_fine_compiled_or_not(
    graph: Graph, height: int, method: Method
) -> None:
    plain = coding_tree(graph, height, method, compiled=False)
    assert plain == coding_tree(graph, height, method, compiled=True)
    assert plain.entropy <= plain.flat_entropy * (1 + 1e-12) or method == "random"


def test_a_large_graph_is_merged_nearly_as_well_as_with_every_gain_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    network = nx.powerlaw_cluster_graph(1_500, 3, 0.3, seed=0)
    graph = Graph(1_500, list(network.edges))
    quick = coding_tree(graph, compiled=True).entropy
    for module in ("construction", "merge"):
        monkeypatch.setattr(f"hitin.coding_tree.{module}.EAGER", 10**6)
    assert quick < coding_tree(graph, compiled=True).entropy * 1.01


def test_numba_is_imported_for_a_large_graph_only() -> None:
    script = (
        "import sys; from hitin.coding_tree import Graph, coding_tree;"
        "coding_tree(Graph(3, [(0, 1)])); print('numba' in sys.modules);"
        "coding_tree(Graph(60_000, [(0, i) for i in range(1, 60_000)])); print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
