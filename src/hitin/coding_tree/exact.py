"""The exact optimum of height 2 for a forest.

Some best modules are connected, so the question is which edges to cut. A walk from the leaves up carries, for each
vertex, the modules that it could be in and that are still open towards its parent: what is worth keeping is only
the states that no other beats in edges inside (E), volume (v) and gain of the modules already closed.

Without weights there are few of them. With weights the question holds that of subset sums (which leaves of a star make
up the best volume?), so there are forests for which no exact way can be fast, and it must be possible to give up.
"""

from bisect import bisect_left
from math import log

import numpy as np

from hitin.coding_tree.draft import NONE
from hitin.coding_tree.graph import Graph, Ids

MOST_WORK = 200_000  # pairs of states looked at before giving up

Choice = tuple["Choice | None", list[int], int, "State"]  # those before, children, how many joined, in which state
State = tuple[float, float, float, Choice | None]  # E, v, gain, and how it came about


def best_modules(graph: Graph, upper: Ids) -> Ids | None:
    """The module of every vertex, named by one of them; None where that would take too long.

    `upper` is each vertex's neighbour towards the top of its tree. The gain is the sum over modules of
    E * ln(V / v), which is what the structural entropy falls by, times V / 2.
    """
    above, degrees, total = upper.tolist(), graph.degrees.tolist(), graph.volume
    weights = [0.0] * graph.vertices  # of the edge to the vertex above
    for (i, j), weight in zip(graph.edges.tolist(), graph.weights.tolist(), strict=True):
        weights[j if above[j] == i else i] = weight
    order = _from_the_top(above)
    component = _component_volumes(order, above, degrees)
    states: list[list[State]] = [[(0.0, degree, 0.0, None)] for degree in degrees]
    closed = [state[0] for state in states]
    inner = set(above)
    leaves = _leaves(above, inner, weights, degrees)
    work = 0
    for vertex in reversed(order):
        p, weight, own = above[vertex], weights[vertex], states[vertex]
        for (leaf_weight, degree), alike in leaves.get(vertex, {}).items():
            always = leaf_weight * log(total / component[vertex]) >= degree / 2  # whatever else is in the module
            work += len(own) * (1 if always else len(alike) + 1)
            if work > MOST_WORK:
                return None
            own = _with_leaves(own, alike, leaf_weight, degree, always)
        closed[vertex] = own[0] if len(own) == 1 else max(own, key=lambda state: _gain(state, total))
        states[vertex] = []
        if p == NONE or vertex not in inner:  # a leaf, which its parent deals with
            continue
        apart, least = _gain(closed[vertex], total), degrees[p]
        open_states = [s for s in own if s[2] + (s[0] + weight) * log(total / (s[1] + least)) > apart]
        work += len(states[p]) * (len(open_states) + 1)
        if work > MOST_WORK:
            return None
        states[p] = _joined(states[p], open_states, vertex, weight, apart)
    return _decoded(order, above, closed)


def _leaves(
    above: list[int], inner: set[int], weights: list[float], degrees: list[float]
) -> dict[int, dict[tuple[float, float], list[int]]]:
    """The leaves below each vertex, those together that are alike in the weight of their edge and their degree."""
    leaves: dict[int, dict[tuple[float, float], list[int]]] = {}
    for vertex, p in enumerate(above):
        if p != NONE and vertex not in inner:
            leaves.setdefault(p, {}).setdefault((weights[vertex], degrees[vertex]), []).append(vertex)
    return leaves


def _with_leaves(states: list[State], leaves: list[int], weight: float, degree: float, always: bool) -> list[State]:
    """The states of a vertex with some of its leaves, which are alike, in its module: only how many matters."""
    leaf: State = (0.0, degree, 0.0, None)
    found = [
        (inside + count * weight, volume + count * degree, gain, (before, leaves, count, leaf) if count else before)
        for inside, volume, gain, before in states
        for count in range(len(leaves) if always else 0, len(leaves) + 1)
    ]
    return found if len(states) == 1 else unbeaten(found)


def _joined(ups: list[State], downs: list[State], child: int, weight: float, apart: float) -> list[State]:
    """The states of a vertex with one more child: in its module in one of its states, or apart with that gain."""
    states = [(inside, volume, gain + apart, before) for inside, volume, gain, before in ups]
    for down in downs:
        states += [
            (inside + down[0] + weight, volume + down[1], gain + down[2], (before, [child], 1, down))
            for inside, volume, gain, before in ups
        ]
    return states if len(states) == 1 else unbeaten(states)


def unbeaten(states: list[State]) -> list[State]:
    """Those for which no other has as many edges inside, as little volume and as much gain."""
    states.sort(key=lambda state: (state[1], -state[0], -state[2]))
    kept: list[State] = []
    edges: list[float] = []  # of those kept so far that none beats whatever the volume, rising ...
    gains: list[float] = []  # ... and their gains, which fall
    for state in states:
        inside, _, gain, _ = state
        place = bisect_left(edges, inside)
        if place < len(edges) and gains[place] >= gain:
            continue
        first = place
        while first and gains[first - 1] <= gain:
            first -= 1
        if place < len(edges) and edges[place] == inside:
            place += 1
        edges[first:place], gains[first:place] = [inside], [gain]
        kept.append(state)
    return kept


def _gain(state: State, total: float) -> float:
    inside, volume, gain, _ = state
    return gain + inside * log(total / volume) if inside else gain


def _from_the_top(above: list[int]) -> list[int]:
    """The vertices, each after the one above it."""
    children: list[list[int]] = [[] for _ in above]
    for vertex, p in enumerate(above):
        if p != NONE:
            children[p].append(vertex)
    order = [vertex for vertex, p in enumerate(above) if p == NONE]
    for vertex in order:  # which grows as it goes
        order += children[vertex]
    return order


def _component_volumes(order: list[int], above: list[int], degrees: list[float]) -> list[float]:
    """For each vertex the volume of its whole tree."""
    volumes = list(degrees)
    for vertex in reversed(order):
        if above[vertex] != NONE:
            volumes[above[vertex]] += volumes[vertex]
    for vertex in order:
        if above[vertex] != NONE:
            volumes[vertex] = volumes[above[vertex]]
    return volumes


def _decoded(order: list[int], above: list[int], closed: list[State]) -> Ids:
    """Follow the choices behind the best states from the top down: who is in the module of the vertex above."""
    module = list(range(len(above)))
    state: dict[int, State] = {}  # of the vertices that joined
    for vertex in order:
        if vertex in state:
            module[vertex] = module[above[vertex]]
        choice = state.get(vertex, closed[vertex])[3]
        while choice is not None:
            choice, children, count, joined = choice
            for child in children[:count]:
                state[child] = joined
    return np.array(module)
