"""`ReportBuilder`: what a report needs, collected while documents stream by."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.errors import InputError
from hitin.metrics import Counts, Scores
from hitin.report.confusions import SiblingConfusions
from hitin.report.contents import About, BaselineScores, Report
from hitin.report.examples import AnyDocument, Examples
from hitin.taxonomy import Taxonomy

MOST_CONFUSIONS = 5000  # that a report holds

_CHUNK = 1 << 21  # cells of a table that are looked at at once


class ReportBuilder:
    """Collects counts, confusions and the documents worth a look; memory grows with labels and confused pairs only.

    `train_counts` says how many training documents each label has; `worst` how many documents are kept of each kind,
    with the beginnings of their texts; none with 0.
    """

    def __init__(self, taxonomy: Taxonomy, *, train_counts: NDArray[np.int64] | None = None, worst: int = 50) -> None:
        if train_counts is not None and np.shape(train_counts) != (len(taxonomy),):
            raise ValueError(f"{np.shape(train_counts)} training counts for {len(taxonomy)} labels")
        self.taxonomy = taxonomy
        self.train_counts = train_counts
        self.counts = Counts.zero(len(taxonomy))
        self._confusions = SiblingConfusions(taxonomy)
        self._examples = Examples(worst)

    def add(
        self,
        documents: Sequence[AnyDocument],
        probabilities: NDArray[np.floating],
        given: NDArray[np.bool_],
        truth: NDArray[np.bool_],
    ) -> None:
        """Add a chunk: its documents, and tables of them by labels."""
        self._check(documents, probabilities, given, truth)
        self.counts += Counts.of(given, truth)
        rows = max(1, _CHUNK // len(self.taxonomy))
        for start in range(0, len(documents), rows):
            part = slice(start, start + rows)
            self._confusions.add(given[part], truth[part])
            self._examples.add(documents[part], probabilities[part], given[part], truth[part])

    def finish(
        self,
        scores: Scores,
        *,
        about: About,
        reliability: Mapping[str, Any] | None = None,
        baselines: Sequence[BaselineScores] = (),
    ) -> Report:
        """The report on all documents that were added; `reliability` is the JSON of `calibration.Reliability`."""
        return Report(
            taxonomy=self.taxonomy,
            about=about,
            scores=scores,
            baselines=tuple(baselines),
            counts=self.counts,
            train_counts=self.train_counts,
            reliability=reliability,
            confusions=self._confusions.most(MOST_CONFUSIONS),
            confused_pairs=len(self._confusions),
            worst=self._examples.worst.examples,
            surprising=self._examples.surprising.examples,
        )

    def _check(
        self,
        documents: Sequence[AnyDocument],
        probabilities: NDArray[np.floating],
        given: NDArray[np.bool_],
        truth: NDArray[np.bool_],
    ) -> None:
        shape = (len(documents), len(self.taxonomy))
        for name, table in (("probabilities", probabilities), ("given labels", given), ("true labels", truth)):
            if table.shape != shape:
                raise InputError(
                    f"the {name} have the shape {table.shape}; {shape[0]} documents by {shape[1]} labels are expected",
                    kind="bad-scores",
                )
        if not (np.isfinite(probabilities).all() and (probabilities >= 0).all() and (probabilities <= 1).all()):
            raise InputError("probabilities must be numbers from 0 to 1", kind="bad-scores")
