"""What a classifier is given in Python: texts and labels in the shapes that people have; documents held out."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from hashlib import blake2b
from itertools import islice, pairwise, zip_longest
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from hitin.errors import InputError, counted, listed, shown
from hitin.files import name_of
from hitin.labels import LabelReader, unknown_label
from hitin.names import composed
from hitin.taxonomy import Taxonomy

T = TypeVar("T")
Labels = object
"""The labels of a document: a name, a path `A > B`, or several of them."""
LabelIds = tuple[int, ...]
"""The numbers of a document's labels, ancestors included."""


class Documents(NamedTuple):
    """Texts and the numbers of their labels."""

    texts: list[str]
    labels: list[LabelIds]

    def take(self, rows: Sequence[int]) -> "Documents":
        return Documents([self.texts[row] for row in rows], [self.labels[row] for row in rows])


def fingerprint(taxonomy: Taxonomy, splits: Iterable[Documents], *, said: object = None, size: int = 16) -> str:
    """Equal for equal labels and documents, and for what else is `said`, in plain values."""
    digest = blake2b(digest_size=size)
    if said is not None:
        digest.update(json.dumps(said).encode())
    digest.update(json.dumps([taxonomy.labels, taxonomy.edges.tolist()]).encode())
    for documents in splits:
        digest.update(str(len(documents.texts)).encode())
        for pair in zip(*documents, strict=True):
            digest.update(json.dumps(pair).encode())
    return digest.hexdigest()


def texts_of(texts: Iterable[str]) -> Iterator[str]:
    """The texts one by one, checked."""
    if isinstance(texts, str):
        raise InputError(
            "one text was given where a list of texts is expected", kind="bad-documents", remedy="Write [text]."
        )
    if isinstance(texts, Set):
        raise InputError("the texts are a set, which has no order", kind="bad-documents", remedy="Give a list of them.")
    for number, text in enumerate(_iterable(texts, "the texts are"), start=1):
        if not isinstance(text, str):
            raise InputError(f"a text is {shown(text)}", kind="bad-documents", line=number, remedy="Texts are strings.")
        yield text


def label_ids_of(taxonomy: Taxonomy, labels: Iterable[Labels], what: str) -> Iterator[LabelIds]:
    """The numbers of each document's labels: from names, or from a matrix of 0 and 1 with a column for each label."""
    if isinstance(labels, str):
        raise InputError(
            f"one {what} label was given where a list is expected, an entry for each document",
            kind="bad-labels",
            remedy="Write [label] for a single document.",
        )
    rows = _matrix_rows(taxonomy, labels)
    if rows is not None:
        yield from map(taxonomy.closure, rows)
        return
    reader = LabelReader(taxonomy)
    for number, given in enumerate(_iterable(labels, f"the {what} labels are"), start=1):
        yield _ids(reader, given, what, number)


def pairs_of(
    taxonomy: Taxonomy, texts: Iterable[str], labels: Iterable[Labels], what: str
) -> Iterator[tuple[str, LabelIds]]:
    """Texts with the numbers of their labels, one by one."""
    pairs = zip_longest(texts_of(texts), label_ids_of(taxonomy, labels, what))
    for number, (text, ids) in enumerate(pairs):
        if text is None or ids is None:
            fewer, more = ("texts", "sets of labels") if text is None else ("sets of labels", "texts")
            raise InputError(
                f"there are {number} {what} {fewer} but more {more}",
                kind="bad-documents",
                remedy="Each text needs its labels, in the same order.",
            )
        yield text, ids


def documents_of(taxonomy: Taxonomy, texts: Iterable[str], labels: Iterable[Labels], what: str) -> Documents:
    """All of the documents, at least one of which has a label."""
    documents = Documents([], [])
    for text, ids in pairs_of(taxonomy, texts, labels, what):
        documents.texts.append(text)
        documents.labels.append(ids)
    check_labelled(len(documents.texts), any(documents.labels), what)
    return documents


def check_documents(taxonomy: Taxonomy, documents: Documents, what: str) -> None:
    """Refuse documents that `documents_of` would not have made."""
    if len(documents.texts) != len(documents.labels):
        raise InputError(
            f"there are {len(documents.texts)} {what} texts and {len(documents.labels)} sets of labels",
            kind="bad-documents",
            remedy="Each text needs its labels, in the same order.",
        )
    check_labelled(len(documents.texts), any(documents.labels), what)
    for ids in set(documents.labels):
        if ids and (min(ids) < 0 or max(ids) >= len(taxonomy) or taxonomy.closure(ids) != ids):
            raise InputError(
                f"a {what} document has the labels {shown(ids)}",
                kind="bad-labels",
                remedy="They are numbers of the taxonomy in rising order, all ancestors included: taxonomy.closure.",
            )


def validation_of(taxonomy: Taxonomy, validation: object) -> Documents:
    """The validation documents: a pair of texts and labels."""
    if not isinstance(validation, list | tuple) or len(validation) != 2 or validation[1] is None:
        raise InputError(
            "validation is no pair of texts and labels", kind="bad-documents", remedy="Write (texts, labels)."
        )
    return documents_of(taxonomy, validation[0], validation[1], "validation")


def check_labelled(documents: int, has_labels: bool, what: str, files: Sequence[str] = ()) -> None:
    """Refuse no documents at all, or none with a label; `files` are those they were looked for in."""
    if not documents:
        raise no_documents(files, f"{what} documents")
    if not has_labels:
        remedy = "Is the right key or column taken for the labels?"
        raise InputError(f"no {what} document has a label", kind="no-labels", file=_first(files), remedy=remedy)


