"""Skew heaps in arrays: heaps that melt together in O(log n), several of them in the same arrays."""

from hitin.coding_tree.running import kernel

NONE = -1


@kernel
def meld(first: int, second: int, key: list[float], left: list[int], right: list[int]) -> int:
    """The top of a heap with the nodes of two: each node's key is at most those of `left` and `right` below it."""
    if first == NONE:
        return second
    if second == NONE:
        return first
    if key[second] < key[first]:
        first, second = second, first
    top = first
    while True:  # down the right side, whose nodes change sides: what keeps it short
        rest = right[first]
        right[first] = left[first]
        if rest == NONE:
            left[first] = second
            return top
        if key[second] < key[rest]:
            rest, second = second, rest
        left[first] = rest
        first = rest
