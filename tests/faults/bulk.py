"""Shards to score in bulk, what must be there afterwards, and the processes of a run."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from hitin.documents import read_documents
from hitin.model_folder import checksum_of

KEPT = ".hitin"


def write_shards(folder: Path, shards: int, rows: int) -> Path:
    """Documents with numbers of their own, as JSON lines, compressed ones, a table and Parquet."""
    import pyarrow
    from pyarrow import parquet

    for shard in range(shards):
        texts = [f"the code {shard} by text message comes {row} minutes too late" for row in range(rows)]
        ids = [f"{shard}-{row}" for row in range(rows)]
        path = folder / f"part-{shard % 3}" / f"{shard:03}"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps({"id": id, "text": text}) + "\n" for id, text in zip(ids, texts, strict=True)]
        if shard % 4 == 0:
            path.with_suffix(".jsonl").write_text("".join(lines))
        elif shard % 4 == 1:
            path.with_suffix(".jsonl.gz").write_bytes(gzip.compress("".join(lines).encode(), mtime=0))
        elif shard % 4 == 2:
            cells = [f"{id},{text}\n" for id, text in zip(ids, texts, strict=True)]
            path.with_suffix(".csv").write_text("".join(["id,text\n", *cells]))
        else:
            parquet.write_table(pyarrow.table({"id": ids, "text": texts}), path.with_suffix(".parquet"))
    return folder


def answers(folder: Path) -> dict[str, str]:
    """The checksum of each file of answers."""
    return {path.relative_to(folder).as_posix(): checksum_of(path) for path in _files(folder)}


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and KEPT not in path.parts)


def ids(folder: Path) -> list[str]:
    """The ids of all answers, sorted."""
    return sorted(id for path in _files(folder) for id in _ids_of(path))


def _ids_of(path: Path) -> list[str]:
    if path.suffix == ".parquet":
        from pyarrow import parquet

        found: list[str] = parquet.read_table(path, columns=["id"])["id"].to_pylist()
        return found
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return [json.loads(line)["id"] for line in text.splitlines()]


def ids_of_documents(folder: Path) -> list[str]:
    documents = (document for path in _files(folder) for document in read_documents(path, labelled=False))
    return sorted(str(document.id) for document in documents)


def leftovers(folder: Path) -> list[Path]:
    """Files that were begun and not finished."""
    return [path for path in folder.rglob("*") if path.name.endswith(".part") or path.name.startswith(".tmp")]
