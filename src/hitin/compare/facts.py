"""What one must know to believe a comparison: the command, the data, the seeds, the machines, the rules."""

import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hitin.compare.cells import DataSet, read_json
from hitin.compare.data import data_file
from hitin.compare.results import Results
from hitin.compare.words import machine_kind
from hitin.errors import counted

SELECTION = (
    "Of each training the epoch with the best mean of micro-F1 and macro-F1 on validation documents counts, for every "
    "method alike."
)
_HELD_OUT = " (held out of the training documents, the same ones for all)"


def facts(results: Results) -> list[tuple[str, str]]:
    """Terms and what is to be said of them, for the head of the page and of the Markdown."""
    found = [("Command", command(results)), ("Results", _progress(results))]
    found += [(f"Data: {data.title}", _data_fact(results, data)) for data in results.plan.data]
    found += [("Seeds", _seeds(results)), ("Selection", SELECTION), ("Comparison", _comparison(results))]
    return [*found, ("Machines", "; ".join(_machines(results)) or "none yet"), ("Software", _software(results))]


def command(results: Results) -> str:
    """What to type for the same again. Folders of this machine alone are left out."""
    names = [_portable(Path(results.plan.file)), _portable(results.folder)]
    return f"hitin compare {shlex.quote(names[0])} --out {shlex.quote(names[1])}"


def _portable(path: Path) -> str:
    return path.name if path.is_absolute() else path.as_posix()


def _progress(results: Results) -> str:
    done = len(results.finished)
    failed = sum(cell.result() is None and cell.failure() is not None for cell in results.cells)
    text = f"{done:,} of {counted(len(results.cells), 'training')} finished"
    return f"{text}, {failed:,} failed" if failed else text


def data_facts(results: Results, data: DataSet) -> dict[str, Any]:
    """Sizes of a data set; empty where it has not been read yet."""
    return read_json(data_file(results.folder, data.name)) or {}


def _data_fact(results: Results, data: DataSet) -> str:
    found = data_facts(results, data)
    if not found:
        return "not read yet"
    sizes, levels = found.get("documents", {}), found.get("levels", [])
    val, test = (_HELD_OUT if found.get(name) else "" for name in ("held_out", "held_out_for_test"))
    return (
        f"{counted(int(found.get('labels', 0)), 'label')} on {counted(len(levels), 'level')}; documents: "
        f"{sizes.get('train', 0):,} for training, {sizes.get('val', 0):,} for validation{val}, "
        f"{sizes.get('test', 0):,} for the test{test}"
    )


def _seeds(results: Results) -> str:
    seeds = sorted({cell.seed for cell in results.cells})
    return ", ".join(map(str, seeds)) or "none"


def _comparison(results: Results) -> str:
    return (
        f"Each row is compared with the best of its column by the paired bootstrap over test documents "
        f"({results.resamples:,} resamples, the same for all rows; the mean over seeds counts), and p is corrected by "
        f"Holm over all comparisons of a table."
    )


def _machines(results: Results) -> Iterator[str]:
    kinds = Counter(map(machine_kind, results.finished))
    for kind, cells in sorted(kinds.items()):
        yield f"{kind} ({counted(cells, 'training')})"
    if len(kinds) > 1:
        yield "times, memory and speed are comparable within one kind only"


def _software(results: Results) -> str:
    machines = [result.get("machine") or {} for result in results.finished]
    found = []
    for name in ("hitin", "torch", "python", "platform"):
        versions = sorted({str(machine[name]) for machine in machines if name in machine})
        if versions:
            found.append(f"{name} {' and '.join(versions)}" if name != "platform" else " and ".join(versions))
    return ", ".join(found) or "none yet"
