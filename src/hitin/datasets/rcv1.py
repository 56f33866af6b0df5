"""RCV1-v2: stories of Reuters with their topics, from the discs or the token files of LYRL2004, in the paper's splits.

The files that belong together lie in one folder, or in folders below it: the stories; `rcv1.topics.hier.orig`; the
topics in `rcv1-v2.topics.qrels`; and which stories are for training.
"""

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from hitin.datasets.files import DataFiles, check_folder_of_data, write_data
from hitin.datasets.rcv1_folder import HIERARCHY, TOPICS, Rcv1Folder, find_rcv1
from hitin.datasets.reuters import Story, listed_number, number_in, token_numbers, token_stories, xml_stories
from hitin.datasets.splits import train_test_rows
from hitin.documents import Document
from hitin.errors import InputError, listed, shown
from hitin.files import FileProgress, Source
from hitin.splitting import Split
from hitin.taxonomy import Taxonomy

ALL_STORIES = 804_414
"""Of RCV1-v2. The discs have 2,377 more, without a topic or a region."""
TRAINING_STORIES = 23_149
"""Of LYRL2004: those with the lowest numbers."""
VALIDATION_STORIES = 2_316
"""Of the paper, out of those. A tenth as scikit-learn rounds it would be one less."""

_EDGE = re.compile(r"parent:\s*(\S+)\s+child:\s*(\S+)")

_ONCE = "Keep either the zips or what was in them, and each once."

Note = Callable[[str], None]
Labels = tuple[str, ...]


def write_rcv1(
    source: str | Path,
    out: str | Path,
    *,
    ids: str | Path | None = None,
    advance: FileProgress | None = None,
    note: Note = lambda _: None,
) -> DataFiles:
    """Write the taxonomy and the three splits. Stories are read one by one, and none is kept.

    `ids` is a list of the numbers of the stories for training, where it is not in the folder. `note` is told what a
    person should know.
    """
    check_folder_of_data(out)
    found = find_rcv1(Path(source), None if ids is None else Path(ids))
    taxonomy = read_hierarchy(found.hierarchy)
    given = read_topics(found.topics, taxonomy) if found.topics else None
    listed_stories = read_list(found.training, note)
    splits = split_stories(listed_stories[:TRAINING_STORIES])
    if "train" not in splits.values():
        raise _bad_numbers(found.training, "too few stories: all of them would be held for validation")
    if given is not None and len(given) != ALL_STORIES:
        note(f"{found.topics}: topics of {len(given):,} stories, where RCV1-v2 has {ALL_STORIES:,}: a part of them?")
    stories = xml_stories(found.days, advance) if found.days else token_stories(found.tokens, advance)
    selection = _Selection(taxonomy, given, listed_stories, splits, found, note)
    return write_data(out, taxonomy, selection.documents(stories))


def read_hierarchy(path: Path) -> Taxonomy:
    """The taxonomy of lines `parent: CCAT child: C11 child-description: STRATEGY/PLANS`."""
    edges = []
    with Source(path, encoding="latin-1") as source:
        for line in filter(str.strip, source.lines()):
            edge = _EDGE.match(line.strip())
            if edge is None:
                raise source.error(
                    f"{shown(line.strip())} is no line of the hierarchy of topics",
                    kind="bad-record",
                    line=source.line,
                    remedy="A line is `parent: CCAT child: C11 child-description: ...`.",
                )
            if edge[1] != "None":  # above the root
                edges.append((edge[1], edge[2]))
    try:
        return Taxonomy.from_edges(edges)
    except InputError as error:
        error.file = str(path)
        raise


def read_topics(path: Path, taxonomy: Taxonomy) -> dict[int, Labels]:
    """The topics of each story by its number, those above them included, of lines `C15 2286 1`."""
    pairs: dict[int, array[int]] = {}
    with Source(path, encoding="latin-1") as source:
        for line in filter(str.strip, source.lines()):
            topic, number, *rest = (*line.split(), "", "")[:4]
            if rest[:1] != ["1"]:
                remedy = "A line is a topic, the number of a story and a 1."
                raise source.error(
                    f"{shown(line.strip())} is no topic", kind="bad-record", line=source.line, remedy=remedy
                )
            if topic not in taxonomy:
                raise source.error(
                    f"the hierarchy does not have the topic {shown(topic)}",
                    kind="unknown-label",
                    line=source.line,
                    remedy=f"Do this file and {HIERARCHY} belong together?",
                )
            pairs.setdefault(number_in(number, source), array("h")).append(taxonomy.index(topic))
    closed = _Closures(taxonomy)
    return {number: closed(topics) for number, topics in pairs.items()}


def read_list(path: Path, note: Note) -> list[int]:
    """The numbers in a token file, a list of the stories for training, or one of all stories; in rising order.

    Those for training are the first of them, `TRAINING_STORIES` at the most.
    """
    with Source(path, encoding="latin-1") as source:
        is_tokens = source.first_line.startswith(".I")
        numbers = [] if is_tokens else [listed_number(line, source) for line in source.lines() if line.strip()]
    numbers = list(token_numbers(path)) if is_tokens else numbers
    if not numbers:
        raise _bad_numbers(path, "there is no story in this list")
    if twice := [number for number, count in Counter(numbers).items() if count > 1]:
        raise _bad_numbers(path, f"the story {twice[0]} comes twice")
    if numbers != sorted(numbers):
        note(f"{path}: the stories are not in the order of the distribution; they were sorted by their numbers")
    if len(numbers) > TRAINING_STORIES:
        note(f"{path}: the first {TRAINING_STORIES:,} of {len(numbers):,} stories are for training")
    if len(numbers) < TRAINING_STORIES:
        note(f"{path}: {len(numbers):,} stories for training, where LYRL2004 has {TRAINING_STORIES:,}: a part of them?")
    return sorted(numbers)


