"""One shard scored: noted as finished, and its answers put in their place, whole or not at all."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from hitin.answering import answer_records
from hitin.answers import Answers
from hitin.bulk.ledger import Failed, Finished, Ledger, Stamp
from hitin.bulk.request import Request
from hitin.bulk.shards import Shard, check_name
from hitin.bulk.writers import writing
from hitin.compression import format_suffix
from hitin.documents import Document
from hitin.errors import InputError
from hitin.model import Advance
from hitin.model_folder import checksum_of
from hitin.writing import replacing

T = TypeVar("T")

OF_ALL = ("unwritable", "damaged-model")
"""Kinds of errors that concern every shard."""

Outcome = Finished | Failed


def score_shard(
    shard: Shard, request: Request, answers: Answers, ledger: Ledger, advance: Advance = lambda _: None
) -> Outcome:
    """Answer the documents of a shard, unless that is done. What is wrong with its file is its own failure only."""
    try:
        check_name(shard)
        return ledger.finished(shard) or _scored(shard, request, answers, ledger, advance)
    except InputError as error:
        if error.kind in OF_ALL:
            raise
        error.file = error.file or shard.file
        return Failed(shard.name, error)


def _scored(shard: Shard, request: Request, answers: Answers, ledger: Ledger, advance: Advance) -> Finished:
    start, rows, file = time.monotonic(), 0, Path(shard.file)
    before = _of_file(file, Stamp.of)
    with replacing(ledger.out / shard.name) as part:
        with (
            writing(part, shard.name, request) as writer,
            closing(answer_records(_chunks(shard, request, answers), answers)) as answered,
        ):
            for records in answered:
                writer.write(records)
                rows += len(records)
                advance(len(records))
        size, checksum = part.stat().st_size, checksum_of(part)
        input_checksum = _of_file(file, checksum_of)
        if _of_file(file, Stamp.of) != before:
            raise _changed(shard)
        seconds = time.monotonic() - start
        finished = Finished(shard.name, rows, size, checksum, seconds, before, input_checksum)
        ledger.note(finished)
    return finished


def _chunks(shard: Shard, request: Request, answers: Answers) -> Iterator[list[Document]]:
    """The documents; none of a file of nothing, as programs write that cut their data into parts."""
    try:
        yield from request.texts(answers).chunks([shard.file])
    except InputError as error:
        if error.kind != "empty-file" or format_suffix(shard.file) == ".parquet":
            raise


def _of_file(file: Path, look: Callable[[Path], T]) -> T:
    """What a look at a file of documents tells."""
    try:
        return look(file)
    except OSError as error:
        raise InputError(
            f"the file cannot be read ({error.strerror})",
            kind="unreadable",
            file=str(file),
            remedy="Is it still there?",
        ) from error


def _changed(shard: Shard) -> InputError:
    return InputError(
        "the file was changed while it was read", kind="changed", file=shard.file, remedy="Score it again, at rest."
    )
