"""Support vector machines, one for each label: how they are learnt, kept and asked for the margins of documents."""

import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from hitin.extras import need
from hitin.model import Advance
from hitin.option_values import bad_option
from hitin.tokens import Ragged

SCALE = 5.0
"""Margins become logits: at a margin of 1, which training asks for, a label is probable, and at -1 it is not."""
_CERTAIN = 5.0  # the margin of a label that all training documents have; less it, that of one that none has
_TOLERANCE = 1e-4
_MOST_STEPS = 1000
_MOST_THREADS = 8  # each has the documents in memory once more


@dataclass(frozen=True)
class LinearSettings:
    cost: float = 0.5
    """C: what a training document on the wrong side costs; the higher, the closer to the training documents."""
    prune: float = 0.03
    """Weights below this are left out, for a small model; 0: none."""

    def __post_init__(self) -> None:
        if not 0 < self.cost < float("inf"):
            raise bad_option(f"cost is {self.cost}", "It is above 0.")
        if not 0 <= self.prune < float("inf"):
            raise bad_option(f"prune is {self.prune}", "It is at least 0.")


@dataclass(frozen=True)
class Margins:
    """The weights of words by label, in compressed rows: one label after the other, words without weight left out."""

    values: NDArray[np.float32]
    columns: NDArray[np.int32]
    """The word of each value."""
    starts: NDArray[np.int64]
    """Where each label's values begin, and the end of the last."""
    intercepts: NDArray[np.float32]
    words: int

    def of(self, rows: Any) -> NDArray[np.float32]:
        """(documents, |Y|): `SCALE` times the margins of documents, which are rows of the weights of their words."""
        margins: NDArray[np.float32] = (rows @ self._by_word).toarray() + self.intercepts
        return margins

    def shares(self, row: Any, columns: NDArray[np.int64], labels: Sequence[int]) -> NDArray[np.float32]:
        """(labels, columns): what each of these words of one document adds to the margins of some labels."""
        weights: NDArray[np.float32] = self._by_word[columns][:, labels].toarray().T * row.toarray()[0, columns]
        return weights

    @cached_property
    def _by_word(self) -> Any:
        """(words, |Y|)"""
        sparse = need("scipy.sparse", extra="linear", purpose="A linear model")
        shape = len(self.intercepts), self.words
        return sparse.csr_array((self.values, self.columns, self.starts), shape=shape).T.tocsr()

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {name: getattr(self, name) for name in _ARRAYS}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]], *, labels: int, words: int) -> "Margins":
        """What `arrays` gave; a `ValueError` if it cannot have done so."""
        if {name: array.dtype for name, array in arrays.items()} != _ARRAYS:
            raise ValueError("these are not the weights of a linear model")
        margins = cls(**arrays, words=words)
        starts, columns = margins.starts, margins.columns
        fits = starts.shape == (labels + 1,) and margins.intercepts.shape == (labels,)
        if not (fits and starts[0] == 0 and (np.diff(starts) >= 0).all()):
            raise ValueError("the weights are not those of the taxonomy's labels")
        if not columns.shape == margins.values.shape == (starts[-1],):
            raise ValueError("there are more words than weights, or fewer")
        if columns.size and not 0 <= columns.min() <= columns.max() < words:
            raise ValueError("there are weights of words that are not in the vocabulary")
        if not (np.isfinite(margins.values).all() and np.isfinite(margins.intercepts).all()):
            raise ValueError("some weights are no numbers")
        return margins


_ARRAYS = {
    "values": np.dtype(np.float32),
    "columns": np.dtype(np.int32),
    "starts": np.dtype(np.int64),
    "intercepts": np.dtype(np.float32),
}


class _Fitted(NamedTuple):
    """The machine of a label."""

    values: NDArray[np.float32]
    columns: NDArray[np.int32]
    intercept: float
    is_settled: bool


def fit_margins(
    rows: Any, labels: Ragged, count: int, settings: LinearSettings, advance: Advance
) -> tuple[Margins, int]:
    """Learn `count` labels from documents, which are rows of the weights of their words; and how many of the labels
    were not learnt to the last digit.

    Labels are learnt side by side in threads. The primal solver draws no random numbers, unlike the dual one, whose
    threads would share them: the same documents give the same weights.
    """
    documents = labels.rows_by_value(count)
    exact = rows.astype(np.float64)

    def fit(label: int) -> _Fitted:
        return _fit(exact, documents[label], settings)

    fitted = list(_side_by_side(fit, count, advance))
    lengths = np.array([len(each.values) for each in fitted])
    margins = Margins(
        values=np.concatenate([each.values for each in fitted]),
        columns=np.concatenate([each.columns for each in fitted]),
        starts=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        intercepts=np.array([each.intercept for each in fitted], dtype=np.float32),
        words=rows.shape[1],
    )
    return margins, sum(not each.is_settled for each in fitted)


def _fit(rows: Any, members: NDArray[np.int32], settings: LinearSettings) -> _Fitted:
    """The machine of the label that the documents `members` have."""
    if len(members) in (0, rows.shape[0]):
        certain = SCALE * (_CERTAIN if len(members) else -_CERTAIN)
        return _Fitted(np.empty(0, np.float32), np.empty(0, np.int32), certain, True)
    targets = np.zeros(rows.shape[0], dtype=np.int8)
    targets[members] = 1
    machine = _svm().LinearSVC(C=settings.cost, dual=False, tol=_TOLERANCE, max_iter=_MOST_STEPS, random_state=0)
    weights = machine.fit(rows, targets).coef_[0]
    kept = np.flatnonzero((np.abs(weights) >= settings.prune) & (weights != 0))
    values = (SCALE * weights[kept]).astype(np.float32)
    is_settled = int(np.max(machine.n_iter_)) < _MOST_STEPS
    return _Fitted(values, kept.astype(np.int32), SCALE * float(machine.intercept_[0]), is_settled)


def _svm() -> Any:
    return need("sklearn.svm", extra="linear", purpose="The method linear")


def _side_by_side(fit: Any, count: int, advance: Advance) -> Iterator[_Fitted]:
    """The labels in their order. Where `advance` interrupts, those that no one has begun are left."""
    exceptions = need("sklearn.exceptions", extra="linear", purpose="The method linear")
    pools = need("threadpoolctl", extra="linear", purpose="The method linear")
    executor = ThreadPoolExecutor(min(_MOST_THREADS, torch.get_num_threads()))
    # each thread adds up vectors by itself: threads below threads wait for one another
    with warnings.catch_warnings(), pools.threadpool_limits(1, user_api="blas"):
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)  # it is counted
        try:
            for fitted in executor.map(fit, range(count)):
                advance(1)
                yield fitted
        finally:
            executor.shutdown(cancel_futures=True)
