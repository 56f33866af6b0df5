"""Taxonomies as JSON: nested objects and lists, objects with a name and children, pairs, and the flat form."""

import json
from collections import deque
from collections.abc import Iterator, Mapping

from hitin.errors import InputError, listed, shown
from hitin.files import Source
from hitin.names import label_name
from hitin.taxonomy.builder import TaxonomyBuilder

NAME_KEYS = ("name", "label", "title", "id")


class Pairs(list[tuple[str, object]]):
    """A JSON object with all its members, also where a key comes twice."""


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
            remedy="One JSON value is expected. Documents come after the taxonomy on the command line."
            if error.msg == "Extra data"
            else "If the file is not JSON, name its format with --format.",
        ) from error
    except (RecursionError, ValueError) as error:
        raise source.error(
            f"the JSON cannot be read ({error})",
            kind="broken-json",
            remedy="Write a very deep taxonomy as 'parent TAB child' lines instead.",
        ) from error
    if not (_add_flat(builder, value) or _add_edges(builder, value)):
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
        for parent in parents if isinstance(parents, list) else [parents]:
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


def _objects(value: object) -> list[dict[str, object]] | None:
    """The entries of a list of objects; `None` for anything else."""
    if not isinstance(value, list) or isinstance(value, Pairs) or not value:
        return None
    return [dict(entry) for entry in value] if all(isinstance(entry, Pairs) for entry in value) else None


def add_nested(builder: TaxonomyBuilder, value: object) -> None:
    """Add nested mappings and lists. A leaf is a name in a list, or a name with nothing under it."""
    waiting: deque[tuple[str | None, object]] = deque([(None, value)])
    while waiting:
        above, value = waiting.popleft()
        if isinstance(value, list | tuple) and not isinstance(value, Pairs):
            for entry in value:
                if isinstance(entry, Pairs | Mapping | list | tuple):
                    waiting.append((above, entry))
                else:
                    builder.add_below(above, label_name(entry))
        else:
            for name, below in _members(above, value):
                waiting.append((builder.add_below(above, label_name(name)), below))


def _members(above: str | None, value: object) -> Iterator[tuple[object, object]]:
    """The names right inside an object, with what stands under each."""
    if value is None or value == "":
        return
    if not isinstance(value, Pairs | Mapping):
        where = f"under {shown(above)}" if above is not None else "at the top"
        raise InputError(
            f"what stands {where} must be an object or a list of names, not {shown(value)}",
            kind="bad-taxonomy",
            remedy='Write {"A": {"B": {}}}, {"A": ["B"]} or {"name": "A", "children": [...]}.',
        )
    members = dict(value)
    name = next((members[key] for key in NAME_KEYS if key in members), None)
    if isinstance(name, str | int | float) and not isinstance(name, bool):
        yield name, _children(name, members)
    else:
        yield from members.items() if isinstance(value, Mapping) else value


def _children(name: object, members: dict[str, object]) -> object:
    """What stands under a named object; nothing may be lost because it has another key."""
    if "children" not in members:
        others = [key for key, value in members.items() if isinstance(value, list | Mapping) and value]
        if others:
            raise InputError(
                f"the object of {shown(name)} has no 'children', but {listed(others)}",
                kind="bad-taxonomy",
                remedy="Call the key that holds what stands under a label 'children'.",
            )
    return members.get("children")
