"""Scores of cells on resampled test documents, from the decisions that they keep; worked out once and kept beside."""

import zipfile
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.compare.cells import DECISIONS
from hitin.compare.data import truth_file
from hitin.compare.statistics import RESAMPLES, Packed, Resampled, Resamples
from hitin.errors import InputError
from hitin.writing import replacing

KEPT = "resampled.npz"
TRUTH = "truth"

_SOURCES = {
    ("tuned", "micro_f1"): "tuned",
    ("tuned", "macro_f1"): "tuned",
    ("half", "micro_f1"): "half",
    ("half", "macro_f1"): "half",
    ("per_metric", "micro_f1"): "micro_best",
    ("per_metric", "macro_f1"): "macro_best",
}
"""Which decisions of a cell each way takes for each score."""
_HOW = "plain"
"""Kept scores that were worked out otherwise, as those of an earlier version, are worked out anew."""


class ResampledScores:
    """Answers what a cell scores in each resample; the resamples of a data set are the same for all its cells."""

    def __init__(self, folder: Path, *, resamples: int = RESAMPLES) -> None:
        self.folder, self.resamples = folder, resamples
        self._drawn: dict[str, Resamples] = {}
        self._known: dict[Path, dict[str, Resampled]] = {}

    def of(self, data: str, cell: Path, way: str, metric: str) -> Resampled:
        """(resamples,): of the cell in a folder."""
        if cell not in self._known:
            self._known[cell] = self._of_cell(data, cell)
        found = self._known[cell]
        source = _SOURCES[way, metric]
        micro, macro = found[source if source in found else "half"]
        return np.asarray(micro if metric == "micro_f1" else macro)

    def _of_cell(self, data: str, cell: Path) -> dict[str, Resampled]:
        """From the last time, if nothing has changed since; or worked out, and kept for the next time."""
        key = self._key(data, cell)
        try:
            kept = _arrays(cell / KEPT)
        except InputError:
            kept = {}
        if str(kept.pop("key", "")) == key:
            return kept
        found = self._worked_out(data, cell)
        with replacing(cell / KEPT) as part, part.open("wb") as out:
            np.savez(out, allow_pickle=False, key=np.array(key), **found)
        return found

    def _key(self, data: str, cell: Path) -> str:
        """Of all that the resampled scores depend on."""
        files = (truth_file(self.folder, data), cell / DECISIONS)
        return "-".join([_HOW, str(self.resamples), *(_fingerprint(file) for file in files)])

    def _worked_out(self, data: str, cell: Path) -> dict[str, Resampled]:
        if data not in self._drawn:
            truth = _arrays(truth_file(self.folder, data))
            self._drawn[data] = Resamples(truth[TRUTH], int(truth["labels"]), resamples=self.resamples)
        drawn, decisions = self._drawn[data], _arrays(cell / DECISIONS)
        labels = int(decisions.pop("labels", drawn.labels))
        for given in decisions.values():
            _check(given, labels, drawn, cell / DECISIONS)
        return {name: drawn.f1(given)[1] for name, given in decisions.items()}


def _check(given: Packed, labels: int, drawn: Resamples, file: Path) -> None:
    if labels != drawn.labels or given.shape != drawn.truth.shape:
        raise _unusable(file, f"decisions on {len(given)} documents are not on the {len(drawn.truth)} test documents")


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as found:
            return {name: found[name] for name in found.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise _unusable(path, f"it cannot be read ({error})") from error


def _fingerprint(path: Path) -> str:
    try:
        return blake2b(path.read_bytes(), digest_size=8).hexdigest()
    except OSError as error:
        raise _unusable(path, f"it cannot be read ({error.strerror or error})") from error


def _unusable(path: Path, problem: str) -> InputError:
    return InputError(
        problem, kind="bad-results", file=str(path), remedy="Remove the folder it is in, and run the comparison again."
    )
