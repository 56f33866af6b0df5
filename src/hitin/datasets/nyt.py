"""The New York Times Annotated Corpus (LDC2008T19): articles with the paths under which they stood on the Web.

An article's text is its paragraphs less the first, its labels are the beginnings of its paths. Which articles are for
training, validation and test is said by three lists, which are not part of the archive; nor is the list of labels.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from hitin.datasets.files import DataFiles, check_folder_of_data, write_data
from hitin.datasets.id_lists import Listed, read_lists
from hitin.datasets.table1 import TABLE_1
from hitin.datasets.xml_files import archive_errors, bad_xml, loose_file, packed_files, read_xml, text_of
from hitin.documents import Document
from hitin.errors import InputError, counted, listed, shown
from hitin.files import FileProgress, Source
from hitin.splitting import Split
from hitin.taxonomy import Taxonomy

LABELS = TABLE_1["nyt"].labels
TOP = "Top"
_SHORTEST = 3  # steps of a path, `Top` included: shorter ones say no more than news or features
_YEAR, _TWO_DIGITS = re.compile(r"(?:19|20)\d\d"), re.compile(r"\d\d")
_ARTICLE = re.compile(r"\d+\.xml", re.IGNORECASE)
_TAR = (".tgz", ".tar.gz", ".tar")
_PATHS = "A label is a path such as Top/News/Sports; one a line, or several with tabs between them."

Note = Callable[[str], None]


class Article(NamedTuple):
    number: int
    text: str
    labels: tuple[str, ...]
    """All beginnings of its paths, those before what they are the beginning of."""


@dataclass(frozen=True)
class Month:
    """The articles of a month: a folder of days, or an archive of it; or of a year, where they lie in its folder."""

    name: str
    """Such as `1987/01`, or `1987`."""
    path: Path
    unread: Path | None = None
    """The archive beside the folder, if there are both."""

    def may_have(self, when: str | None) -> bool:
        """Whether an article of that month or year may be here; of `None` nothing is known."""
        return when is None or when.startswith(self.name) or self.name.startswith(when)


def write_nyt(
    source: str | Path,
    ids: str | Path | None,
    out: str | Path,
    *,
    labels: str | Path | None = None,
    advance: FileProgress | None = None,
    note: Note = lambda _: None,
) -> DataFiles:
    """Write the taxonomy and the three splits of the articles that the lists in the folder `ids` name.

    `labels` is a file that names the labels. Without, they are the 166 most frequent of the training articles, for
    which all listed articles are held in memory.
    """
    check_folder_of_data(out)
    months = find_months(Path(source))
    wanted = read_lists(None if ids is None else Path(ids))
    _tell_repeated(wanted, note)
    known = None if labels is None else read_labels(Path(labels), note)
    articles: Iterable[Article] = read_articles(months, wanted, advance)
    if known is None:
        articles = list(articles)
        known = frequent_labels(article.labels for article in articles if "train" in wanted[article.number].splits)
        if not known:
            raise _unlabelled(str(ids), "Are the lists those of this archive?")
        note(
            f"labels: the {len(known)} that most training articles have. The list of the paper is not in the "
            "archive: with it, name its file with --labels"
        )
    documents = _documents(articles, wanted, known, note)
    return write_data(out, taxonomy_of(known), documents if labels is None else _some_labelled(documents, str(labels)))


def find_months(source: Path) -> list[Month]:
    """The months of the archive, in their order; or an `InputError` that says what this folder looks like."""
    if not source.is_dir():
        raise _wrong(source, _what_file(source), "Give the folder of the archive, which has `data` in it.")
    place = source / "data" if (source / "data").is_dir() else source
    years = [path for path in sorted(place.iterdir()) if path.is_dir() and _YEAR.fullmatch(path.name)]
    months = {month.name: month for year in years for month in _months_of(year)}
    if not months:
        raise _unlike_archive(source)
    return [months[name] for name in sorted(months)]


def read_articles(
    months: Iterable[Month], wanted: Mapping[int, Listed], advance: FileProgress | None = None
) -> Iterator[Article]:
    """The articles that are wanted, month by month; an `InputError` at the end, if some are not there."""
    needed = {one.when for one in wanted.values()}
    looked = [month for month in months if any(map(month.may_have, needed))]
    missing = dict(wanted)
    for done, month in enumerate(looked):
        if advance:
            advance("articles", done, len(looked))
        for number, data, file in _files_of(month, missing):
            yield _article(number, data, file)
            del missing[number]
    if missing:
        raise _missing(missing, looked)


def read_labels(path: Path, note: Note = lambda _: None) -> frozenset[str]:
    """The labels that a file names, each a path from `Top` on: a list, a taxonomy in lines with tabs, or counts."""
    with Source(path, names_encoding=False) as source:
        found = frozenset(label for line in source.lines() for label in _labels_in(line, source))
    if not found:
        raise InputError("there is no label in this file", kind="no-labels", file=str(path), remedy=_PATHS)
    if (count := len(taxonomy_of(found))) != LABELS:
        labels = counted(count, "label")
        note(f"{path}: {labels}, those above them included, where the paper has {LABELS}: another list?")
    return found


def _labels_in(line: str, source: Source) -> Iterator[str]:
    for cell in map(str.strip, line.split("\t")):
        problem = ""
        if f" {TOP}/" in cell:
            problem = "has blanks where tabs should be"
        elif cell.startswith(f"{TOP}/") and not all(map(str.strip, cell.split("/"))):
            problem = "has a step without a name"
        if problem:
            raise source.error(f"{shown(cell)} {problem}", kind="bad-label", line=source.line, remedy=_PATHS)
        if cell.startswith(f"{TOP}/"):
            yield cell


def frequent_labels(labels: Iterable[Iterable[str]], most: int = LABELS) -> frozenset[str]:
    """The labels that most articles have. A label is never without that above it, which has no fewer articles."""
    counts = Counter(label for one in labels for label in one)
    ranked = sorted(counts, key=lambda label: (-counts[label], label.count("/"), label))
    return frozenset(ranked[:most])


def taxonomy_of(labels: Iterable[str]) -> Taxonomy:
    """`Top/News/Sports` under `Top/News`; what is right under `Top` is at the top."""
    edges = []
    for label in sorted(labels, key=lambda label: (label.count("/"), label)):
        steps = label.split("/")
        edges += [(_joined(steps[:end]), _joined(steps[: end + 1])) for end in range(2, len(steps))]
    return Taxonomy.from_edges(dict.fromkeys(edges), labels=sorted(labels))


def _documents(
    articles: Iterable[Article], wanted: Mapping[int, Listed], known: frozenset[str], note: Note
) -> Iterator[tuple[Split, Document]]:
    closed = {_joined(label.split("/")[:end]) for label in known for end in range(2, label.count("/") + 2)}
    without, unmet = 0, set(closed)
    for article in articles:
        labels = tuple(label for label in article.labels if label in closed)
        without += not labels
        splits = wanted[article.number].splits
        if "train" in splits:
            unmet.difference_update(labels)
        yield from ((split, Document(article.text, labels, f"{article.number:07}")) for split in splits)
    if unmet:
        note(
            f"labels that no training article has: {len(unmet):,} ({listed(sorted(unmet), 5)}). Are they spelt rightly?"
        )
    if without:
        note(f"articles without any of the labels, which are written without: {without:,}")


def _tell_repeated(wanted: Mapping[int, Listed], note: Note) -> None:
    repeated = [one for one in wanted.values() if len(one.splits) > 1]
    if repeated:
        first = repeated[0]
        unseen = [one for one in repeated if "test" in one.splits and {*one.splits} != {"test"}]
        note(
            f"articles that are listed more than once, and written as often: {len(repeated):,} (first {first.name}, "
            f"for {' and '.join(first.splits)}). Of those in the test list, {len(unseen):,} are not unseen"
        )


def _some_labelled(documents: Iterable[tuple[Split, Document]], file: str) -> Iterator[tuple[Split, Document]]:
    """The documents; an `InputError` at the end, if none for training has a label of the file."""
    is_labelled = False
    for split, document in documents:
        is_labelled |= split == "train" and bool(document.labels)
        yield split, document
    if not is_labelled:
        raise _unlabelled(file, f"Are the labels spelt as in the archive? {_PATHS}")


def _unlabelled(file: str, remedy: str) -> InputError:
    return InputError("no training article has any label", kind="no-labels", file=file, remedy=remedy)


def _article(number: int, data: bytes, file: str) -> Article:
    root = read_xml(data, file)
    if root.tag != "nitf":
        raise bad_xml(f"this is no article of the archive: it begins with <{root.tag}>, not <nitf>", file)
    paths = (text_of(one) for one in root.iter("classifier") if one.get("type") == "taxonomic_classifier")
    labels = dict.fromkeys(label for path in paths for label in _beginnings(path))
    paragraphs = [text_of(paragraph) for paragraph in root.iter("p")]
    headlines = [text_of(headline) for headline in root.iter("hl1")]
    parts = (paragraphs[1:], paragraphs, headlines[:1])  # of very short ones, what there is
    texts = ("\n".join(filter(None, part)) for part in parts)
    return Article(number, next(filter(None, texts), ""), tuple(labels))


def _beginnings(path: str) -> Iterator[str]:
    """`Top/News`, `Top/News/Sports` ... of a path that says more than the first of them."""
    steps = [step.strip() for step in path.split("/")]
    if steps[0] == TOP and len(steps) >= _SHORTEST:
        yield from (_joined(steps[:end]) for end in range(2, len(steps) + 1))


def _joined(steps: Iterable[str]) -> str:
    return "/".join(steps)


def _months_of(year: Path) -> Iterator[Month]:
    """Archives, and over them the folders that were unpacked; or the year itself, if articles lie in it."""
    packed: dict[str, Path] = {}
    if any(_ARTICLE.fullmatch(path.name) for path in year.iterdir()):
        yield Month(year.name, year)
    for path in sorted(year.iterdir(), key=lambda path: (path.is_dir(), path.name)):
        stem = path.name.partition(".")[0]
        if _TWO_DIGITS.fullmatch(stem) and path.is_dir():
            yield Month(f"{year.name}/{stem}", path, packed.get(stem))
        elif _TWO_DIGITS.fullmatch(stem) and _is_tar(path):
            packed[stem] = path
            yield Month(f"{year.name}/{stem}", path)


def _is_tar(path: Path) -> bool:
    return path.name.lower().endswith(_TAR)


def _files_of(month: Month, wanted: Mapping[int, Listed]) -> Iterator[tuple[int, bytes, str]]:
    """The numbers, bytes and names of the articles that are wanted."""
    try:
        yield from _loose(month.path, wanted) if month.path.is_dir() else _packed(month.path, wanted)
    except InputError:
        raise
    except archive_errors() as error:
        packed = "the archive of this month is damaged or cut short"
        what = "the folder of this month cannot be read" if month.path.is_dir() else packed
        remedy = "Copy it again."
        raise InputError(f"{what} ({error})", kind="unreadable", file=str(month.path), remedy=remedy) from error


def _loose(month: Path, wanted: Mapping[int, Listed]) -> Iterator[tuple[int, bytes, str]]:
    for path in sorted(month.rglob("*")):
        if _ARTICLE.fullmatch(path.name) and int(path.stem) in wanted:
            yield int(path.stem), loose_file(path), str(path)


def _packed(month: Path, wanted: Mapping[int, Listed]) -> Iterator[tuple[int, bytes, str]]:
    def is_wanted(name: str) -> bool:
        return _ARTICLE.fullmatch(name) is not None and int(name[:-4]) in wanted

    for name, data, place in packed_files(month, is_wanted):
        yield int(name[:-4]), data, place


def _missing(missing: Mapping[int, Listed], looked: Iterable[Month]) -> InputError:
    named = [one.name for one in missing.values()]
    wanted = {one.when for one in missing.values()}
    gone = sorted(when for when in wanted if when and not any(month.may_have(when) for month in looked))
    months = f"These months or years are not there at all: {listed(gone)}. " if gone else ""
    for month in looked:
        if month.unread and any(map(month.may_have, wanted)):
            months += f"{month.path} was read, although {month.unread.name} lies beside it: unpack that again. "
            break
    return InputError(
        f"listed articles that are not in the archive: {len(named):,} ({listed(named, 5)})",
        kind="missing-documents",
        remedy=f"{months}Is the archive whole, and are the lists those of this archive?",
    )


def _unlike_archive(source: Path) -> InputError:
    """What a folder may be that has no years in it."""
    below = [path for path in sorted(source.iterdir()) if path.is_dir()]
    for folder in below:
        if (folder / "data").is_dir() or any(_YEAR.fullmatch(path.name) for path in folder.iterdir()):
            return _wrong(source, "this looks like the folder above that of the archive", f"Give {folder}.")
    if _YEAR.fullmatch(source.name):
        return _wrong(source, "this looks like one year of the archive", f"Give {source.parent}.")
    packed = [path.name for path in source.iterdir() if _is_packed(path)]
    if packed:
        problem = f"there is a packed archive in this folder, {packed[0]}, and no data/1987 beside it"
        return _wrong(source, problem, "Unpack it; the archives of months that are in it may stay packed.")
    problem = "this is not the archive: there is neither data/1987/01.tgz nor data/1987/01/01 in it, nor other years"
    return _wrong(source, problem, "Give the folder of LDC2008T19, which has `data` in it.")


def _what_file(source: Path) -> str:
    if not source.exists():
        return "there is no such folder"
    return "this archive is still packed" if _is_packed(source) else "this is a file, not the folder of the archive"


def _is_packed(path: Path) -> bool:
    return path.name.lower().endswith((*_TAR, ".zip"))


def _wrong(source: Path, problem: str, remedy: str) -> InputError:
    return InputError(problem, kind="wrong-folder", file=str(source), remedy=remedy)
