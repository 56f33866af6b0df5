"""The data sets of a comparison: the same documents for all, their fingerprint, and what the results need of them."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin.compare.cells import DATA, FORMAT, DataSet, read_json
from hitin.errors import InputError, counted
from hitin.evaluation import truth_table
from hitin.files import FileProgress
from hitin.inputs import Documents, check_labelled, chunks, fingerprint, hold_out
from hitin.labelled import Reading, read_data, read_labelled
from hitin.model import documents_at_once
from hitin.settings import TrainingSettings
from hitin.taxonomy import Taxonomy
from hitin.writing import replacing, write_text

HELD_OUT = TrainingSettings.validation
"""The part of the training documents that is held out where there are no validation documents, for all the same."""
HELD_OUT_FOR_TEST = 0.2
"""The same where there are no test documents; it is taken first."""
_OPTION = re.compile(
    r"--(?P<name>(?:text|label)-key|label-delimiter|separator|(?:taxonomy-)?encoding)"
    r"(?P<value> '[^']*'| \S+(?= it is read)|(?<=encoding) [\w-]+)?"
)


@dataclass(frozen=True)
class Splits:
    """A taxonomy with all documents of a data set."""

    taxonomy: Taxonomy
    train: Documents
    val: Documents
    test: Documents
    warnings: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Equal for data sets that must give the same results."""
        return fingerprint(self.taxonomy, (self.train, self.val, self.test), size=6)


def read_splits(data: DataSet, progress: FileProgress | None = None) -> Splits:
    """Every document, checked; what is wrong is told with its file and line."""
    try:
        return _read_splits(data, progress)
    except InputError as error:
        error.remedy = error.remedy and _as_in_file(error.remedy, data.name)
        raise


def _as_in_file(remedy: str, data: str) -> str:
    """Options of other commands, as they stand in the file of a comparison."""

    def option(found: re.Match[str]) -> str:
        value = found["value"] and found["value"].strip().strip("'")
        return f"{found['name'].replace('-', '_')}{f' = {json.dumps(value)}' if value else ''} in [data.{data}]"

    return _OPTION.sub(option, remedy)


def _read_splits(data: DataSet, progress: FileProgress | None) -> Splits:
    given = {"delimiter" if name == "label_delimiter" else name: value for name, value in data.reading.items()}
    reading = Reading(**given)  # type: ignore[arg-type]  # which are all text
    found = read_data(data.taxonomy, data.train, data.val, reading, progress)
    train, val = found.train, found.val
    if data.test:
        test = read_labelled(data.test, reading, reading.labels(found.taxonomy), progress)
        check_labelled(len(test.texts), any(test.labels), "test", data.test)
    else:
        train, test = _held_out(train, HELD_OUT_FOR_TEST, 1, data, "test")
    if val is None:
        train, val = _held_out(train, HELD_OUT, 0, data, "val")
    leaked = sum(map(set(train.texts).__contains__, test.texts))
    said = f"{counted(leaked, 'test document has', 'test documents have')} the text of a training document"
    told = [said] if leaked else []
    return Splits(found.taxonomy, train, val, test, (*found.warnings, *told))


def _held_out(train: Documents, part: float, seed: int, data: DataSet, split: str) -> tuple[Documents, Documents]:
    """The rest of the training documents, and those of a split that has no file."""
    rest, held = hold_out(train, part, seed)
    if held is None:
        raise InputError(
            "there are too few training documents to hold some out",
            kind="no-documents",
            file=data.train[0],
            remedy=f'Give [data.{data.name}] documents of its own for that: {split} = "..."',
        )
    return rest, held


def settle_data(
    data: DataSet, folder: Path, progress: FileProgress | None = None, *, writes: bool = True
) -> tuple[str, tuple[str, ...]]:
    """The key of a data set, and what a person should know of it. It is read once, and again when a file changes.

    Without `writes`, what was read is not kept in the folder.
    """
    path, files = data_file(folder, data.name), _files_key(data)
    known = read_json(path) or {}
    if known.get("files") == files and known.get("format") == FORMAT and truth_file(folder, data.name).is_file():
        if known["title"] != data.title and writes:
            _write_json(path, known | {"title": data.title})
        return str(known["key"]), ()
    splits = read_splits(data, progress)
    key = splits.key
    if writes:
        _write_truth(splits, truth_file(folder, data.name))
        _write_json(path, {"format": FORMAT, "key": key, **_facts(splits, data), "files": files})
    return key, splits.warnings


def data_file(folder: Path, name: str) -> Path:
    """What is known of a data set."""
    return folder / DATA / f"{name}.json"


def truth_file(folder: Path, name: str) -> Path:
    """The labels of its test documents."""
    return folder / DATA / f"{name}.npz"


def write_tables(path: Path, tables: dict[str, NDArray[np.uint8]], labels: int) -> None:
    """Tables of documents by labels, packed along labels."""
    arrays: dict[str, Any] = {**tables, "labels": np.array(labels)}
    with replacing(path) as part, part.open("wb") as file:
        np.savez_compressed(file, **arrays)


def packed(documents: Documents, taxonomy: Taxonomy) -> NDArray[np.uint8]:
    """(documents, |Y| / 8): the labels of documents."""
    parts = chunks(documents.labels, documents_at_once(taxonomy))
    return np.concatenate([np.packbits(truth_table(some, taxonomy), axis=1) for some in parts])


def _write_truth(splits: Splits, path: Path) -> None:
    write_tables(path, {"truth": packed(splits.test, splits.taxonomy)}, len(splits.taxonomy))


def _facts(splits: Splits, data: DataSet) -> dict[str, object]:
    sizes = {name: len(getattr(splits, name).texts) for name in ("train", "val", "test")}
    return {
        "name": data.name,
        "title": data.title,
        "documents": sizes,
        "labels": len(splits.taxonomy),
        "levels": [int(size) for size in splits.taxonomy.level_sizes],
        "labels_a_document": float(np.mean([len(ids) for ids in splits.train.labels])),
        "held_out": not data.val,
        "held_out_for_test": not data.test,
    }


def _files_key(data: DataSet) -> str:
    """Another one when a file was written anew. No path stands in it."""
    digest = blake2b(json.dumps(data.reading, sort_keys=True).encode() if data.reading else b"", digest_size=6)
    for split, files in (("taxonomy", (data.taxonomy,)), ("train", data.train), ("val", data.val), ("test", data.test)):
        for file in files:
            digest.update(json.dumps([split, str(Path(file).absolute()), *_stamp(file)]).encode())
    return digest.hexdigest()


def _stamp(file: str) -> Iterator[int]:
    try:
        stat = Path(file).stat()
    except (OSError, ValueError):  # which is told by whoever reads it
        return
    yield from (stat.st_size, stat.st_mtime_ns)


def _write_json(path: Path, value: dict[str, object]) -> None:
    write_text(path, [json.dumps(value, indent=2, ensure_ascii=False) + "\n"])
