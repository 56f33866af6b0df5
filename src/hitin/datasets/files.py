"""What every data set writes: a taxonomy and the documents of three splits, in the files that every command reads."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from hitin.documents import Document, as_line
from hitin.errors import InputError, counted, printable
from hitin.splitting import SPLITS, Split, writers
from hitin.taxonomy import Taxonomy
from hitin.writing import check_folder, check_new, check_writable, replacing

TAXONOMY = "taxonomy.tsv"


@dataclass(frozen=True)
class DataFiles:
    """Where the files are, and how much is in them."""

    taxonomy: Path
    train: Path
    val: Path
    test: Path
    labels: tuple[int, ...]
    """By level, from the top."""
    documents: tuple[int, int, int]
    """Of training, validation and test."""
    labels_given: int
    """Of all documents together."""

    @property
    def splits(self) -> tuple[tuple[Path, int], ...]:
        """The file of each split, and its documents."""
        return tuple(zip((self.train, self.val, self.test), self.documents, strict=True))

    @property
    def labels_a_document(self) -> float:
        return self.labels_given / max(1, sum(self.documents))

    def to_json(self) -> dict[str, object]:
        return {
            "files": {"taxonomy": str(self.taxonomy), **{path.stem: str(path) for path, _ in self.splits}},
            "labels": list(self.labels),
            "documents": dict(zip(SPLITS, self.documents, strict=True)),
            "labels_a_document": round(self.labels_a_document, 4),
        }


def check_folder_of_data(folder: str | Path, *, overwrite: bool = True) -> None:
    """Whether a data set can be written into a folder, before long work for it."""
    check_folder(folder, TAXONOMY)
    for path in _paths(folder):
        check_writable(path)
        check_new(path, overwrite)


def write_data(
    folder: str | Path, taxonomy: Taxonomy | Callable[[], Taxonomy], documents: Iterable[tuple[Split, Document]]
) -> DataFiles:
    """Write `taxonomy.tsv`, `train.jsonl`, `val.jsonl` and `test.jsonl`: all of them, or none.

    Documents come one at a time, in any order of splits, with all of their labels, and none is kept. A taxonomy that
    is known only when all were seen is a function, called then. Files that are there are replaced.
    """
    paths = _paths(folder)
    coming = _some(documents)  # before a folder is made: most mistakes are found by then
    counts: Counter[Split] = Counter()
    labels_given = 0
    by_split = dict(zip(SPLITS, paths[1:], strict=True))
    with _emptied(Path(folder)), replacing(paths[0]) as part, writers(by_split) as outs:
        for split, document in coming:
            outs[split].write(as_line(document))
            counts[split] += 1
            labels_given += len(document.labels)
        known = taxonomy if isinstance(taxonomy, Taxonomy) else taxonomy()
        known.write(part, format="hiagm")
    train, val, test = (counts[split] for split in SPLITS)
    return DataFiles(*paths, known.level_sizes, (train, val, test), labels_given)


def in_splits(
    *, train: Iterable[Document], val: Iterable[Document], test: Iterable[Document]
) -> Iterator[tuple[Split, Document]]:
    """The documents of each split with its name, as `write_data` takes them."""
    for split, documents in zip(SPLITS, (train, val, test), strict=True):
        for document in documents:
            yield split, document


def show_files(title: str, files: DataFiles, training: tuple[str, ...] = ()) -> str:
    """What was written, and what to do with it, for people; `training` is what training is best told besides."""
    levels = " > ".join(f"{size:,}" for size in files.labels)
    rows = [(files.taxonomy, f"{counted(sum(files.labels), 'label')}, {levels} by level")]
    rows += [(path, counted(count, "document")) for path, count in files.splits]
    width = max(len(str(path)) for path, _ in rows)
    model = files.taxonomy.with_name("model")
    commands = [
        ("check", files.taxonomy, files.train, files.val, files.test),
        ("train", files.taxonomy, files.train, "--val", files.val, *training, "--out", model),
    ]
    lines = [
        title,
        *(f"  {path!s:<{width}}  {what}" for path, what in rows),
        "Next:",
        *(f"  hitin {shlex.join(map(str, command))}" for command in commands),
    ]
    return "\n".join(printable(line, most=1000) for line in lines)


def _paths(folder: str | Path) -> tuple[Path, Path, Path, Path]:
    train, val, test = (Path(folder, f"{split}.jsonl") for split in SPLITS)
    return Path(folder, TAXONOMY), train, val, test


def _some(documents: Iterable[tuple[Split, Document]]) -> Iterator[tuple[Split, Document]]:
    """The documents, the first of which has been seen."""
    coming = iter(documents)
    for first in coming:
        return chain([first], coming)
    raise InputError(
        "no document was found", kind="no-documents", remedy="Is this the whole data set, as it was downloaded?"
    )


@contextmanager
def _emptied(folder: Path) -> Iterator[None]:
    """After an error the folder, and those above it, are gone again if they are empty and were not there before."""
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        yield
    except BaseException:
        with suppress(OSError):
            for each in new:
                each.rmdir()
        raise
