"""What shows only when a taxonomy or a split has been read as a whole."""

import re
from pathlib import PurePath

import numpy as np
from numpy.typing import NDArray

from hitin.doctor.facts import SplitFacts
from hitin.doctor.misspelling import misspellings
from hitin.doctor.mojibake import trouble_in
from hitin.doctor.problems import FIRST, Problems
from hitin.doctor.splits import Split
from hitin.errors import counted, place, shown
from hitin.labels import LabelReader
from hitin.names import PATH_SEPARATOR, folded, path_below
from hitin.taxonomy.reading import Reading

_TRAIN = re.compile("(?<![a-z])train", re.IGNORECASE)


def of_taxonomy(reading: Reading, problems: Problems) -> None:
    """Repeated edges, homonyms, names that look alike, like paths or wrongly decoded, a taxonomy without parents."""
    taxonomy = reading.taxonomy
    for line, parent, child in reading.repeated:
        problems.add("duplicate-edge", place(reading.file, line), f"{parent}{PATH_SEPARATOR}{child}")
    for name in reading.homonyms:
        number = taxonomy.index(name) if name in taxonomy else None
        problems.add("homonym", reading.place_of(number) if number is not None else reading.file, name)
    if taxonomy.depth == 1 and len(taxonomy) > 1:
        problems.add("flat-taxonomy", reading.file, f"{len(taxonomy):,} labels, all at the top")
    tops = set(taxonomy.labels[: len(taxonomy.roots)])
    first: dict[str, int] = {}
    for number, label in enumerate(taxonomy.labels):
        if label in tops and (path := path_below(tops, label)):
            problems.add("path-at-top", reading.place_of(number), f"{shown(label)}: {PATH_SEPARATOR.join(path)}?")
        if trouble := trouble_in(label):
            problems.add("encoding", reading.place_of(number), f"in the label {trouble!a}")
        twin = first.setdefault(folded(label), number)
        if twin != number:
            names = f"{shown(taxonomy.labels[twin])} and {shown(label)}"
            problems.add("look-alike-labels", reading.place_of(number), names)


def of_labels(reading: Reading, splits: list[Split], labels: LabelReader, problems: Problems, rare: int) -> None:
    """Unknown labels, splits that teach nothing, and labels that training has too little of."""
    for split in splits:
        _unknown_labels(split, labels, problems)
        if not split.documents and split.is_whole:
            problems.add("empty-split", split.name)
    if not splits:
        return
    train = training_split(splits)
    if not train.learnable:
        if train.documents:
            problems.add("nothing-to-learn", train.name, counted(train.documents, "document"))
        return
    counts = train.label_counts
    everywhere = sum((split.label_counts for split in splits), np.zeros_like(counts))
    for label, meant in misspellings(reading.taxonomy, everywhere.tolist()):
        pair = [f"{shown(reading.taxonomy.labels[each])} ({everywhere[each]:,})" for each in (label, meant)]
        problems.add("misspelt-label", reading.place_of(label), " and ".join(pair))
    for label in np.argsort(counts, kind="stable")[: np.count_nonzero(counts < rare)].tolist():  # the rarest first
        count, others = counts[label], everywhere[label]
        if count:
            kind, detail = "rare-label", f": {count}"
        elif others:
            kind, detail = "label-only-in-other-splits", f": {others} elsewhere"
        else:
            kind, detail = "label-without-documents", ""
        if problems.wants_more(kind):
            problems.add(kind, reading.place_of(label), shown(reading.taxonomy.labels[label]) + detail)
        else:
            problems.add(kind)


def _unknown_labels(split: Split, labels: LabelReader, problems: Problems) -> None:
    for unknown, count in split.unknown.items():
        detail = f"{shown(unknown)}, {count:,} times" if count > 1 else shown(unknown)
        if problems.wants_more("unknown-label"):
            detail += _remedy(unknown, labels)
        problems.add("unknown-label", split.unknown_places[unknown], detail, count=count)
    if split.unknown_beyond:
        problems.add("unknown-label", count=split.unknown_beyond, places=split.unknown_beyond)


def _remedy(unknown: str, labels: LabelReader) -> str:
    """What the label may have been meant to be, and the option with which it is that."""
    near, option = labels.nearest(unknown), labels.option_for(unknown)
    meant = f"; did you mean {shown(near)}?" if near else ""
    return f"{meant}; with {option} it is read" if option else meant


def training_split(splits: list[Split]) -> Split:
    """The first whose file, or else folder, is called train-something; or else the first."""
    for part in (-1, -2):
        for split in splits:
            parts = PurePath(split.name).parts
            if len(parts) >= -part and _TRAIN.search(parts[part]):
                return split
    return splits[0]


def of_repetitions(splits: list[Split], facts: list[SplitFacts], problems: Problems) -> None:
    """Texts that come twice in a split, and texts of a split that an earlier one has."""
    seen: list[tuple[Split, NDArray[np.uint64], NDArray[np.int64]]] = []
    for split, its_facts in zip(splits, facts, strict=True):
        prints = split.prints
        distinct, first, inverse = np.unique(prints, return_index=True, return_inverse=True)
        again = np.flatnonzero(first[inverse] != np.arange(len(prints)))
        its_facts.duplicates = len(again)
        _add_pairs(problems, "duplicate-text", split, again, split, first[inverse[again]])
        fresh = np.ones(len(distinct), dtype=bool)
        for earlier, their_prints, their_first in seen:
            _, ours, theirs = np.intersect1d(distinct, their_prints, assume_unique=True, return_indices=True)
            if len(ours):
                its_facts.leaks[earlier.name] = len(ours)
            is_fresh = fresh[ours]
            fresh[ours] = False
            _add_pairs(problems, "leak", split, first[ours[is_fresh]], earlier, their_first[theirs[is_fresh]])
        its_facts.leaked = int(np.count_nonzero(~fresh))
        seen.append((split, distinct, first))


def _add_pairs(
    problems: Problems,
    kind: str,
    split: Split,
    positions: NDArray[np.int64],
    other: Split,
    other_positions: NDArray[np.int64],
) -> None:
    """Count all pairs of equal texts, and name the first of them."""
    order = np.argsort(positions)
    shown_now = 0
    for at in order[:FIRST].tolist():
        if not problems.wants_more(kind):
            break
        problems.add(kind, split.place(int(positions[at])), f"as {other.place(int(other_positions[at]))}")
        shown_now += 1
    if len(order) > shown_now:
        problems.add(kind, count=len(order) - shown_now, places=len(order) - shown_now)
