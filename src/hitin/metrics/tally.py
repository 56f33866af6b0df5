"""`Tally`: adds up, chunk by chunk, what the scores of any number of documents need."""

from collections.abc import Iterator, Sequence

import numpy as np

from hitin.errors import InputError, counted, shown
from hitin.metrics.bootstrap import (
    Floats,
    Ids,
    apart,
    blocks_of,
    centred,
    check_bootstrap,
    interval,
    usual_blocks,
    weights_of,
)
from hitin.metrics.counts import Counts, Decided, check_tables
from hitin.metrics.looking import Cells, Probabilities, Sizes, hits
from hitin.metrics.scores import LEVEL_SCORES, Difference, LevelScores, Scores, at_name, level_name
from hitin.metrics.sums import Sums
from hitin.taxonomy import Taxonomy

_CELLS = 1 << 22  # of a table, looked at together


class Tally:
    """Adds up what scores need. Documents come in chunks of any size; how they were cut changes nothing.

    `blocks` is the number of groups of documents from which intervals are computed, by drawing groups anew; with no
    more documents than that, each is a group of its own. 0 means no intervals, and little memory. `at` are the
    numbers of most probable labels among which precision is looked at, where probabilities are known.
    """

    def __init__(
        self, taxonomy: Taxonomy, *, blocks: int | None = None, at: Sequence[int] = (1, 3, 5), seed: int = 0
    ) -> None:
        if (blocks is not None and blocks < 0) or any(count < 1 for count in at):
            raise InputError(
                f"scores cannot be had with blocks={shown(blocks)} and at={shown(tuple(at))}",
                kind="bad-option",
                remedy="The number of blocks is 0 (no intervals) or more; precision is among 1 label or more.",
            )
        self.taxonomy = taxonomy
        self.blocks = usual_blocks(len(taxonomy)) if blocks is None else blocks
        self.at = tuple(sorted(set(at)))
        self.seed = seed
        self.documents = 0
        self._ranked: bool | None = None  # whether probabilities come with the documents
        self._sums = Sums(taxonomy, self.blocks, self.at)

    @property
    def counts(self) -> Counts:
        """The counts of all documents so far."""
        return self._sums.counts()

    def add(self, given: Decided, truth: Decided, probabilities: Probabilities | None = None) -> None:
        """Add some documents: the labels they were given, those they have, and perhaps how probable each label is."""
        self._check(given, truth, probabilities)
        for rows in _slices(given):
            part = np.ascontiguousarray(given[rows]), np.ascontiguousarray(truth[rows])
            blocks = blocks_of(self.documents, len(part[0]), self.blocks, self.seed)
            self._add_decisions(*part, blocks)
            if probabilities is not None:
                self._add_ranks(probabilities[rows], part[1], blocks)
            self.documents += len(blocks)

    def scores(self, *, resamples: int = 1000, confidence: float = 0.95) -> Scores:
        """All scores, each with an interval from that many resamples of the documents; 0 for no intervals. A single
        document has none: drawn anew, it is always the same."""
        check_bootstrap(resamples, confidence)
        found = self._estimates()
        drawn = self._resampled(resamples) if resamples and self._used > 1 else {}
        return Scores(
            **{name: value for name, value in found.items() if not name.startswith(("level_", "precision_at_"))},
            documents=self.documents,
            labels=len(self.taxonomy),
            levels=tuple(self._levels(found)),
            precision_at={count: found[at_name(count)] for count in self.at if self._ranked},
            intervals={
                name: interval(centred(values, found[name]) if "macro_f1" in name else values, confidence, found[name])
                for name, values in drawn.items()
            },
        )

    @property
    def _used(self) -> int:
        """How many blocks hold documents; one, where there are none."""
        return max(1, min(self.documents, self.blocks))

    def _estimates(self) -> dict[str, float]:
        found = self._sums.scores(np.ones((1, self._used)), ranked=bool(self._ranked))
        return {name: float(values[0]) for name, values in found.items()}

    def _resampled(self, resamples: int) -> dict[str, Floats]:
        """Each score on documents drawn anew, `resamples` times."""
        weights = weights_of(self._used, resamples, self.seed)
        parts = [self._sums.scores(some, ranked=bool(self._ranked)) for some in weights]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _levels(self, found: dict[str, float]) -> Iterator[LevelScores]:
        for level, labels in enumerate(self.taxonomy.level_sizes, start=1):
            yield LevelScores(level, labels, **{name: found[level_name(level, name)] for name in LEVEL_SCORES})

    def _add_decisions(self, given: Decided, truth: Decided, blocks: Ids) -> None:
        sums, taxonomy = self._sums, self.taxonomy
        given_cells, true_cells = Cells.of(given), Cells.of(truth)
        right_cells = given_cells.among(truth)
        sizes = Sizes(*(cells.sizes(len(given)) for cells in (right_cells, given_cells, true_cells)))
        orphaned = given_cells.orphaned(given, taxonomy)
        closed = sizes.closed(given, truth, orphaned | true_cells.orphaned(truth, taxonomy), taxonomy)
        sums.add_labels(blocks, right_cells, given_cells, true_cells)
        sums.add(
            blocks,
            documents=np.ones(len(given)),
            matches=sizes.matches(),
            f1=sizes.f1(),
            given=sizes.given,
            consistent=~orphaned,
            closed_right=closed.right,
            closed_given=closed.given,
            closed_true=closed.true,
        )

    def _add_ranks(self, probabilities: Probabilities, truth: Decided, blocks: Ids) -> None:
        labels = len(self.taxonomy)
        found = hits(probabilities, truth, min(max(self.at, default=0), labels))
        self._sums.add(blocks, **{at_name(count): np.count_nonzero(found[:, :count], axis=1) for count in self.at})

    def _check(self, given: Decided, truth: Decided, probabilities: Probabilities | None) -> None:
        """Refuse what is no chunk, before any of it is counted."""
        check_tables(given, truth)
        if given.shape[1] != len(self.taxonomy):
            raise InputError(
                f"decisions are on {counted(given.shape[1], 'label')}, but the taxonomy has {len(self.taxonomy)}",
                kind="bad-scores",
                remedy="Both are tables of documents by labels, in the order of the taxonomy.",
            )
        if probabilities is not None:
            _check_probabilities(given, probabilities)
        if not len(given):
            return
        if self._ranked not in (None, probabilities is not None):
            raise InputError(
                "some documents come with probabilities and others without",
                kind="bad-scores",
                remedy="Add probabilities with every chunk, or with none.",
            )
        self._ranked = probabilities is not None


