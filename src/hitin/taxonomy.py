"""`Taxonomy`: the labels, which stands under which, and the arrays that everything else computes with."""

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hitin.errors import InputError

if TYPE_CHECKING:
    from hitin.taxonomy_formats import Format, Homonyms

Ids = NDArray[np.int64]

ROOT = "Root"
"""A parent of this name is the artificial root that many files write; it is never a label."""

PATH_SEPARATOR = " > "

_TOP = -1  # the parent of what has none


class Taxonomy:
    """Labels with one or several parents: a tree, a forest or a directed acyclic graph.

    Labels are numbered level by level from the top, siblings together and in the order they were given, so
    a parent's number is always smaller than its children's, each level is one run of numbers, and the same
    taxonomy gets the same numbers from every file format. A label's level is 1 at the top and otherwise one
    more than that of its deepest parent.

    Build one with `read`, `from_edges`, `from_paths` or `from_nested`.
    """

    def __init__(self, labels: Iterable[str], edges: Ids, level_sizes: Iterable[int]) -> None:
        """`edges` is an (m, 2) array of parent and child numbers; both orders of the class must hold."""
        self.labels: tuple[str, ...] = tuple(labels)
        self.level_sizes: tuple[int, ...] = tuple(level_sizes)
        self.edges: Ids = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
        by_child = self.edges[np.lexsort((self.edges[:, 0], self.edges[:, 1]))]
        self._child_start = _starts(self.edges[:, 0], len(self.labels))
        self._parent_start = _starts(by_child[:, 1], len(self.labels))
        self._parent_ids = np.ascontiguousarray(by_child[:, 0])

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        format: "Format" = "auto",
        separator: str | None = None,
        root: str = ROOT,
        homonyms: "Homonyms" = "merge",
        encoding: str | None = None,
    ) -> "Taxonomy":
        """Read a file: `parent TAB child TAB child ...`, two columns, nested JSON, or one path a line.

        The format is recognised unless named. `homonyms` says what the same name under two parents is in
        paths and nested JSON: one label with two parents (`merge`), or two labels (`separate`), each of which
        is then called by its whole path, `A > B`.
        """
        from hitin.taxonomy_formats import read_taxonomy

        reading = read_taxonomy(
            path, format=format, separator=separator, root=root, homonyms=homonyms, encoding=encoding
        )
        reading.warn()
        return reading.taxonomy

    @classmethod
    def from_edges(
        cls, edges: Iterable[tuple[object, object]], *, labels: Iterable[object] = (), root: str | None = ROOT
    ) -> "Taxonomy":
        """From `(parent, child)` pairs of names. A parent of `None` is the top; `labels` adds lone labels."""
        builder = TaxonomyBuilder(root=root)
        for parent, child in edges:
            builder.add(None if parent is None else label_name(parent), label_name(child))
        for label in labels:
            builder.label(label_name(label))
        return builder.build()

    @classmethod
    def from_paths(
        cls, paths: Iterable[Iterable[object]], *, homonyms: "Homonyms" = "merge", root: str = ROOT
    ) -> "Taxonomy":
        """From paths, each a sequence of names from the top down."""
        builder = TaxonomyBuilder(whole_paths=homonyms == "separate", root=root)
        for path in paths:
            builder.add_path([label_name(name) for name in path])
        return builder.build()

    @classmethod
    def from_nested(
        cls, nested: Mapping[str, object] | list[object], *, homonyms: "Homonyms" = "merge", root: str = ROOT
    ) -> "Taxonomy":
        """From nested mappings and lists, `{"A": {"B": {}, "C": ["D"]}}`, or `{"name": ..., "children": [...]}`."""
        from hitin.taxonomy_formats import add_nested

        builder = TaxonomyBuilder(whole_paths=homonyms == "separate", root=root)
        add_nested(builder, nested)
        return builder.build()

    def write(self, path: str | Path, *, format: "Format" = "auto", root: str = ROOT) -> None:
        """Write `parent TAB children` (the default), two columns (`edges`; the default for `.csv`) or JSON."""
        from hitin.taxonomy_formats import write_taxonomy

        write_taxonomy(self, path, format=format, root=root)

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __contains__(self, label: object) -> bool:
        return label in self._index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return self.labels == other.labels and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((self.labels, self.edges.tobytes()))

    def __repr__(self) -> str:
        kind = "tree" if self.is_tree else "DAG"
        return f"Taxonomy({len(self):,} labels, {self.depth} levels, {kind})"

    def index(self, label: str) -> int:
        """The number of a label; `KeyError` when there is none."""
        return self._index[label]

    def parents(self, label: int) -> Ids:
        """Numbers of the labels right above."""
        return self._parent_ids[self._parent_start[label] : self._parent_start[label + 1]]

    def children(self, label: int) -> Ids:
        """Numbers of the labels right below."""
        return self.edges[self._child_start[label] : self._child_start[label + 1], 1]

    def ancestors(self, label: int) -> tuple[int, ...]:
        """Numbers of all labels above, from the top down."""
        return self.closure((label,))[:-1]

    def closure(self, labels: Iterable[int]) -> tuple[int, ...]:
        """The labels and all their ancestors, in order."""
        start, above = self._parent_lists
        closed = set(labels)
        waiting = list(closed)
        while waiting:
            label = waiting.pop()
            for parent in above[start[label] : start[label + 1]]:
                if parent not in closed:
                    closed.add(parent)
                    waiting.append(parent)
        return tuple(sorted(closed))

    def deepest(self, closed: Iterable[int]) -> tuple[int, ...]:
        """Of labels that include all their ancestors, those above none of the others: the ends of the paths."""
        start, above = self._parent_lists
        labels = list(closed)
        inner = {parent for label in labels for parent in above[start[label] : start[label + 1]]}
        return tuple([label for label in labels if label not in inner])

    @property
    def depth(self) -> int:
        """The number of levels."""
        return len(self.level_sizes)

    @cached_property
    def levels(self) -> NDArray[np.int32]:
        """The level of each label, 1 at the top."""
        return np.repeat(np.arange(1, self.depth + 1, dtype=np.int32), self.level_sizes)

    @property
    def roots(self) -> Ids:
        """Numbers of the labels without a parent."""
        return np.arange(self.level_sizes[0])

    @cached_property
    def leaves(self) -> Ids:
        """Numbers of the labels without children."""
        return np.flatnonzero(np.diff(self._child_start) == 0)

    @cached_property
    def child_counts(self) -> Ids:
        return np.diff(self._child_start)

    @cached_property
    def parent_counts(self) -> Ids:
        return np.diff(self._parent_start)

    @property
    def is_tree(self) -> bool:
        """Whether no label has several parents (a forest counts: its top is the artificial root)."""
        return bool(self.parent_counts.max() <= 1)

    def path(self, label: int) -> str:
        """The names from the top to the label, `A > B > C`, through the first parent each time."""
        names = [self.labels[label]]
        while self.parent_counts[label]:
            label = int(self.parents(label)[0])
            names.append(self.labels[label])
        return PATH_SEPARATOR.join(reversed(names))

    @cached_property
    def _index(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.labels)}

    @cached_property
    def _parent_lists(self) -> tuple[list[int], list[int]]:
        """The parent arrays as lists, which are several times faster to look up one by one."""
        return self._parent_start.tolist(), self._parent_ids.tolist()


