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


# Processes.


def descendants(pid: int) -> dict[int, str]:
    """The processes below one, with their names."""
    children: dict[int, list[tuple[int, str]]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            name = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append((int(folder.name), name))
    found: dict[int, str] = {}
    waiting = [pid]
    while waiting:
        for child, name in children.get(waiting.pop(), []):
            found[child] = name
            waiting.append(child)
    return found


def is_running(pid: int, name: str) -> bool:
    """Whether a process is there under the name that it had: numbers are used again."""
    try:
        now = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return False
    return bool(now) and now == name