def no_documents(files: Sequence[str], what: str = "documents") -> InputError:
    return InputError(f"there are no {what}", kind="no-documents", file=_first(files), remedy="At least one is needed.")


def _first(files: Sequence[str]) -> str | None:
    return name_of(files[0]) if files else None


def chunks(values: Iterable[T], size: int) -> Iterator[list[T]]:
    """Lists of so many values, the last with fewer."""
    waiting = iter(values)
    while chunk := list(islice(waiting, size)):
        yield chunk


def hold_out(documents: Documents, part: float, seed: int) -> tuple[Documents, Documents | None]:
    """Training and validation documents, chosen by chance; equal texts stay together. `None` where they are too few."""
    place: dict[str, int] = {}
    groups = np.array([place.setdefault(text, len(place)) for text in documents.texts])
    order = order_of_groups(np.bincount(groups), part, np.random.default_rng((seed, 1)))
    is_held = np.isin(groups, order[: round(part * len(place))])
    rest, held = (documents.take(np.flatnonzero(rows).tolist()) for rows in (~is_held, is_held))
    return (rest, held) if any(rest.labels) and any(held.labels) else (documents, None)


def order_of_groups(sizes: NDArray[np.int64], share: float, chance: np.random.Generator) -> NDArray[np.int64]:
    """In which order groups of documents are put aside: by chance, but those larger than the whole share come last.

    A text that very many documents have, none at all for instance, would be most of what is put aside.
    """
    order = chance.permutation(len(sizes))
    is_large = sizes[order] > max(1, share * sizes.sum())
    return np.concatenate([order[~is_large], order[is_large]])


def _iterable(values: Iterable[Any], what: str) -> Iterable[Any]:
    if isinstance(values, Mapping) or hasattr(values, "columns"):
        raise InputError(
            f"{what} a whole {type(values).__name__}, which would be read as the names of its columns or keys",
            kind="bad-documents",
            remedy='Give one column of it: df["text"], say.',
        )
    if not isinstance(values, Iterable):
        raise InputError(
            f"{what} {shown(values)}", kind="bad-documents", remedy="A list is expected, an entry for each document."
        )
    return values


def _ids(reader: LabelReader, given: Any, what: str, number: int) -> LabelIds:
    try:
        read = reader.read(given if isinstance(given, Iterable) else (given,))
    except InputError as error:  # what cannot be a label at all
        error.line = number
        raise
    if read.unknown:
        raise unknown_label(reader, read.unknown[0], f"the {what} label", line=number)
    return read.ids


def _matrix_rows(taxonomy: Taxonomy, labels: Any) -> Iterator[list[int]] | None:
    """Where the 1s of a matrix are, row by row; `None` if the labels are no matrix of numbers."""
    if hasattr(labels, "columns"):  # of pandas, which may name them in another order
        labels = _named_columns(taxonomy, labels)
    elif hasattr(labels, "detach"):  # of torch
        labels = labels.detach().cpu().numpy()
    if isinstance(labels, np.ndarray) and labels.dtype == object:
        labels = _numbers(labels)
    if len(getattr(labels, "shape", ())) != 2 or np.dtype(labels.dtype).kind not in "biuf":
        return None
    if labels.shape[1] != len(taxonomy):
        raise InputError(
            f"the matrix of labels has {counted(labels.shape[1], 'column')}, "
            f"the taxonomy {counted(len(taxonomy), 'label')}",
            kind="bad-labels",
            remedy="It needs a column for each label, in the order of the taxonomy.",
        )
    return _sparse_rows(labels.tocsr()) if hasattr(labels, "tocsr") else map(_ones, np.asarray(labels))


def _numbers(values: Any) -> Any:
    """An array of Python's objects as numbers, where all are."""
    array = np.asarray(values)
    is_number = all(isinstance(value, int | float | np.number | np.bool_) for value in array.flat)
    return array.astype(float) if array.ndim == 2 and is_number else values


def _sparse_rows(matrix: Any) -> Iterator[list[int]]:
    """Of SciPy's compressed rows."""
    for start, end in pairwise(matrix.indptr.tolist()):
        yield matrix.indices[start:end][_ones(matrix.data[start:end])].tolist()


def _ones(row: NDArray[Any]) -> list[int]:
    is_one = row == 1
    if not (is_one | (row == 0)).all():
        wrong = row[~is_one & (row != 0)][0]
        raise InputError(
            f"the matrix of labels holds {wrong}",
            kind="bad-labels",
            remedy="1 says that a document has a label, 0 not.",
        )
    found: list[int] = np.flatnonzero(is_one).tolist()
    return found


def _named_columns(taxonomy: Taxonomy, table: Any) -> NDArray[Any]:
    columns = {composed(str(name)): name for name in table.columns}
    missing = [label for label in taxonomy.labels if label not in columns]
    if missing or len(table.columns) != len(taxonomy):
        others = [str(name) for name in table.columns if name not in taxonomy]
        raise InputError(
            f"the columns of the table of labels are not the labels of the taxonomy (missing: {listed(missing)}; "
            f"unknown: {listed(others)})",
            kind="bad-labels",
            remedy="It needs a column for each label, called by its name.",
        )
    found: NDArray[Any] = np.asarray(table[[columns[label] for label in taxonomy.labels]])
    if found.dtype == object:  # of several kinds of columns, or of those that may have gaps
        found = _numbers(found)
    if found.dtype == object:
        raise InputError(
            "the table of labels has cells without a number",
            kind="bad-labels",
            remedy="1 says that a document has a label, 0 not.",
        )
    return found