def differences(one: Tally, other: Tally, *, resamples: int = 1000, confidence: float = 0.95) -> dict[str, Difference]:
    """How much more `one` scores than `other` on the same documents, by score.

    Both are scored on the same resamples, so that what makes documents hard for both does not blur the difference. On
    a single document no difference has an interval, and none is clear.
    """
    check_bootstrap(resamples, confidence)
    _check_pair(one, other, resamples)
    found, base = one._estimates(), other._estimates()
    more = {name: found[name] - base[name] for name in found if name in base}
    if one._used < 2:
        return {name: Difference(much) for name, much in more.items()}
    mine, theirs = one._resampled(resamples), other._resampled(resamples)
    drawn = {name: apart(mine[name], theirs[name], (found[name], base[name])) for name in more}
    return {name: Difference(much, *interval(drawn[name], confidence, much)) for name, much in more.items()}


def _slices(table: Decided | Probabilities) -> Iterator[slice]:
    rows = max(1, _CELLS // max(table.shape[1], 1))
    for start in range(0, len(table), rows):
        yield slice(start, start + rows)


def _check_probabilities(given: Decided, probabilities: Probabilities) -> None:
    if not np.issubdtype(probabilities.dtype, np.floating) or probabilities.shape != given.shape:
        raise InputError(
            f"probabilities are {probabilities.dtype} of the shape {probabilities.shape}, decisions of {given.shape}",
            kind="bad-scores",
            remedy="Probabilities are a table of fractions for the same documents and labels.",
        )
    for rows in _slices(probabilities):
        part = probabilities[rows]
        if not (np.isfinite(part.min()) and np.isfinite(part.max())):  # either is no number where one cell is none
            raise InputError(
                "some probabilities are not finite numbers",
                kind="bad-scores",
                remedy="The model ran away in training, or its scores overflowed: look at its validation loss.",
            )


def _check_pair(one: Tally, other: Tally, resamples: int) -> None:
    if not (one.blocks and one.documents and resamples):
        raise InputError(
            f"a difference needs documents, blocks and resamples, but there are {one.documents}, {one.blocks} "
            f"and {resamples}",
            kind="bad-option",
            remedy="Make both tallies with blocks, the usual number say, and add documents to them.",
        )
    alike = one.taxonomy == other.taxonomy and (one.documents, one.blocks, one.seed) == (
        other.documents,
        other.blocks,
        other.seed,
    )
    if not (alike and np.array_equal(one._sums.true, other._sums.true)):
        raise InputError(
            "the two tallies are not of the same documents",
            kind="bad-scores",
            remedy="Add the same documents in the same order to both, made with the same taxonomy, blocks and seed.",
        )
