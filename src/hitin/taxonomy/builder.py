"""`TaxonomyBuilder`: names and edges in the order they are met, to a checked and numbered `Taxonomy`."""

from array import array
from collections import Counter
from typing import Literal

import numpy as np

from hitin.errors import InputError, printable, shown
from hitin.names import PATH_SEPARATOR, ROOT, composed
from hitin.taxonomy.taxonomy import Ids, Taxonomy, run_starts

Homonyms = Literal["merge", "separate"]
"""What the same name under two parents is: one label, or two that are called by their paths."""

_TOP = -1  # the parent of what has none
_UNKNOWN_LINE = 0


class TaxonomyBuilder:
    """Collects names and edges, then numbers, checks and freezes them.

    Edges come one by one (`add`), where a name is an identity, or as steps of a path (`add_below`, `add_path`),
    where `homonyms` decides. `root` names the artificial root; `None` when every name is a label.
    """

    def __init__(self, *, homonyms: Homonyms = "merge", root: str | None = ROOT, file: str | None = None) -> None:
        if homonyms not in ("merge", "separate"):
            raise InputError(f"homonyms are 'merge' or 'separate', not {shown(homonyms)}", kind="bad-option")
        self.root = root if root is None else composed(root)
        self.names: dict[str, int] = {}
        self.homonym_policy: Homonyms | None = None
        """What was done with homonyms; `None` until a path comes."""
        self._homonyms = homonyms
        self._file = file
        self._name_lines = array("q")
        self._parents = array("q")
        self._children = array("q")
        self._lines = array("q")
        self._last_names: Counter[str] = Counter()
        self._last_path: list[tuple[str, str | None]] = []

    def label(self, name: str, line: int = _UNKNOWN_LINE) -> int:
        """The provisional number of a name."""
        number = self.names.setdefault(composed(name), len(self.names))
        if number == len(self._name_lines):
            self._name_lines.append(line)
        return number

    def add(self, parent: str | None, child: str, line: int = _UNKNOWN_LINE) -> None:
        """An edge; a parent of `None` puts the child at the top."""
        self._parents.append(_TOP if parent is None else self.label(parent, line))
        self._children.append(self.label(child, line))
        self._lines.append(line)

    def add_below(self, above: str | None, name: str, line: int = _UNKNOWN_LINE) -> str | None:
        """One step of a path: the label of `name` under the label `above`. The artificial root is no step."""
        label = self.named_below(above, name, line)
        if label is not None:
            self.add(above, label, line)
        return label

    def named_below(self, above: str | None, name: str, line: int = _UNKNOWN_LINE) -> str | None:
        """What `name` under the label `above` is called, without the edge; `None` for the artificial root."""
        self.homonym_policy = self._homonyms
        label = name = composed(name)
        if above is None and name == self.root:
            return None
        if self._homonyms == "separate":
            label = name if above is None else f"{above}{PATH_SEPARATOR}{name}"
            self._last_names[name] += label not in self.names
        self.label(label, line)
        return label

    def add_path(self, names: list[str], line: int = _UNKNOWN_LINE) -> None:
        """All steps of a path from the top down, less those that the path before it began with."""
        shared = 0
        for name, (known, _) in zip(names, self._last_path, strict=False):
            if name != known:
                break
            shared += 1
        del self._last_path[shared:]
        above = self._last_path[-1][1] if shared else None
        for name in names[shared:]:
            above = self.add_below(above, name, line)
            self._last_path.append((name, above))

    def build(self) -> Taxonomy:
        """The finished taxonomy, or an `InputError` for a loop, a cycle, or no label at all."""
        parents, children = np.array(self._parents, dtype=np.int64), np.array(self._children, dtype=np.int64)
        self._refuse_self_loops(parents, children)
        root = self._artificial_root(parents, children)
        if root is not None:
            parents[parents == root] = _TOP
        count = len(self.names) - (root is not None)
        if count == 0:
            raise InputError("there is no label in the taxonomy", kind="no-labels", file=self._file)
        first, self._again = _first_occurrences((parents + 1) * len(self.names) + children)
        self._edges = np.stack([parents, children], axis=1)[first]
        top, edges = self._edges[self._edges[:, 0] == _TOP, 1], self._edges[self._edges[:, 0] != _TOP]
        self._order, level_sizes = _level_order(edges, top, len(self.names), root)
        if len(self._order) < count:
            raise self._cycle(edges)
        number = np.full(len(self.names), -1, dtype=np.int64)
        number[self._order] = np.arange(count)
        names = list(self.names)
        return Taxonomy((names[old] for old in self._order), number[edges], level_sizes)

    def label_lines(self) -> Ids:
        """After `build`: the line on which each label was first named, 0 where lines mean nothing."""
        return np.array(self._name_lines, dtype=np.int64)[self._order]

    def repeated_edges(self) -> list[tuple[int, str, str]]:
        """After `build`: edges that were given before, each as line, parent and child."""
        names = list(self.names)
        return [
            (
                self._lines[at],
                names[self._parents[at]] if self._parents[at] != _TOP else self.root or ROOT,
                names[self._children[at]],
            )
            for at in self._again.tolist()
        ]

    def homonyms(self) -> list[str]:
        """After `build`: the names that stand under several parents, the top being one."""
        if self._homonyms == "separate":
            return [name for name, places in self._last_names.items() if places > 1]
        names = list(self.names)
        return [names[at] for at in np.flatnonzero(np.bincount(self._edges[:, 1], minlength=len(names)) > 1)]

    def _artificial_root(self, parents: Ids, children: Ids) -> int | None:
        """The number of the artificial root, if it is among the names and never below another."""
        root = self.names.get(self.root) if self.root is not None else None
        if root is None or np.any((children == root) & (parents != _TOP)):
            return None
        return root

    def _refuse_self_loops(self, parents: Ids, children: Ids) -> None:
        for at in np.flatnonzero(parents == children)[:1].tolist():
            raise InputError(
                f"the label {shown(list(self.names)[children[at]])} is its own parent",
                kind="self-loop",
                file=self._file,
                line=self._lines[at],
                remedy="Remove this edge, or give parent and child different names. " + self._advice(),
            )

    def _cycle(self, edges: Ids) -> InputError:
        """The error that prints one cycle among the labels that could not be placed."""
        loose = np.ones(len(self.names), dtype=bool)
        loose[self._order] = False
        edges = edges[loose[edges[:, 0]] & loose[edges[:, 1]]]
        parent_of = dict(zip(edges[:, 1].tolist(), edges[:, 0].tolist(), strict=True))
        seen: dict[int, int] = {}
        at = next(iter(parent_of))
        while at not in seen:
            seen[at] = len(seen)
            at = parent_of[at]
        around = [label for label, step in seen.items() if step >= seen[at]][::-1]  # upwards, so turned round
        first = around.index(min(around))
        cycle = [*around[first:], *around[: first + 1]]
        names = list(self.names)
        steps = [printable(names[label], 60) for label in cycle]
        if len(steps) > 12:
            steps = [*steps[:6], f"... {len(steps) - 12:,} more ...", *steps[-6:]]
        return InputError(
            f"the labels form a cycle: {PATH_SEPARATOR.join(steps)}",
            kind="cycle",
            file=self._file,
            line=self._line_of(cycle[0], cycle[1]),
            remedy="Remove one of these edges: a label cannot stand above itself. " + self._advice(),
        )

    def _line_of(self, parent: int, child: int) -> int | None:
        pairs = zip(self._parents, self._children, self._lines, strict=True)
        return next((line for above, below, line in pairs if (above, below) == (parent, child)), None)

    def _advice(self) -> str:
        if self.homonym_policy == "merge":
            return "If these are different categories of the same name, read them with --homonyms separate."
        if self.root in self.names:
            return f"If {self.root!r} is a label of yours, name another artificial root with --root."
        return ""