class TaxonomyBuilder:
    """Collects names and edges in the order they are met, then numbers, checks and freezes them.

    With `whole_paths` a label that comes in a path is called by the path, so that the same name under two
    parents is two labels. After `build`, `repeated` holds the edges that were given before (line, parent,
    child) and `homonyms` the names that stand under several parents, the top being one.
    """

    def __init__(self, *, whole_paths: bool = False, root: str | None = ROOT, file: str | None = None) -> None:
        self.repeated: list[tuple[int, str, str]] = []
        self.homonyms: list[str] = []
        self.names: dict[str, int] = {}
        self._whole_paths = whole_paths
        self.root = root
        self._file = file
        self._parents = array("q")
        self._children = array("q")
        self._lines = array("q")
        self._last_names: Counter[str] = Counter()

    def label(self, name: str) -> int:
        """The provisional number of a name."""
        return self.names.setdefault(name, len(self.names))

    def add(self, parent: str | None, child: str, line: int = 0) -> None:
        """An edge; a parent of `None` puts the child at the top."""
        self._parents.append(_TOP if parent is None else self.label(parent))
        self._children.append(self.label(child))
        self._lines.append(line)

    def add_below(self, above: str | None, name: str, line: int = 0) -> str | None:
        """One step of a path: the label of `name` under the label `above`. The artificial root is no step."""
        if above is None and name == self.root:
            return None
        label = f"{above}{PATH_SEPARATOR}{name}" if self._whole_paths and above is not None else name
        if self._whole_paths and label not in self.names:
            self._last_names[name] += 1
        self.add(above, label, line)
        return label

    def add_path(self, names: Iterable[str], line: int = 0) -> None:
        """All steps of a path from the top down."""
        above: str | None = None
        for name in names:
            above = self.add_below(above, name, line)

    def build(self, *, remedy: str = "") -> Taxonomy:
        """The finished taxonomy, or an `InputError` for a loop, a cycle, or no label at all."""
        parents = np.array(self._parents, dtype=np.int64)
        children = np.array(self._children, dtype=np.int64)
        self._refuse_self_loops(parents, children)
        root = self._artificial_root(parents, children)
        if root is not None:
            parents[parents == root] = _TOP
        count = len(self.names) - (root is not None)
        if count == 0:
            raise InputError("there is no label in the taxonomy", kind="no-labels", file=self._file)

        first, again = _first_occurrences((parents + 1) * len(self.names) + children)
        edges = np.stack([parents, children], axis=1)[first]
        names = list(self.names)
        self.repeated = [self._described(at, names) for at in again.tolist()]
        self.homonyms = self._several_places(edges, names)

        top, edges = edges[edges[:, 0] == _TOP, 1], edges[edges[:, 0] != _TOP]
        order, level_sizes = _level_order(edges, top, len(names), root)
        if len(order) < count:
            raise self._cycle(edges, order, names, remedy)
        number = np.full(len(names), -1, dtype=np.int64)
        number[order] = np.arange(count)
        return Taxonomy((names[old] for old in order), number[edges], level_sizes)

    def _refuse_self_loops(self, parents: Ids, children: Ids) -> None:
        for at in np.flatnonzero(parents == children)[:1].tolist():
            raise InputError(
                f"the label {list(self.names)[children[at]]!r} is its own parent",
                kind="self-loop",
                file=self._file,
                line=self._lines[at],
                remedy="Remove this edge, or give parent and child different names.",
            )

    def _artificial_root(self, parents: Ids, children: Ids) -> int | None:
        """The number of the artificial root, if it is among the names: a label of ours stands above none."""
        root = self.names.get(self.root) if self.root is not None else None
        if root is None or np.any((children == root) & (parents != _TOP)):
            return None
        return root

    def _described(self, edge: int, names: list[str]) -> tuple[int, str, str]:
        parent = self._parents[edge]
        above = names[parent] if parent != _TOP else self.root or ROOT
        return self._lines[edge], above, names[self._children[edge]]

    def _several_places(self, edges: Ids, names: list[str]) -> list[str]:
        if self._whole_paths:
            return [name for name, places in self._last_names.items() if places > 1]
        return [names[at] for at in np.flatnonzero(np.bincount(edges[:, 1], minlength=len(names)) > 1)]

    def _cycle(self, edges: Ids, order: list[int], names: list[str], remedy: str) -> InputError:
        """The error that prints one cycle among the labels that could not be placed."""
        loose = np.ones(len(self.names), dtype=bool)
        loose[order] = False
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
        shown = [names[label] for label in cycle]
        if len(shown) > 12:
            shown = [*shown[:6], f"... {len(shown) - 12:,} more ...", *shown[-6:]]
        return InputError(
            f"the labels form a cycle: {PATH_SEPARATOR.join(shown)}",
            kind="cycle",
            file=self._file,
            line=self._line_of(cycle[0], cycle[1]),
            remedy=" ".join(["Remove one of these edges: a label cannot stand above itself.", remedy]).strip(),
        )

    def _line_of(self, parent: int, child: int) -> int | None:
        pairs = zip(self._parents, self._children, self._lines, strict=True)
        return next((line for above, below, line in pairs if (above, below) == (parent, child)), None)


