"""Labels that may be another one misspelt: nearly the same name under the same parent, with hardly any documents."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from hitin.names import PATH_SEPARATOR
from hitin.taxonomy import Taxonomy

_FEW = 2  # documents that a misspelling may have anyway,
_SHARE = 0.05  # or so many of those of the label that was meant
_LONG = 5  # letters of a word from which a letter more or less is no other word
_MOST_ALIKE = 10  # names of which the same rest is left: they are numbered, not misspelt
_LONGEST = 200  # characters


class Misspelling(NamedTuple):
    label: int
    meant: int


def misspellings(taxonomy: Taxonomy, documents: Sequence[int]) -> Iterator[Misspelling]:
    """`documents` are how many each label has. A label may be paired with several."""
    families = [taxonomy.children(label).tolist() for label in range(len(taxonomy))]
    seen: set[tuple[int, int]] = set()
    for family in ([*range(len(taxonomy.roots))], *families):
        for one, other in _alike(taxonomy, family):
            rarer, meant = sorted((one, other), key=lambda label: documents[label])
            is_rare = documents[rarer] <= max(_FEW, _SHARE * documents[meant])
            if 0 < documents[rarer] < documents[meant] and is_rare and (rarer, meant) not in seen:
                seen.add((rarer, meant))
                yield Misspelling(rarer, meant)


def _alike(taxonomy: Taxonomy, family: list[int]) -> Iterator[tuple[int, int]]:
    """Pairs of siblings whose names are a letter apart: without it, the same is left of both."""
    rests: dict[str, list[int]] = defaultdict(list)
    names = {label: _plain(taxonomy.labels[label]) for label in family}
    for label, name in names.items():
        if len(name) <= _LONGEST:
            for rest in {name, *(name[:at] + name[at + 1 :] for at in range(len(name)))}:
                rests[rest].append(label)
    pairs = (pair for labels in rests.values() if len(labels) <= _MOST_ALIKE for pair in combinations(labels, 2))
    for one, other in dict.fromkeys(pairs):
        if is_misspelling(names[one], names[other]):
            yield one, other


def _plain(label: str) -> str:
    """The last name of a path, without case and with one blank between words."""
    return " ".join(label.rsplit(PATH_SEPARATOR, 1)[-1].casefold().split())


def is_misspelling(one: str, other: str) -> bool:
    """Whether names that are a letter apart are so in one long word; numbers must be the same."""
    if re.findall(r"\d+", one) != re.findall(r"\d+", other):
        return False
    words, others = one.split(), other.split()
    if len(words) != len(others):
        return False
    apart = [pair for pair in zip(words, others, strict=True) if pair[0] != pair[1]]
    return len(apart) == 1 and all(len(word) >= _LONG for word in apart[0])
