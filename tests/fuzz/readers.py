"""How files of taxonomies, documents, vectors, settings and decisions are read, and the bodies of requests."""

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hitin.compare.plan import read_plan
from hitin.compression import zstd
from hitin.decisions import Decisions
from hitin.documents import Document, read_documents
from hitin.encoders.vectors import read_vectors
from hitin.errors import InputError
from hitin.option_values import parse_option
from hitin.settings import Run
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.reading import read_taxonomy
from tests.conftest import REPOSITORY
from tests.fuzz import folders
from tests.fuzz.target import Way, check_told, in_file

# Taxonomies.


def _read_taxonomy(path: Path, **options: Any) -> None:
    found = read_taxonomy(path, **options)
    found.warn()
    found.taxonomy.write(path.parent / "again.json")
    again = Taxonomy.read(path.parent / "again.json", root=None)
    assert again.labels == found.taxonomy.labels
    assert (again.edges == found.taxonomy.edges).all()


_TSV = (REPOSITORY / "examples" / "tickets" / "taxonomy.tsv").read_bytes()
_EDGES = b'parent,child\nA,"B, b"\nA,C\nC,D\n,E\n'
_PATHS = b"# Version: 3\nA > B > C\nA > D\nE\n"
_NESTED = b'{"A": {"B": ["C", "D"], "E": {}}, "F": []}'
_LISTED = json.dumps(Taxonomy.from_nested({"A": {"B": ["C"]}}).labels).encode()
_LABELS = b'{"labels": [{"label": "A", "parents": []}, {"label": "B", "parents": ["A"], "description": "b"}]}'
_NODES = b'[{"name": "A", "children": [{"name": "B", "children": []}, {"name": "C"}]}, {"id": "D", "parent": "A"}]'


def taxonomy() -> list[Way]:
    texts = [_TSV, _EDGES, _PATHS, _NESTED, _LISTED, _LABELS, _NODES]
    wide = [text.decode().encode(name) for text in texts[:4] for name in ("utf-16", "utf-32", "utf-8-sig")]
    old = [text.replace(b"\n", b"\r") for text in texts[:3]]
    ways: list[tuple[str, dict[str, Any], Callable[[bytes], bytes], list[bytes]]] = [
        ("a.tsv", {}, bytes, [_TSV, *wide, *old]),
        ("a.csv", {"homonyms": "separate"}, bytes, [_EDGES, *wide]),
        ("a.txt", {}, bytes, [*texts, *old]),
        ("a.txt", {"homonyms": "separate", "root": None}, bytes, texts),
        ("a.json", {}, bytes, [_NESTED, _LISTED, _LABELS, _NODES]),
        ("a.json", {"homonyms": "separate"}, bytes, [_NESTED, _LABELS, _NODES]),
        ("a.txt", {"separator": "/"}, bytes, [b"A/B/C\nA/D\n"]),
        ("a.tsv", {"encoding": "latin-1"}, bytes, texts),
        ("a.json.gz", {}, gzip.compress, [_NESTED, _LABELS]),
        ("a.tsv.gz", {}, bytes, [gzip.compress(_TSV), bz2.compress(_TSV), lzma.compress(_TSV)]),
        *(("a", {"format": format}, bytes, texts) for format in ("hiagm", "edges", "json", "paths")),
    ]
    return [Way(in_file(name, partial(_read_taxonomy, **options), pack), seeds) for name, options, pack, seeds in ways]


# Documents.


def _read_documents(path: Path, **options: Any) -> None:
    """With the bad ones noted, and then with the first of them told."""
    noted: list[InputError] = []
    found: list[Document] = []
    try:
        found += list(read_documents(path, on_error=noted.append, **options))
    except InputError as error:
        noted.append(error)
    for each in noted:
        check_told(each)
    again = list(read_documents(path, **options))
    assert not noted
    assert again == found


_JSONL = b"""{"text": "a b", "label": ["A", "B"], "id": 7}
{"token": ["a", "b"], "label": "A > B"}

{"text": "", "label": []}
"""
_CSV = b'id,text,label\n1,"a, ""b""\nc",A > B\n2,d,\n'
_TABS = b'text\tlabel\na\tA > B\n"b\nc"\tA; B\n'


def _parquet(**options: Any) -> bytes:
    import pyarrow
    from pyarrow import parquet

    table = pyarrow.table({"text": ["a b", None, "c"] * 20, "label": [["A"], ["A", "B"], []] * 20, "id": range(60)})
    sink = io.BytesIO()
    parquet.write_table(table, sink, **options)
    return sink.getvalue()


def documents() -> list[Way]:
    texts = [_JSONL, _CSV, _TABS]
    wide = [text.decode().encode(name) for text in texts for name in ("utf-16", "utf-32", "utf-8-sig")]
    packed = [pack(_JSONL) for pack in (gzip.compress, bz2.compress, lzma.compress, zstd().compress)]
    tables = [_parquet(), _parquet(compression="none", use_dictionary=False), _parquet(compression="zstd")]
    ways: list[tuple[str, dict[str, Any], Callable[[bytes], bytes], list[bytes]]] = [
        ("a.jsonl", {}, bytes, [_JSONL, *wide]),
        ("a.csv", {}, bytes, [_CSV, *wide]),
        ("a.tsv", {}, bytes, [_TABS, *wide]),
        ("a", {"labelled": False}, bytes, [*texts, *wide, *(text.replace(b"\n", b"\r") for text in texts)]),
        ("a.jsonl", {"encoding": "shift_jis"}, bytes, texts),
        ("a.csv", {"encoding": "utf-16-le"}, bytes, [_CSV.decode().encode("utf-16-le")]),
        ("a.csv", {"text_key": "id", "label_key": "text"}, bytes, [_CSV]),
        ("a.jsonl.zst", {}, bytes, packed),
        ("a.jsonl.gz", {}, gzip.compress, [_JSONL]),
        ("a.csv.zst", {}, zstd().compress, [_CSV]),
        ("a.parquet", {}, bytes, tables),
        ("a.parquet.xz", {}, lzma.compress, tables),
    ]
    return [Way(in_file(name, partial(_read_documents, **options), pack), seeds) for name, options, pack, seeds in ways]


