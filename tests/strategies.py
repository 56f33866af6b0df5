"""Random taxonomies for property tests."""

from hypothesis import strategies as st

from hitin import Taxonomy

NAMES = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
    .map(str.strip)
    .filter(lambda name: name and name != "Root")
)
PLAIN_NAMES = NAMES.map(lambda name: "".join(char for char in name if char not in "\t\r\n").strip()).filter(
    lambda name: name and name != "Root"
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
