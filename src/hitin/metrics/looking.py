"""What is seen of a few documents: how many labels each was given, has and has rightly, with ancestors and without."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hitin.metrics.counts import Decided, Integers
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import with_ancestors

Probabilities = NDArray[np.floating[Any]]


class Cells(NamedTuple):
    """The cells of a table that are true, document by document."""

    documents: Integers
    labels: Integers

    @classmethod
    def of(cls, table: Decided) -> "Cells":
        return cls(*np.divmod(np.flatnonzero(table), table.shape[1]))

    def among(self, table: Decided) -> "Cells":
        """Those that are true in another table, too."""
        chosen = table[self.documents, self.labels]
        return Cells(self.documents[chosen], self.labels[chosen])

    def sizes(self, documents: int) -> Integers:
        """How many of them each document has."""
        return np.bincount(self.documents, minlength=documents)

    def orphaned(self, table: Decided, taxonomy: Taxonomy) -> Decided:
        """For each document, whether it has a label without one of the label's parents; `table` is the whole of it."""
        parents = taxonomy.parent_counts[self.labels]
        documents = np.repeat(self.documents, parents)
        run = np.arange(len(documents)) - np.repeat(np.cumsum(parents) - parents, parents)
        above = taxonomy.parent_ids[np.repeat(taxonomy.parent_starts[self.labels], parents) + run]
        found = np.zeros(len(table), dtype=np.bool_)
        found[documents[~table[documents, above]]] = True
        return found


class Sizes(NamedTuple):
    """For each document, how many labels it has rightly, was given and has."""

    right: Integers
    given: Integers
    true: Integers

    def f1(self) -> NDArray[np.float64]:
        """Of each document; 0 for one without labels that was given none, as scikit-learn has it."""
        return np.asarray(2 * self.right / np.maximum(self.given + self.true, 1))

    def matches(self) -> Decided:
        """Which documents were given exactly the right labels."""
        return np.asarray((self.right == self.given) & (self.right == self.true))

    def closed(self, given: Decided, truth: Decided, orphaned: Decided, taxonomy: Taxonomy) -> "Sizes":
        """Once ancestors are added: the same, but for the documents in which some are missing."""
        if not orphaned.any():
            return self
        given, truth = (with_ancestors(table[orphaned], taxonomy) for table in (given, truth))
        found = Sizes(*(sizes.copy() for sizes in self))
        for sizes, table in zip(found, (given & truth, given, truth), strict=True):
            sizes[orphaned] = np.count_nonzero(table, axis=1)
        return found


def hits(probabilities: Probabilities, truth: Decided, most: int) -> Decided:
    """(documents, most): whether the most probable label is true, the next one, and so on.

    Of equally probable labels the one with the lower number comes first.
    """
    left, everyone = probabilities.copy(), np.arange(len(truth))
    found = np.empty((len(truth), most), dtype=np.bool_)
    for rank in range(most):
        best = left.argmax(axis=1)
        found[:, rank] = truth[everyone, best]
        left[everyone, best] = -np.inf
    return found
