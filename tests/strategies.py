"""Random taxonomies, graphs and coding trees for property tests."""

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from hitin import Taxonomy
from hitin.coding_tree import Graph
from hitin.names import composed

NAMES = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
    .map(lambda name: composed(name.strip()))
    .filter(lambda name: name and name != "Root")
)
PLAIN_NAMES = (
    NAMES.map(lambda name: "".join(char for char in name if char not in "\t\r\n").strip())
    .map(composed)
    .filter(lambda name: name and name != "Root")
)


@st.composite
def edge_lists(draw: st.DrawFn, most: int = 14, *, tree: bool = False) -> tuple[int, list[tuple[int, int]]]:
    """A number of labels, and (parent, child) pairs without a cycle: each label under some that come before."""
    count = draw(st.integers(1, most))
    edges = []
    for child in range(1, count):
        above = st.sets(st.integers(0, child - 1), max_size=1 if tree else 3)
        edges += [(parent, child) for parent in sorted(draw(above))]
    return count, draw(st.permutations(edges))


@st.composite
def taxonomies(draw: st.DrawFn, names: st.SearchStrategy[str] = NAMES, *, tree: bool = False) -> Taxonomy:
    """A taxonomy, its labels given in any order."""
    count, edges = draw(edge_lists(tree=tree))
    labels = draw(st.lists(names, min_size=count, max_size=count, unique=True))
    named = [(labels[parent], labels[child]) for parent, child in edges]
    return Taxonomy.from_edges(named, labels=draw(st.permutations(labels)), root=None)


WEIGHTS = st.one_of(st.integers(1, 6).map(float), st.floats(1e-3, 1e3))


@st.composite
def graphs(
    draw: st.DrawFn, most: int = 9, *, weights: st.SearchStrategy[float] = WEIGHTS, forest: bool = False
) -> Graph:
    """A graph of any kind: several components, isolated vertices, self-loops, edges given more than once."""
    count = draw(st.integers(1, most))
    if forest:
        edges = [(child, draw(st.integers(0, child - 1))) for child in range(1, count) if draw(st.integers(0, 5))]
    else:
        edges = draw(st.lists(st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)), max_size=3 * count))
    names = draw(st.permutations(range(count)))
    values = draw(st.lists(weights, min_size=len(edges), max_size=len(edges)))
    return Graph(count, [(names[i], names[j]) for i, j in edges], values)


@st.composite
def nested_partitions(draw: st.DrawFn, vertices: int, height: int) -> list[NDArray[np.int64]]:
    """Any coding tree of a height, as the node of every vertex on each layer."""
    partitions = [np.arange(vertices)]
    for _ in range(height - 1):
        below = int(partitions[-1].max()) + 1
        above = draw(st.lists(st.integers(0, below - 1), min_size=below, max_size=below))
        partitions.append(np.array(above)[partitions[-1]])
    return [*partitions, np.zeros(vertices, dtype=np.int64)]
