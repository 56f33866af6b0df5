"""Documents put aside before training: some to score the model on, perhaps some to choose its decisions by."""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal, get_args

import numpy as np

from hitin.documents import Document, Keys, as_line, documents_of, print_of
from hitin.errors import InputError, counted
from hitin.files import STANDARD_INPUT, FileProgress
from hitin.inputs import no_documents, order_of_groups
from hitin.option_values import bad_option
from hitin.writing import check_folder, check_new, check_not_read, replacing

Split = Literal["train", "val", "test"]
SPLITS: tuple[Split, ...] = get_args(Split)


@dataclass(frozen=True)
class Shares:
    """Which part of the documents is put aside, and by which chance."""

    test: float = 0.2
    val: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, share in (("test", self.test), ("val", self.val)):
            if not 0 <= share < 1:
                raise bad_option(f"{name} is {share}", "It is a part of the documents, such as 0.2.")
        if not 0 < self.test + self.val < 1:
            raise bad_option(
                f"test and val are {self.test + self.val:g} together", "Some documents are put aside, and some stay."
            )

    @property
    def splits(self) -> tuple[Split, ...]:
        """Those that have documents."""
        return tuple(split for split in SPLITS if split == "train" or getattr(self, split))


def write_splits(
    files: Sequence[str],
    out: str | Path,
    shares: Shares,
    *,
    keys: Keys | None = None,
    encoding: str | None = None,
    overwrite: bool = False,
    progress: FileProgress | None = None,
) -> dict[Path, int]:
    """Write the documents of each split into a file of its own, all of them or none; how many each has.

    Equal texts stay together, and which split a text is in depends on the texts and the seed alone, not on their
    order. Labels are written as they are read. The documents are read twice, and none is kept.
    """
    paths = {split: Path(out, f"{split}.jsonl") for split in shares.splits}
    _check_files(files, paths, out, overwrite)

    def documents() -> Iterator[Document]:
        return documents_of(files, keys or Keys(), encoding=encoding, progress=progress)

    splits = drawn(array("Q", (print_of(document.text.split()) for document in documents())), shares)
    counts: Counter[Split] = Counter(splits)
    for split, path in paths.items():
        if not counts[split]:
            raise _too_few(len(splits), split, path, files)
    with writers(paths) as outs:
        for split, document in zip(splits, documents(), strict=True):
            outs[split].write(as_line(document))
    return {path: counts[split] for split, path in paths.items()}


def _too_few(documents: int, split: Split, path: Path, files: Sequence[str]) -> InputError:
    """A split would have none of the documents."""
    if not documents:
        return no_documents(files)
    remedy = f"{counted(documents, 'document is', 'documents are')} too few: "
    if documents > 1:
        remedy += f"put a {'smaller' if split == 'train' else 'larger'} part aside, or "
    problem = f"there would be no document in {path.name}"
    return InputError(problem, kind="no-documents", file=files[0], remedy=f"{remedy}add documents.")


@contextmanager
def writers(paths: Mapping[Split, Path]) -> Iterator[dict[Split, IO[str]]]:
    """A stream for the file of each split. All files take their places when the block ends well, or none."""
    with ExitStack() as stack:
        parts = {split: stack.enter_context(replacing(path)) for split, path in paths.items()}
        with ExitStack() as opened:
            yield {
                split: opened.enter_context(part.open("w", encoding="utf-8", newline="\n"))
                for split, part in parts.items()
            }


def drawn(prints: Sequence[int], shares: Shares) -> list[Split]:
    """The split of each document, by the fingerprint of its text."""
    distinct, inverse, sizes = np.unique(np.array(prints, dtype=np.uint64), return_inverse=True, return_counts=True)
    order = order_of_groups(sizes, shares.test + shares.val, np.random.default_rng((shares.seed, 2)))
    tests, vals = (round(share * len(distinct)) for share in (shares.test, shares.val))
    numbers = np.zeros(len(distinct), dtype=np.int64)
    numbers[order[:tests]] = SPLITS.index("test")
    numbers[order[tests : tests + vals]] = SPLITS.index("val")
    return [SPLITS[number] for number in numbers[inverse].tolist()]


def _check_files(files: Sequence[str], paths: Mapping[Split, Path], out: str | Path, overwrite: bool) -> None:
    if STANDARD_INPUT in files:
        raise bad_option("standard input is read once, and documents are read twice here", "Name a file instead.")
    check_folder(out, paths["train"].name)
    for path in paths.values():
        check_not_read(path, files)
        check_new(path, overwrite)
