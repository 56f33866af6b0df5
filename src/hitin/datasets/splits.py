"""Splits by chance that come out as in the published programs: NumPy's old generator, scikit-learn's halves."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]


def train_test_rows(count: int, test_size: float | int, seed: int = 0) -> tuple[Rows, Rows]:
    """Which rows are for training and which for test, in the order that scikit-learn's `train_test_split` gives.

    `test_size` is a part of them, or a whole number of rows.
    """
    order = np.random.RandomState(seed).permutation(count)
    tests = test_size if isinstance(test_size, int) else math.ceil(test_size * count)
    return order[tests:], order[:tests]


def wos_rows(count: int) -> tuple[Rows, Rows, Rows]:
    """Rows of training, validation and test: shuffled with seed 7, then a fifth is taken for test, and one of the rest.

    So do HiAGM and those that follow it: 30,070, 7,518 and 9,397 of the 46,985 rows of WOS.
    """
    rows: NDArray[Any] = np.arange(count, dtype=np.int64)
    np.random.RandomState(7).shuffle(rows)
    rest, test = (rows[part] for part in train_test_rows(count, 0.2))
    train, val = (rest[part] for part in train_test_rows(len(rest), 0.2))
    return train, val, test
