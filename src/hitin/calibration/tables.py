"""Tables of documents by labels, in parts: some documents at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.taxonomy import Taxonomy

Table = NDArray[np.floating[Any]]
Truth = NDArray[np.bool_]

_CHUNK = 1 << 20  # cells that are worked on at once


def chunks(documents: int, labels: int) -> Iterator[slice]:
    """The documents, so many at a time that work on them takes little memory."""
    rows = max(1, _CHUNK // max(labels, 1))
    return (slice(start, min(start + rows, documents)) for start in range(0, documents, rows))


def check_shape(table: NDArray[Any], taxonomy: Taxonomy) -> None:
    if table.ndim != 2 or table.shape[1] != len(taxonomy):
        raise ValueError(f"a table has the shape {table.shape}, but the taxonomy has {len(taxonomy)} labels")
