"""`Taxonomy`: the labels, which stands under which, and the arrays that everything else computes with."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hitin.errors import InputError, counted, shown
from hitin.names import ROOT, composed, label_name

if TYPE_CHECKING:
    from hitin.taxonomy.builder import Homonyms
    from hitin.taxonomy.reading import Format
    from hitin.taxonomy.writing import WrittenFormat

Ids = NDArray[np.int64]
Number = TypeVar("Number", bound=np.generic)

_AN_EDGE = 'Write [("A", "B"), ("A", "C")], where A stands above B and C.'
_A_PATH = 'Write [["A", "B"], ["A", "C"]], or read a file of paths with Taxonomy.read.'


class Taxonomy:
    """Labels with one or several parents: a tree, a forest or a directed acyclic graph.

    Labels are numbered level by level from the top, siblings together and in the order they were given, so
    a parent's number is always smaller than its children's, each level is one run of numbers, and the same
    taxonomy gets the same numbers from every file format. A label's level is 1 at the top and otherwise one
    more than that of its deepest parent.

    Build one with `read`, `from_edges`, `from_paths` or `from_nested`. It does not change afterwards.
    """

    def __init__(self, labels: Iterable[str], edges: Ids, level_sizes: Iterable[int]) -> None:
        """`edges` is an (m, 2) array of parent and child numbers; both orders of the class must hold."""
        self.labels: tuple[str, ...] = tuple(labels)
        self.level_sizes: tuple[int, ...] = tuple(level_sizes)
        self.edges: Ids = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
        by_child = self.edges[np.lexsort((self.edges[:, 0], self.edges[:, 1]))]
        self.child_starts: Ids = run_starts(self.edges[:, 0], len(self.labels))
        self.child_ids: Ids = np.ascontiguousarray(self.edges[:, 1])
        self.parent_starts: Ids = run_starts(by_child[:, 1], len(self.labels))
        self.parent_ids: Ids = np.ascontiguousarray(by_child[:, 0])
        for array in (self.edges, self.child_starts, self.child_ids, self.parent_starts, self.parent_ids):
            _frozen(array)

    def __reduce__(self) -> tuple[type["Taxonomy"], tuple[object, ...]]:
        return Taxonomy, (self.labels, np.array(self.edges), self.level_sizes)

    @classmethod
    def read(
        cls,
        path: str | Path,
        *,
        format: "Format" = "auto",
        separator: str | None = None,
        root: str | None = ROOT,
        homonyms: "Homonyms" = "merge",
        encoding: str | None = None,
    ) -> "Taxonomy":
        """Read a file: `parent TAB child TAB child ...`, two columns, nested JSON, or one path a line.

        The format is recognised unless named. `homonyms` says what the same name under two parents is in
        paths and JSON with nesting or ids: one label with two parents (`merge`), or two labels (`separate`), each
        of which is then called by its whole path, `A > B`.
        """
        from hitin.taxonomy.reading import read_taxonomy

        reading = read_taxonomy(
            path, format=format, separator=separator, root=root, homonyms=homonyms, encoding=encoding
        )
        reading.warn()
        return reading.taxonomy

    @classmethod
    def from_edges(
        cls, edges: Iterable[Iterable[object]], *, labels: Iterable[object] = (), root: str | None = ROOT
    ) -> "Taxonomy":
        """From `(parent, child)` pairs of names. A parent of `None` is the top; `labels` adds lone labels."""
        from hitin.taxonomy.builder import TaxonomyBuilder

        builder = TaxonomyBuilder(root=root)
        for edge in _several(edges, "edges are a list of pairs of names", _AN_EDGE):
            parent, child = _pair(edge)
            builder.add(None if parent is None else label_name(parent), label_name(child))
        for label in _several(labels, "labels are a list of names", 'Write ["A", "B"].'):
            builder.label(label_name(label))
        return builder.build()

    @classmethod
    def from_paths(
        cls, paths: Iterable[Iterable[object]], *, homonyms: "Homonyms" = "merge", root: str | None = ROOT
    ) -> "Taxonomy":
        """From paths, each a sequence of names from the top down."""
        from hitin.taxonomy.builder import TaxonomyBuilder

        builder = TaxonomyBuilder(homonyms=homonyms, root=root)
        for path in _several(paths, "paths are a list of lists of names", _A_PATH):
            names = _several(path, "a path is a list of names", _A_PATH, (str, bytes, Mapping))
            builder.add_path([label_name(name) for name in names])
        return builder.build()

    @classmethod
    def from_nested(
        cls,
        nested: Mapping[str, object] | Sequence[object],
        *,
        homonyms: "Homonyms" = "merge",
        root: str | None = ROOT,
    ) -> "Taxonomy":
        """From nested mappings and lists: `{"A": {"B": {}, "C": ["D"]}}`, `{"name": ..., "children": [...]}`."""
        from hitin.taxonomy.builder import TaxonomyBuilder
        from hitin.taxonomy.nested import add_nested

        builder = TaxonomyBuilder(homonyms=homonyms, root=root)
        add_nested(builder, nested)
        return builder.build()

    def write(self, path: str | Path, *, format: "WrittenFormat" = "auto", root: str = ROOT) -> None:
        """Write `parent TAB children` (the default), two columns (`edges`; the default for `.csv`) or JSON."""
        from hitin.taxonomy.writing import write_taxonomy

        write_taxonomy(self, path, format=format, root=root)

    def __len__(self) -> int:
        return len(self.labels)

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels)

    def __contains__(self, label: object) -> bool:
        return isinstance(label, str) and composed(label) in self._index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Taxonomy):
            return NotImplemented
        return self.labels == other.labels and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        kind = "tree" if self.is_tree else "DAG"
        return f"Taxonomy({counted(len(self), 'label')}, {counted(self.depth, 'level')}, {kind})"

    def index(self, label: str) -> int:
        """The number of a label; `KeyError` when there is none."""
        return self._index[composed(label)]

    def parents(self, label: int) -> Ids:
        """Numbers of the labels right above."""
        return self.parent_ids[self.parent_starts[label] : self.parent_starts[label + 1]]

    def children(self, label: int) -> Ids:
        """Numbers of the labels right below."""
        return self.child_ids[self.child_starts[label] : self.child_starts[label + 1]]

    def ancestors(self, label: int) -> tuple[int, ...]:
        """Numbers of all labels above, from the top down."""
        return self.closure((label,))[:-1]

    def closure(self, labels: Iterable[int]) -> tuple[int, ...]:
        """The labels and all their ancestors, in order."""
        starts, above = self._parent_lists
        closed = {int(label) for label in labels}
        if closed and not 0 <= min(closed) <= max(closed) < len(self.labels):
            raise IndexError(f"labels are numbered from 0 to {len(self.labels) - 1}")
        waiting = list(closed)
        while waiting:
            label = waiting.pop()
            for parent in above[starts[label] : starts[label + 1]]:
                if parent not in closed:
                    closed.add(parent)
                    waiting.append(parent)
        return tuple(sorted(closed))

    def deepest(self, closed: Iterable[int]) -> tuple[int, ...]:
        """Of labels that include all their ancestors, those above none of the others: the ends of the paths."""
        starts, above = self._parent_lists
        labels = list(closed)
        inner = {parent for label in labels for parent in above[starts[label] : starts[label + 1]]}
        return tuple([label for label in labels if label not in inner])

    @property
    def depth(self) -> int:
        """The number of levels."""
        return len(self.level_sizes)

    @cached_property
    def _hash(self) -> int:
        return hash((self.labels, self.edges.tobytes()))

    @cached_property
    def levels(self) -> NDArray[np.int32]:
        """The level of each label, 1 at the top."""
        return _frozen(np.repeat(np.arange(1, self.depth + 1, dtype=np.int32), self.level_sizes))

    @property
    def roots(self) -> Ids:
        """Numbers of the labels without a parent."""
        return np.arange(self.level_sizes[0], dtype=np.int64)

    @cached_property
    def leaves(self) -> Ids:
        """Numbers of the labels without children."""
        return _frozen(np.flatnonzero(self.child_counts == 0))

    @cached_property
    def child_counts(self) -> Ids:
        return _frozen(np.diff(self.child_starts))

    @cached_property
    def parent_counts(self) -> Ids:
        return _frozen(np.diff(self.parent_starts))

    @property
    def is_tree(self) -> bool:
        """Whether no label has several parents (a forest counts: its top is the artificial root)."""
        return bool(self.parent_counts.max() <= 1)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {label: number for number, label in enumerate(self.labels)}

    @cached_property
    def _parent_lists(self) -> tuple[list[int], list[int]]:
        """The parent arrays as lists, which are several times faster to look up one by one."""
        return self.parent_starts.tolist(), self.parent_ids.tolist()


def _several(values: object, message: str, remedy: str, others: tuple[type, ...] = (str, bytes)) -> Iterable[Any]:
    """Values that can be gone through, but not those `others`, of which Python gives letters or keys."""
    if isinstance(values, others) or not isinstance(values, Iterable):
        raise InputError(f"{message}, not {shown(values)}", kind="bad-taxonomy", remedy=remedy)
    return values


def _pair(edge: object) -> tuple[object, object]:
    message = "an edge is a pair of names, parent and child"
    names = tuple(_several(edge, message, _AN_EDGE, (str, bytes, Mapping)))
    if len(names) != 2:
        raise InputError(f"{message}, not {shown(edge)}", kind="bad-taxonomy", remedy=_AN_EDGE)
    return names


def _frozen(array: NDArray[Number]) -> NDArray[Number]:
    array.setflags(write=False)
    return array


def run_starts(owners: Ids, count: int) -> Ids:
    """Where the run of each owner begins in a sorted array of owners, and the end of the last."""
    starts = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.bincount(owners, minlength=count), out=starts[1:])
    return starts
