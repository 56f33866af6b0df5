"""How near two labels are in the hierarchy, as a bias of the attention between them (HGCLR).

A virtual root stands above the first level, so that there is a path between any two labels: up from one to where they
meet, and down to the other. Each edge is known by the label at its lower end. Of a label with several parents, the
first is taken: paths are those of a tree. Inside, the root is node 0 and label k is node k + 1.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from hitin.methods.interface import Fidelity
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import level_slices
from hitin.taxonomy.taxonomy import Ids

FARTHEST = 19
"""Labels farther apart are as if they were so far."""
MOST_EDGES = 15
"""So many edges of a path count, from its beginning, in the published program."""
_START = 0.02  # the deviation of the numbers at the start

Nodes = NDArray[np.int32]


class Paths(NamedTuple):
    """Between any two labels; (|Y|, |Y|) each."""

    meeting: Nodes
    """The node where they meet: the lowest of those above both."""
    ends: Nodes | None
    """The node where they end, where not all end at the second label."""
    distances: Nodes
    """How many edges there are between the two labels."""


class PathBias(nn.Module):
    """bias_ij = b[dist(i, j)] + (sum of w_e over the edges e of the path from i to j) / dist(i, j)

    The sum is s_i + s_j - 2 s_m, with s the sums of w from the root and m the node where the two meet: no table of
    labels by labels by edges is made.
    """

    meeting: Tensor
    ends: Tensor | None
    distances: Tensor
    nodes: Tensor
    edges: Tensor

    def __init__(self, taxonomy: Taxonomy, fidelity: Fidelity = "clean") -> None:
        super().__init__()
        is_upstream = fidelity == "upstream"
        paths = label_paths(taxonomy, most=MOST_EDGES if is_upstream else None)
        nodes, edges = _edges_above(taxonomy)
        for name, array in {**paths._asdict(), "nodes": nodes, "edges": edges}.items():
            self.register_buffer(name, None if array is None else torch.from_numpy(array), persistent=False)
        farthest = FARTHEST if is_upstream else max(1, min(FARTHEST, int(paths.distances.max())))
        # The published program has a number for the distance 0, which stays 0, and one for an edge that is none.
        self.spare = int(is_upstream)
        self.by_distance = nn.Parameter(torch.randn(farthest + self.spare) * _START)  # b
        self.by_edge = nn.Parameter(torch.randn(len(taxonomy) + self.spare) * _START)  # w
        with torch.no_grad():
            self.by_distance[: self.spare] = 0

    def forward(self) -> Tensor:
        """(|Y|, |Y|)"""
        table = functional.pad(self.by_distance[self.spare :], (1, 0))  # b[0] is 0
        sums = self._sums()
        down = sums[1:] if self.ends is None else _looked_up(sums, self.ends)
        along = sums[1:, None] + down - 2 * _looked_up(sums, self.meeting)
        nearness = _looked_up(table, self.distances.clamp(max=len(table) - 1))
        return nearness + along / self.distances.clamp(min=1)

    def _sums(self) -> Tensor:
        """(|Y| + 1,): the sum of w from the root to each node."""
        return self.by_edge.new_zeros(len(self.meeting) + 1).index_add(0, self.nodes, self.by_edge[self.edges])


def _looked_up(values: Tensor, places: Tensor) -> Tensor:
    """`values[places]`, of a vector; places may be small integers."""
    return values.index_select(0, places.flatten()).view(places.shape)


def label_paths(taxonomy: Taxonomy, *, most: int | None = None) -> Paths:
    """Where the path between any two labels meets and ends; at the latest after `most` edges."""
    above, meeting = first_parents(taxonomy), _node_meeting(taxonomy)[1:, 1:]
    depths = _depths(taxonomy, above)
    distances = depths[1:, None] + depths[None, 1:] - 2 * depths[meeting]
    paths = Paths(np.ascontiguousarray(meeting), None, distances)
    return paths if most is None or distances.max() <= most else _cut(paths, most, above, depths)


def _cut(paths: Paths, most: int, above: Ids, depths: Nodes) -> Paths:
    """Paths that end after `most` edges: on the way down to the second label, or already on the way up."""
    meeting, _, distances = paths
    ends = np.broadcast_to(np.arange(1, len(depths), dtype=np.int32), meeting.shape).copy()
    for edges in range(int(distances.max()), most, -1):
        is_longer = (distances >= edges) & (ends != meeting)
        ends[is_longer] = above[ends[is_longer]]
    highest = np.arange(len(depths))
    for _ in range(most):
        highest = above[highest]
    ends_below = depths[1:, None] - depths[meeting] > most
    ends = np.where(ends_below, highest[1:, None], ends).astype(np.int32)
    return Paths(np.where(ends_below, ends, meeting), ends, distances)


def _edges_above(taxonomy: Taxonomy) -> tuple[Ids, Ids]:
    """Each node below the root with each edge from the root to it: a pair a row."""
    above, nodes = first_parents(taxonomy), np.arange(1, len(taxonomy) + 1)
    places, pairs = nodes, []
    while len(nodes):
        pairs.append((nodes, places - 1))
        goes_on = above[places] > 0
        nodes, places = nodes[goes_on], above[places[goes_on]]
    found = np.concatenate(pairs, axis=1)
    return found[0], found[1]


def first_parents(taxonomy: Taxonomy) -> Ids:
    """(|Y| + 1,): the node above each node. The root is above itself."""
    above = np.zeros(len(taxonomy) + 1, dtype=np.int64)
    below = np.flatnonzero(taxonomy.parent_counts)
    above[below + 1] = taxonomy.parent_ids[taxonomy.parent_starts[below]] + 1
    return above


def _depths(taxonomy: Taxonomy, above: Ids) -> Nodes:
    """(|Y| + 1,): how far each node is from the root. A label's level, unless a first parent stands higher."""
    depths = np.zeros(len(above), dtype=np.int32)
    for level in level_slices(taxonomy):
        nodes = slice(level.start + 1, level.stop + 1)
        depths[nodes] = depths[above[nodes]] + 1
    return depths


def _node_meeting(taxonomy: Taxonomy) -> Nodes:
    """(|Y| + 1, |Y| + 1): the node where any two nodes meet.

    A node meets those of the levels above it, and its own, where its parent does: none of them stands below it.
    """
    above, count = first_parents(taxonomy), len(taxonomy) + 1
    meeting = np.zeros((count, count), dtype=np.int32)
    for level in level_slices(taxonomy):
        start, stop = level.start + 1, level.stop + 1
        parents = above[start:stop]
        meeting[start:stop, :start] = meeting[parents, :start]
        meeting[:start, start:stop] = meeting[start:stop, :start].T
        meeting[start:stop, start:stop] = meeting[np.ix_(parents, parents)]
        np.fill_diagonal(meeting[start:stop, start:stop], np.arange(start, stop))
    return meeting