def label_name(value: object) -> str:
    """A label's name from text or a number: as given, less blanks around it, which are never part of a name."""
    if hasattr(value, "item"):  # a NumPy scalar
        value = value.item()
    if isinstance(value, float) and value.is_integer():  # 3.0 where a table had to make room for a gap
        value = int(value)
    if isinstance(value, bool) or not (isinstance(value, str | int) or _is_finite(value)):
        raise InputError(f"a label must be text or a number, not {shown(value)}", kind="bad-label")
    name = str(value).strip()
    if not name:
        raise InputError("a label's name is empty", kind="bad-label", remedy="Give it a name.")
    if not name.isascii() and any("\ud800" <= char <= "\udfff" for char in name):
        raise InputError(f"the label {name!r} holds half a character", kind="bad-label")
    return name


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and isfinite(value)


def shown(value: object) -> str:
    """A value as an error message shows it: its beginning."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _starts(owners: Ids, count: int) -> Ids:
    """Where the run of each owner begins in a sorted array of owners, and the end of the last."""
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=starts[1:])
    return starts


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
    start = _starts(edges[:, 0], count).tolist()
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
            for child in below[start[label] : start[label + 1]]:
                waiting_for[child] -= 1
                if not waiting_for[child]:
                    following.append(child)
        level = following
    return order, sizes