def split_stories(training: list[int]) -> dict[int, Split]:
    """Which of the stories for training the paper takes for validation: those that come first when all are shuffled
    with seed 0, as scikit-learn does it. A story that is not here is for test."""
    is_whole = len(training) == TRAINING_STORIES
    _, held = train_test_rows(len(training), VALIDATION_STORIES if is_whole else 0.1)
    validation = {training[row] for row in held.tolist()}
    return {number: "val" if number in validation else "train" for number in training}


@dataclass
class _Selection:
    """From stories to the documents that are in RCV1-v2."""

    taxonomy: Taxonomy
    given: dict[int, Labels] | None
    listed: list[int]
    """Of the list of those for training, which may be one of all stories."""
    splits: dict[int, Split]
    found: Rcv1Folder
    note: Note

    def documents(self, stories: Iterable[Story]) -> Iterator[tuple[Split, Document]]:
        seen: set[int] = set()
        left_out, first_of_test = 0, None
        labels_of = self._as_given if self.given is not None else self._as_in_story()
        for story in stories:
            if story.number in seen:
                remedy = "Is one of the token files a copy of another?" if self.found.tokens else _ONCE
                raise _bad_story(story, "comes twice", remedy)
            seen.add(story.number)
            if not (labels := labels_of(story)):
                left_out += 1
                continue
            split = self.splits.get(story.number, "test")
            if split == "test":
                first_of_test = min(story.number, first_of_test or story.number)
            yield split, Document(story.text, labels, str(story.number))
        self._check_whole(seen)
        if self.given is None and (count := len(seen) - left_out) != ALL_STORIES:
            self.note(f"{count:,} stories with topics, where RCV1-v2 has {ALL_STORIES:,}: a part of them?")
        self._remark(left_out, first_of_test)

    def _as_given(self, story: Story) -> Labels:
        assert self.given is not None
        labels = self.given.get(story.number, ())
        if not labels and self.found.tokens:
            raise _bad_story(story, f"is not in {TOPICS}", "Do these files belong together? Download them again.")
        if not labels and story.number in self.splits:
            raise self._without_topics(sorted(self.splits.keys() - self.given.keys()))
        return labels

    def _without_topics(self, numbers: list[int]) -> InputError:
        return InputError(
            f"{len(numbers):,} of the {len(self.splits):,} stories for training have no topics in it: {_few(numbers)}",
            kind="missing-documents",
            file=str(self.found.topics),
            remedy=f"Is it whole? Download it again. The stories for training are those of {self.found.training}.",
        )

    def _as_in_story(self) -> Callable[[Story], Labels]:
        """The topics that Reuters gave, those above them added."""
        closed = _Closures(self.taxonomy)

        def labels_of(story: Story) -> Labels:
            if unknown := [topic for topic in story.topics if topic not in self.taxonomy]:
                remedy = f"Is {self.found.hierarchy} whole? With {TOPICS} beside it, the topics are taken from there."
                raise _bad_story(story, f"has the topic {shown(unknown[0])}, which the hierarchy has not", remedy)
            return closed(map(self.taxonomy.index, story.topics)) if story.has_region else ()

        return labels_of

    def _check_whole(self, seen: set[int]) -> None:
        """All stories that have topics, and all for training, must have come."""
        for file, named in ((self.found.topics, self.given or ()), (self.found.training, self.listed)):
            if wanted := sorted(set(named) - seen):
                unread = self.found.unread
                beside = unread and f"{unread} was not read, for days lie beside it: unpack it, if stories are in it. "
                raise InputError(
                    f"stories that it names and that are not there: {len(wanted):,} ({_few(wanted)})",
                    kind="missing-documents",
                    file=str(file),
                    remedy=f"{beside or ''}Is the download whole? The two discs have 365 zips; there are five token "
                    "files. If it is, this file is of another collection.",
                )

    def _remark(self, left_out: int, first_of_test: int | None) -> None:
        """What a person should know when all stories were seen."""
        last = max(self.splits)
        if first_of_test is not None and last > first_of_test:
            self.note(
                f"{self.found.training}: {last} is for training and {first_of_test} for test, where LYRL2004 has the "
                "lowest numbers for training: another list?"
            )
        if left_out:
            why = f"not in {TOPICS}" if self.given is not None else "without a topic or a region"
            self.note(f"stories that are left out (RCV1-v2 has 2,377 fewer than the discs), being {why}: {left_out:,}")


class _Closures:
    """Topics with those above them, as names; equal ones are one object, for there are very many stories."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self._taxonomy = taxonomy
        self._known: dict[tuple[int, ...], Labels] = {}

    def __call__(self, topics: Iterable[int]) -> Labels:
        key = tuple(sorted(topics))
        if key not in self._known:
            self._known[key] = tuple(self._taxonomy.labels[label] for label in self._taxonomy.closure(key))
        return self._known[key]


def _few(numbers: list[int]) -> str:
    return listed([str(number) for number in numbers], 5)


def _bad_numbers(path: Path, problem: str) -> InputError:
    return InputError(problem, kind="bad-record", file=str(path), remedy="Is this the file as it was downloaded?")


def _bad_story(story: Story, problem: str, remedy: str) -> InputError:
    return InputError(
        f"the story {story.number} {problem}", kind="bad-record", file=story.file, line=story.line, remedy=remedy
    )
