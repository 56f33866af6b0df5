"""A table of labels as JSON: entries that have a name, an id mostly, and say by id or name what they stand under."""

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from hitin.errors import InputError, shown
from hitin.names import label_name
from hitin.taxonomy.builder import TaxonomyBuilder

_TOP = ("", "0", "-1")  # parents that tables write where there is none


class Entry(NamedTuple):
    name: str
    id: str | None
    parents: Sequence[object]
    """Ids or names; none at the top."""

    def key(self, by_id: bool) -> str:
        """What tells it from others; several entries of one key are one label with several parents."""
        return self.id if by_id and self.id is not None else self.name


class _Edge(NamedTuple):
    parent: str | None
    """A key; `None` is the top."""
    child: str


def add_entries(builder: TaxonomyBuilder, entries: Sequence[Entry]) -> None:
    """Add a table in the order it is written. Where all entries have ids, these say which are the same."""
    by_id = all(entry.id is not None for entry in entries)
    parents = _Parents(entries, by_id, builder.root)
    names = _names(entries, by_id)
    edges = [
        _Edge(parents.key_of(parent, entry, number), entry.key(by_id))
        for number, entry in enumerate(entries, start=1)
        for parent in entry.parents or (None,)
    ]
    labels: Mapping[str, str | None] = _called_by_paths(builder, names, edges) if by_id else names
    for parent, child in edges:
        label = labels[child]
        if label is not None:
            builder.add(None if parent is None else labels[parent], label)


def _names(entries: Sequence[Entry], by_id: bool) -> dict[str, str]:
    """The name of each key."""
    names: dict[str, str] = {}
    for number, entry in enumerate(entries, start=1):
        other = names.setdefault(entry.key(by_id), entry.name)
        if other != entry.name:
            raise InputError(
                f"entry {number}, {shown(entry.name)}, has the id {shown(entry.id)}, which is that of {shown(other)}",
                kind="bad-taxonomy",
                remedy="Give each label an id of its own.",
            )
    return names


class _Parents:
    """What parents mean: an id, or else a name, of the list; or the top."""

    def __init__(self, entries: Sequence[Entry], by_id: bool, root: str | None) -> None:
        self._root = root
        self._by_id = {entry.id: entry.key(by_id) for entry in entries if entry.id is not None}
        self._by_name: dict[str, set[str]] = defaultdict(set)
        for entry in entries:
            self._by_name[entry.name].add(entry.key(by_id))

    def key_of(self, parent: object, entry: Entry, number: int) -> str | None:
        """The key that an entry stands under; `None` for the top."""
        called = "" if parent is None or parent == "" else label_name(parent)
        keys = {self._by_id[called]} if called in self._by_id else self._by_name.get(called, set())
        if len(keys) == 1:
            return next(iter(keys))
        if not keys and (called in _TOP or called == self._root):
            return None
        wrong = "the name of several entries" if keys else "neither an id nor a name of the list"
        missing = "Add an entry for it, or write null where an entry stands at the top."
        raise InputError(
            f"the parent of entry {number}, {shown(entry.name)}, is {wrong}: {shown(parent)}",
            kind="bad-taxonomy",
            remedy="Write the parent's id." if keys else missing,
        )


def _called_by_paths(
    builder: TaxonomyBuilder, names: Mapping[str, str], edges: Sequence[_Edge]
) -> dict[str, str | None]:
    """What the label of each key is called below the first of its parents; `None` for the artificial root.

    What is on or below a cycle keeps its name: the builder, which is given all edges, tells of the cycle.
    """
    first: dict[str, str | None] = {}
    for parent, child in edges:
        first.setdefault(child, parent)
    below: dict[str | None, list[str]] = defaultdict(list)
    for child, parent in first.items():
        below[parent].append(child)
    labels: dict[str, str | None] = dict(names)
    waiting: deque[tuple[str | None, str | None]] = deque([(None, None)])
    while waiting:
        above, label = waiting.popleft()
        for key in below[above]:
            labels[key] = builder.named_below(label, names[key])
            waiting.append((key, labels[key]))
    return labels
