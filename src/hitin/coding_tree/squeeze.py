"""Stage 2: which inner nodes of a draft stay when the tree may have only so many layers.

`optimal` finds the best choice; `greedy` is the paper's, which deletes the cheapest node until the height fits.
"""

from heapq import heapify, heappop, heapreplace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.coding_tree.draft import NONE, Draft
from hitin.coding_tree.entropy import delete_delta
from hitin.coding_tree.level import measure
from hitin.coding_tree.running import Runner, found, kernel, rounded

Flags = NDArray[np.bool_]

NEVER = float("inf")


def optimal(draft: Draft, height: int, total: float, runner: Runner) -> Flags:
    """The nodes to keep for the least entropy under a tree of at most this height.

    The gain is the sum over kept nodes a of E_a * (x - l_a), where l_a is the logarithm of v_a / V and x that of
    the nearest kept node above. f_{a,k}(x), the best gain inside a with k layers left, is convex and piecewise
    linear in x, and keeping a wins exactly above a threshold: one pass finds those of all nodes for one k.
    """
    count = len(draft.volume)
    keep = runner.flags(count)
    if not count or height < 2:
        return np.asarray(keep, dtype=np.bool_)
    above, inside, logs = map(runner.sequence, (draft.nodes_above, draft.inside, np.log(draft.volume / total)))
    base = runner.floats(count)
    thresholds: list[Any] = []
    while len(thresholds) < height - 2:
        threshold, reached = runner.floats(count), runner.floats(count)
        heaps = [runner.ints(count, NONE) for _ in range(6)]
        lines = [runner.floats(count) for _ in range(6)]
        runner.run(find_thresholds, above, inside, logs, base, threshold, reached, *lines, *heaps)
        thresholds.append(threshold)
        if np.array_equal(base, reached):  # one more layer would gain nothing
            break
        base = reached
    runner.run(choose_highest, above, inside, logs, base, runner.floats(count), keep)
    flat = runner.sequence(np.concatenate([np.empty(0), *thresholds]))
    runner.run(choose, above, logs, flat, height - 1, runner.floats(count), runner.ints(count), keep)
    return np.asarray(keep, dtype=np.bool_)


@kernel
def find_thresholds(
    above: list[int],
    inside: list[float],
    logs: list[float],
    base: list[float],
    threshold: list[float],
    reached: list[float],
    left_slope: list[float],
    left_start: list[float],
    right_slope: list[float],
    right_start: list[float],
    jump: list[float],
    negative: list[float],
    lowest: list[int],
    lowest_left: list[int],
    lowest_right: list[int],
    highest: list[int],
    highest_left: list[int],
    highest_right: list[int],
) -> None:
    """The thresholds of all nodes for k layers, from what the nodes below gain with k - 1 (`base`).

    The sum of f over the nodes below a is held as its first line, its last line, and the points between at which
    its slope jumps, in two heaps: from the left for `reached`, its value where a itself is kept, and from the right
    to find where the line of keeping a, the steepest of all, crosses it. A point is named by the node whose
    threshold it is; one without a jump is gone. Nothing matters beyond x = 0, the root.
    """
    for a in range(len(above)):
        log, steepest = logs[a], inside[a]
        start = base[a] - steepest * log
        while lowest[a] != NONE:
            point = lowest[a]
            if jump[point] != 0.0:
                if threshold[point] > log:
                    break
                left_slope[a] += jump[point]
                left_start[a] -= jump[point] * threshold[point]
                jump[point] = 0.0
            lowest[a] = meld_heaps(lowest_left[point], lowest_right[point], threshold, lowest_left, lowest_right)
        reached[a] = left_slope[a] * log + left_start[a]
        while highest[a] != NONE:
            point = highest[a]
            if jump[point] != 0.0:
                x = threshold[point]
                if steepest * x + start < right_slope[a] * x + right_start[a]:
                    break
                right_slope[a] -= jump[point]
                right_start[a] += jump[point] * x
                jump[point] = 0.0
            highest[a] = meld_heaps(highest_left[point], highest_right[point], negative, highest_left, highest_right)
        rise = steepest - right_slope[a]
        x = max((right_start[a] - start) / rise, log) if rise > 0.0 else NEVER
        threshold[a], negative[a] = x, -x
        if x < 0.0:
            right_slope[a], right_start[a] = steepest, start
            if x == log:
                left_slope[a], left_start[a] = steepest, start
            else:
                jump[a] = rise
                lowest[a] = meld_heaps(lowest[a], a, threshold, lowest_left, lowest_right)
                highest[a] = meld_heaps(highest[a], a, negative, highest_left, highest_right)
        p = above[a]
        if p != NONE:
            left_slope[p] += left_slope[a]
            left_start[p] += left_start[a]
            right_slope[p] += right_slope[a]
            right_start[p] += right_start[a]
            lowest[p] = meld_heaps(lowest[p], lowest[a], threshold, lowest_left, lowest_right)
            highest[p] = meld_heaps(highest[p], highest[a], negative, highest_left, highest_right)


