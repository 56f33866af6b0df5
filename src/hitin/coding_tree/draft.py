"""`Draft`: a tree over the vertices of a graph before it has layers."""

from dataclasses import dataclass

from hitin.coding_tree.graph import Floats, Ids

NONE = -1


@dataclass(frozen=True)
class Draft:
    """Inner nodes, each numbered after those below it.

    `above[i]` is the inner node above vertex i and then above each inner node, or -1 for the root; `volume` (v_a)
    and `inside` (E_a, the weight of the edges inside) are those of the inner nodes.
    """

    vertices: int
    above: Ids
    volume: Floats
    inside: Floats

    @property
    def nodes_above(self) -> Ids:
        """The inner node above each inner node."""
        return self.above[self.vertices :]