# Word vectors.


def _read_vectors(path: Path, wanted: list[str] | None = None) -> None:
    found = read_vectors(path, wanted)
    assert found.matrix.shape == (len(found.words), found.width)
    assert np.isfinite(found.matrix).all()
    assert len(set(found.words)) == len(found.words)


def _archive(**arrays: Any) -> bytes:
    sink = io.BytesIO()
    words = np.frombuffer("the\nof\nthé".encode(), dtype=np.uint8)
    np.savez(
        sink, **{"q": np.arange(6, dtype=np.int8).reshape(3, 2), "scale": np.float32(0.1), "words": words} | arrays
    )
    return sink.getvalue()


def _binary(words: Sequence[bytes], end: bytes = b"\n") -> bytes:
    numbers = np.arange(3, dtype="<f4").tobytes()
    return b"%d 3\n" % len(words) + b"".join(word + b" " + numbers + end for word in words)


def vectors() -> list[Way]:
    text = b"the 0.1 0.2 -3e-2\nof 1 2 3\na b 4 5 6\nth\xc3\xa9 7 8 9\n"
    binary = [_binary([b"the", b"of", "thé".encode()]), _binary([b"the", b"\xff"], b"")]
    archives = [_archive(), _archive(scale=np.ones((3, 1), np.float32)), _archive(q=np.ones((3, 2), np.float16))]
    everything = [text, b"4 3\n" + text, *binary]
    packed = [pack(each) for each in everything for pack in (gzip.compress, lzma.compress)]
    wanted = partial(_read_vectors, wanted=["the", "a b"])
    return [
        Way(in_file("a.txt", _read_vectors), everything),
        Way(in_file("a.vec", wanted), everything),
        Way(in_file("a.bin", _read_vectors), binary),
        Way(in_file("a.bin", wanted), binary),
        Way(in_file("a.gz", _read_vectors), packed),
        Way(in_file("a.txt.gz", _read_vectors, gzip.compress), everything),
        Way(in_file("a.npz", _read_vectors), archives),
        Way(in_file("a.txt", wanted), archives),
    ]


# Settings and decisions.


def _read_run(path: Path) -> None:
    found = Run.of(preset=path)
    path.write_text(found.to_toml(), encoding="utf-8")
    assert Run.of(preset=path) == found


def _set_option(data: bytes) -> None:
    """What stands after `--set`."""
    given: dict[str, Any] = dict([parse_option(data.decode(errors="replace"))])
    Run.of(**given)


def settings() -> list[Way]:
    presets = [path.read_bytes() for path in sorted((REPOSITORY / "src" / "hitin" / "presets").glob("*.toml"))]
    runs = [Run.of(method=method).to_toml().encode() for method in ("hitin", "linear", "hgclr", "flat")]
    plan = (REPOSITORY / "benchmarks" / "studies" / "plain.toml").read_bytes()
    data = b'seeds = [0, 1]\n[data.d]\ntaxonomy = "t.tsv"\ntrain = ["a"]\ntest = "b"\n'
    small = data + b'[tables.t]\ndata = ["d"]\nmethods = ["flat"]\n'
    return [
        Way(in_file("run.toml", _read_run), [*presets, *runs]),
        Way(in_file("plan.toml", read_plan), [plan, small]),
        Way(
            _set_option,
            [
                b"height=3",
                b"dropout = 0.5",
                b"kernels=[2, 3]",
                b"encoder=bert-base-uncased",
                b"method=flat",
                b"preset=icd10",
            ],
        ),
    ]


def decisions() -> list[Way]:
    taxonomy = Taxonomy.from_nested({"A": ["B", "C"], "D": []})

    def decide(data: bytes) -> None:
        try:
            text = data.decode()
        except UnicodeDecodeError:
            return
        found = Decisions.from_json(text, "decisions.json")
        found.check(taxonomy)
        assert Decisions.from_json(found.to_json(), "again").to_json() == found.to_json()
        assert found.decide(np.array([[0.0, 1.0, -1.0, 3.0]] * 2, np.float32), taxonomy).shape == (2, 4)

    return [Way(decide, folders.decisions())]


# Requests.


def requests() -> list[Way]:
    from hitin.serve import schemas
    from hitin.serve.refusals import encoded
    from hitin.serve.strict_json import parse

    def ask(kind: Any, data: bytes) -> None:
        encoded(kind.model_validate(parse(data)).model_dump())

    predict = [b'{"text": "a", "policy": "raw", "threshold": 0.5}', b'{"texts": ["a", "b"], "top": 3, "stop": 0.1}']
    explain = [b'{"text": "a", "labels": ["A"], "model": "m"}']
    return [
        Way(partial(ask, schemas.PredictRequest), predict),
        Way(partial(ask, schemas.ExplainRequest), explain),
    ]


def request_refusals() -> tuple[type[Exception], ...]:
    from pydantic import ValidationError

    from hitin.serve.refusals import Refusal

    return Refusal, ValidationError