@kernel
def meld_heaps(first: int, second: int, key: list[float], left: list[int], right: list[int]) -> int:
    """Two skew heaps become one, with the smallest key on top."""
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


@kernel
def choose_highest(
    above: list[int], inside: list[float], logs: list[float], base: list[float], best: list[float], keep: list[bool]
) -> None:
    """With all layers left and only the root above, x is known: the best of every node in one pass."""
    for a in range(len(above)):
        own = base[a] - inside[a] * logs[a]
        keep[a] = own > best[a]
        if keep[a]:
            best[a] = own
        if above[a] != NONE:
            best[above[a]] += best[a]


@kernel
def choose(
    above: list[int],
    logs: list[float],
    thresholds: list[float],
    layers: int,
    x: list[float],
    left: list[int],
    keep: list[bool],
) -> None:
    """From the root down: a node stays if the nearest kept node above it lies beyond its threshold."""
    count = len(above)
    known = len(thresholds) // count  # from there on a further layer makes no difference
    for a in range(count - 1, -1, -1):
        p = above[a]
        if p == NONE:
            x[a], left[a] = 0.0, layers
        elif keep[p]:
            x[a], left[a] = logs[p], left[p] - 1
        else:
            x[a], left[a] = x[p], left[p]
        if left[a] == 0:
            keep[a] = False
        elif left[a] < layers:
            keep[a] = x[a] > thresholds[(min(left[a], known) - 1) * count + a]


def greedy(draft: Draft, height: int, total: float, runner: Runner) -> Flags:
    """The nodes that are left when the cheapest to delete goes again and again until the height fits.

    Costs only grow as nodes go, so an entry of the queue is a lower bound; of equal costs, the node that was made
    first. The nodes are deleted to the last, and then as many come back as the height allows.
    """
    count = len(draft.volume)
    if not count:
        return np.zeros(0, dtype=np.bool_)
    above = np.where(draft.nodes_above == NONE, count, draft.nodes_above)
    volume = np.append(draft.volume, total)
    meeting = np.append(draft.inside, 0.0)  # e_a: inside a but inside no node below
    np.subtract.at(meeting, above, draft.inside)
    order = runner.ints(count)
    cluster = runner.sequence(np.arange(count + 1))
    runner.run(delete_all, *map(runner.sequence, (above, volume, meeting)), cluster, order)
    deleted = np.asarray(order)
    nodes_above = runner.sequence(draft.nodes_above)

    def fits(deletions: int) -> bool:
        keep = np.ones(count, dtype=np.bool_)
        keep[deleted[:deletions]] = False
        return bool(runner.run(measure, nodes_above, runner.sequence(keep), runner.ints(count)) <= height)

    few, many = 0, count
    while few < many:
        middle = (few + many) // 2
        few, many = (few, middle) if fits(middle) else (middle + 1, many)
    keep = np.ones(count, dtype=np.bool_)
    keep[deleted[:many]] = False
    return keep


@kernel
def delete_all(
    above: list[int], volume: list[float], meeting: list[float], cluster: list[int], order: list[int]
) -> None:
    """Delete the node with the smallest `delete_delta`, again and again; `cluster` leads to its parent then."""
    total = volume[len(order)]
    queue = [(rounded(delete_delta(meeting[a], volume[a], volume[above[a]], total)), a) for a in range(len(order))]
    heapify(queue)
    done = 0
    while done < len(order):
        cost, a = queue[0]
        p = found(cluster, above[a])
        now = rounded(delete_delta(meeting[a], volume[a], volume[p], total))
        if now > cost:
            heapreplace(queue, (now, a))
            continue
        heappop(queue)
        meeting[p] += meeting[a]
        cluster[a] = p
        order[done] = a
        done += 1
