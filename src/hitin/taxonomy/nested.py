"""Taxonomies as JSON: nested objects and lists, objects with a name and children, pairs, and the flat form."""

import json
from collections.abc import Mapping
from typing import NamedTuple

from hitin.errors import InputError, listed, shown
from hitin.files import Source
from hitin.names import label_name
from hitin.taxonomy.builder import TaxonomyBuilder
from hitin.taxonomy.entries import Entry, add_entries

NAME_KEYS = ("name", "label", "title", "id")
PARENT_KEYS = ("parent", "parents", "parent_id")


class Pairs(list[tuple[str, object]]):
    """A JSON object with all its members, also where a key comes twice."""


_CONTAINERS = (Pairs, Mapping, list, tuple)


def read_json(builder: TaxonomyBuilder, source: Source) -> None:
    """Add a JSON file of any of the shapes."""
    text = source.text()
    try:
        value = json.loads(text, object_pairs_hook=Pairs)
    except json.JSONDecodeError as error:
        raise source.error(
            f"the JSON is broken: {error.msg} at column {error.colno}",
            kind="broken-json",
            line=error.lineno,
            remedy="One JSON value is expected. Documents come after the taxonomy on the command line. "
            "If labels are paths, hitin taxonomy DOCUMENTS makes one."
            if error.msg == "Extra data"
            else "If the file is not JSON, name its format with --format.",
        ) from error
    except (RecursionError, ValueError) as error:
        raise source.error(
            f"the JSON cannot be read ({error})",
            kind="broken-json",
            remedy="Write a very deep taxonomy as 'parent TAB child' lines instead.",
        ) from error
    if not (_add_flat(builder, value) or _add_edges(builder, value) or _add_table(builder, value)):
        add_nested(builder, value)


def _add_flat(builder: TaxonomyBuilder, value: object) -> bool:
    """`{"labels": [{"label": ..., "parents": [...]}, ...]}`, which `Taxonomy.write` makes."""
    members = dict(value) if isinstance(value, Pairs) else {}
    entries = _objects(members.get("labels")) if len(members) == 1 else None
    if entries is None or not all(entry.keys() == {"label", "parents"} for entry in entries):
        return False
    for entry in entries:
        label, parents = label_name(entry["label"]), entry["parents"]
        builder.label(label)
        for parent in _as_list(parents):
            builder.add(label_name(parent), label)
    builder.root = None  # parents are named one by one here, so any name may be a label
    return True


def _add_edges(builder: TaxonomyBuilder, value: object) -> bool:
    """`[{"parent": ..., "child": ...}, ...]`."""
    entries = _objects(value)
    if entries is None or not all({"parent", "child"} <= entry.keys() for entry in entries):
        return False
    for entry in entries:
        parent = entry["parent"]
        builder.add(None if parent in (None, "") else label_name(parent), label_name(entry["child"]))
    return True


def _add_table(builder: TaxonomyBuilder, value: object) -> bool:
    """`[{"id": ..., "name": ..., "parent": ...}, ...]`, a table of labels that name their parents, or their ids."""
    entries = _objects(value)
    key = next((key for key in PARENT_KEYS if entries and _is_table(entries, key)), None)
    if not entries or key is None:
        return False
    add_entries(builder, [_entry(entry, entry.get(key)) for entry in entries])
    return True


def _is_table(entries: list[dict[str, object]], key: str) -> bool:
    """Whether entries name their parents by this key, those at the top perhaps none, and do not hold one another."""
    nested = any(isinstance(each, _CONTAINERS) for entry in entries for each in _as_list(entry.get("children")))
    has_key = [key in entry for entry in entries]
    has_others = any("children" in entry for entry in entries)
    named = all(_name(entry) is not None for entry in entries)
    return named and not nested and (all(has_key) or (any(has_key) and not has_others))


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) and not isinstance(value, Pairs) else [value]


def _entry(members: Mapping[str, object], above: object) -> Entry:
    own = _scalar(members.get("id"))
    return Entry(label_name(_name(members)), None if own in (None, "") else label_name(own), _as_list(above))


def _objects(value: object) -> list[dict[str, object]] | None:
    """The entries of a list of objects; `None` for anything else."""
    if not isinstance(value, list) or isinstance(value, Pairs) or not value:
        return None
    return [dict(entry) for entry in value] if all(isinstance(entry, Pairs) for entry in value) else None


def _name(members: Mapping[str, object]) -> object:
    """The name of an object that has one; `None` for an object whose keys are names."""
    return _scalar(next((members[key] for key in NAME_KEYS if key in members), None))


def _scalar(value: object) -> object:
    """What may be a name; `None` for anything else."""
    return value if isinstance(value, str | int | float) and not isinstance(value, bool) else None


class _Member(NamedTuple):
    """A name, and what stands under it."""

    name: object
    below: object


def add_nested(builder: TaxonomyBuilder, value: object) -> None:
    """Add nested mappings and lists in the order they are written. A leaf is a name with nothing under it."""
    waiting: list[tuple[str | None, object]] = [(None, value)]
    while waiting:
        above, value = waiting.pop()
        if isinstance(value, _Member):
            waiting.append((builder.add_below(above, label_name(value.name)), value.below))
        elif isinstance(value, list | tuple) and not isinstance(value, Pairs):
            entries = [each if isinstance(each, _CONTAINERS) else _Member(each, None) for each in value]
            waiting += [(above, entry) for entry in reversed(entries)]
        else:
            waiting += [(above, member) for member in reversed(_members(above, value))]


def _members(above: str | None, value: object) -> list[_Member]:
    """The names right inside an object, with what stands under each."""
    if value is None or value == "":
        return []
    if not isinstance(value, Pairs | Mapping):
        where = f"under {shown(above)}" if above is not None else "at the top"
        raise InputError(
            f"what stands {where} must be an object or a list of names, not {shown(value)}",
            kind="bad-taxonomy",
            remedy='Write {"A": {"B": {}}}, {"A": ["B"]} or {"name": "A", "children": [...]}.',
        )
    members = dict(value)
    name = _name(members)
    if name is not None:
        return [_Member(name, _children(name, members))]
    return [_Member(*pair) for pair in (value.items() if isinstance(value, Mapping) else value)]


def _children(name: object, members: dict[str, object]) -> object:
    """What stands under a named object; nothing may be lost because it has another key."""
    others = [key for key, value in members.items() if key != "children" and _may_hold_labels(value, members)]
    if others:
        raise InputError(
            f"the object of {shown(name)} may have labels under {listed(others)}, where none are looked for",
            kind="bad-taxonomy",
            remedy="Call the key that holds what stands under a label 'children', or remove the others.",
        )
    return members.get("children")


def _may_hold_labels(value: object, members: dict[str, object]) -> bool:
    """Whether a value beside a name is an object, or a list that is not plainly something else than children."""
    if isinstance(value, Pairs | Mapping):
        return bool(value)
    if not isinstance(value, list):
        return False
    return any(isinstance(entry, _CONTAINERS) for entry in value) or (bool(value) and "children" not in members)
