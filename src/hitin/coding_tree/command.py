"""What `hitin tree` does: read a taxonomy, build its coding tree, write it in the formats asked for."""

import json
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from hitin.coding_tree.construction import Method, coding_tree
from hitin.coding_tree.running import LARGE, can_compile
from hitin.coding_tree.tree import CodingTree
from hitin.coding_tree.writing import shown_layers
from hitin.compression import format_suffix
from hitin.errors import InputError, counted, printable
from hitin.files import is_same
from hitin.names import ROOT
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.builder import Homonyms
from hitin.taxonomy.reading import Format
from hitin.writing import check_writable, write_text


@dataclass(frozen=True)
class BuiltTree:
    """A coding tree, where it came from, how long it took and where it went."""

    file: str
    tree: CodingTree
    seconds: float
    written: tuple[str, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        return {
            "taxonomy": self.file,
            "vertices": self.tree.vertices,
            "height": self.tree.height,
            "method": self.tree.method,
            "flat_entropy": self.tree.flat_entropy,
            "entropy": self.tree.entropy,
            "layer_sizes": list(self.tree.layer_sizes),
            "seconds": self.seconds,
            "written": list(self.written),
        }


def build_tree(
    file: str,
    *,
    height: int = 2,
    method: Method = "optimal",
    out: Iterable[str] = (),
    with_root: bool = False,
    seed: int = 0,
    format: Format = "auto",
    separator: str | None = None,
    root: str | None = ROOT,
    homonyms: Homonyms = "merge",
    encoding: str | None = None,
) -> BuiltTree:
    """Read, build and write; the files are those of `out`, in the format that their names end in."""
    writers = {name: _writer(name, file) for name in out}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        taxonomy = Taxonomy.read(
            file, format=format, separator=separator, root=root, homonyms=homonyms, encoding=encoding
        )
    told = [str(warning.message) for warning in caught]
    if len(taxonomy) + len(taxonomy.edges) >= LARGE and method != "random" and not can_compile():
        told.append(f"{len(taxonomy):,} labels are built some ten times faster with numba: pip install 'hitin[fast]'")
    start = time.perf_counter()
    tree = coding_tree(taxonomy, height, method, with_root=with_root, seed=seed)
    seconds = time.perf_counter() - start
    for name, writer in writers.items():
        write_text(name, [writer(tree, taxonomy, file)])
    return BuiltTree(file, tree, seconds, tuple(writers), tuple(told))


def show_tree(built: BuiltTree) -> str:
    """A few lines for people."""
    tree = built.tree
    less = f", {tree.saved:z.1%} less" if tree.flat_entropy > 0 and tree.height > 1 else ""
    duration = f"{built.seconds:.2f} s" if built.seconds >= 1 else f"{1000 * built.seconds:.1f} ms"
    rows = [
        ("H^1", f"{tree.flat_entropy:.4f} bits"),
        (f"H^{tree.height}", f"{tree.entropy:.4f} bits{less}"),
        ("nodes", " > ".join(shown_layers(tree))),
        ("time", duration),
        *(("written", printable(name, most=1000)) for name in built.written),
    ]
    title = f"coding tree of {counted(tree.vertices, 'vertex', 'vertices')}, height {tree.height}, method {tree.method}"
    return "\n".join([title, *(f"  {name:<9}{value}" for name, value in (rows if tree.height > 1 else rows[1:]))])


Writer = Callable[[CodingTree, Taxonomy, str], str]

WRITERS: dict[str, Writer] = {
    ".html": lambda tree, taxonomy, file: tree.to_html(taxonomy, title=f"Coding tree of {Path(file).name}"),
    ".svg": lambda tree, *_: tree.to_svg(),
    ".json": lambda tree, *_: json.dumps(tree.to_json(), ensure_ascii=False) + "\n",
    ".dot": lambda tree, *_: tree.to_dot(),
    ".nwk": lambda tree, *_: tree.to_newick(),
}


def _writer(name: str, taxonomy: str) -> Writer:
    """How to write this file, or why not; said before any work is done."""
    path, suffix = Path(name), format_suffix(name)
    if suffix not in WRITERS:
        raise InputError(
            f"a tree cannot be written as {suffix or 'a file without an ending'}",
            kind="bad-option",
            file=name,
            remedy=f"The name must end in {', '.join(WRITERS)}, which says the format.",
        )
    check_writable(path)
    if is_same(path, taxonomy):
        raise InputError(
            "the tree would replace the taxonomy", kind="bad-option", file=name, remedy="Choose another name."
        )
    return WRITERS[suffix]
