"""Taxonomies to files that read back as the same taxonomy."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

from hitin.cells import csv_line
from hitin.compression import format_suffix
from hitin.errors import InputError, shown
from hitin.names import ROOT
from hitin.taxonomy.taxonomy import Taxonomy
from hitin.writing import write_text

WrittenFormat = Literal["auto", "hiagm", "edges", "json"]
_OTHERS = (".jsonl", ".parquet", ".xlsx", ".xls", ".xml", ".yaml", ".yml", ".toml", ".html", ".svg", ".dot")
"""What a file may be called that no one would look for lines with tabs in."""


def write_taxonomy(taxonomy: Taxonomy, path: str | Path, *, format: WrittenFormat = "auto", root: str = ROOT) -> None:
    """Write a taxonomy, or say why the format cannot hold it."""
    suffix = format_suffix(path)
    if format == "auto":
        if suffix in _OTHERS:
            problem = f"a taxonomy is not written as {suffix}"
            raise InputError(problem, kind="bad-option", file=str(path), remedy="Call it .tsv, .csv or .json.")
        format = "json" if suffix == ".json" else "edges" if suffix == ".csv" else "hiagm"
    if format not in ("hiagm", "edges", "json"):
        raise InputError(
            f"a taxonomy cannot be written as {shown(format)}",
            kind="bad-option",
            remedy="Choose hiagm, edges or json.",
        )
    with_commas = format == "edges" and suffix == ".csv"
    if format != "json":
        _refuse_unwritable(taxonomy, root, "" if with_commas else "\t\r\n", str(path))
    write_text(path, _WRITERS["csv" if with_commas else format](taxonomy, root))


def _refuse_unwritable(taxonomy: Taxonomy, root: str, forbidden: str, file: str) -> None:
    for label in taxonomy.labels:
        if label == root:
            problem = f"a label is called {shown(root)}, which this format keeps for the artificial root"
        elif any(char in label for char in forbidden):
            problem = f"the label {shown(label)} holds a tab or a line end, which this format cannot"
        else:
            continue
        raise InputError(problem, kind="unwritable", file=file, remedy="Write it as JSON.")


def _hiagm_lines(taxonomy: Taxonomy, root: str) -> Iterator[str]:
    yield from _family_lines(root, taxonomy.labels[: len(taxonomy.roots)])
    for parent, label in enumerate(taxonomy.labels):
        yield from _family_lines(label, [taxonomy.labels[child] for child in taxonomy.children(parent).tolist()])


def _family_lines(parent: str, children: Sequence[str], most: int = 10_000) -> Iterator[str]:
    """A parent with its children; a very large family goes over several lines, for the sake of line limits."""
    for start in range(0, len(children), most):
        yield "\t".join([parent, *children[start : start + most]]) + "\n"


def _edge_names(taxonomy: Taxonomy, root: str) -> Iterator[tuple[str, str]]:
    yield "parent", "child"
    for label in taxonomy.labels[: len(taxonomy.roots)]:
        yield root, label
    for parent, child in taxonomy.edges.tolist():
        yield taxonomy.labels[parent], taxonomy.labels[child]


def _edge_lines(taxonomy: Taxonomy, root: str) -> Iterator[str]:
    for parent, child in _edge_names(taxonomy, root):
        yield f"{parent}\t{child}\n"


def _csv_lines(taxonomy: Taxonomy, root: str) -> Iterator[str]:
    yield from map(csv_line, _edge_names(taxonomy, root))


def _json_lines(taxonomy: Taxonomy, _: str) -> Iterator[str]:
    """One label a line, its parents named: room for several parents and for any depth."""
    before = '{"labels": [\n'
    for number, label in enumerate(taxonomy.labels):
        parents = [taxonomy.labels[parent] for parent in taxonomy.parents(number).tolist()]
        yield before + json.dumps({"label": label, "parents": parents}, ensure_ascii=False)
        before = ",\n"
    yield "\n]}\n"


_WRITERS: dict[str, Callable[[Taxonomy, str], Iterator[str]]] = {
    "hiagm": _hiagm_lines,
    "edges": _edge_lines,
    "csv": _csv_lines,
    "json": _json_lines,
}