def _first_occurrences(keys: Ids) -> tuple[Ids, Ids]:
    """Positions of the first occurrence of each key, and of the repetitions, both in order."""
    order = np.argsort(keys, kind="stable")
    again = np.zeros(len(keys), dtype=bool)
    again[order[1:]] = keys[order[1:]] == keys[order[:-1]]
    return np.flatnonzero(~again), np.flatnonzero(again)


def _level_order(edges: Ids, top: Ids, count: int, artificial: int | None) -> tuple[list[int], list[int]]:
    """Labels level by level, each placed by the last of its parents; and the size of each level.

    A label that is missing from the result is on or below a cycle.
    """
    starts = run_starts(edges[:, 0], count).tolist()
    below = edges[np.argsort(edges[:, 0], kind="stable"), 1].tolist()
    waiting_for = np.bincount(edges[:, 1], minlength=count).tolist()
    placed_first = dict.fromkeys(top.tolist())
    placed_first.update(dict.fromkeys(range(count)))
    level = [label for label in placed_first if not waiting_for[label] and label != artificial]
    order: list[int] = []
    sizes: list[int] = []
    while level:
        order += level
        sizes.append(len(level))
        following = []
        for label in level:
            for child in below[starts[label] : starts[label + 1]]:
                waiting_for[child] -= 1
                if not waiting_for[child]:
                    following.append(child)
        level = following
    return order, sizes
