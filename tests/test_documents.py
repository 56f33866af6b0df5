"""Documents from files, data frames, data sets and plain Python."""

import csv
import gzip
import io
import json
import lzma
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

import datasets
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hitin import Document, InputError, read_documents
from hitin.compression import zstd
from tests.conftest import Write

ROWS = [("Acute appendicitis", ["Health", "Injury"]), ("Offside!", ["Sport"])]


def pairs(data: object, **options: object) -> list[tuple[str, list[str]]]:
    return [(document.text, list(document.labels)) for document in read_documents(data, **options)]  # type: ignore[arg-type]


def json_lines(text: str = "text", label: str = "label") -> str:
    return "".join(json.dumps({text: words, label: labels}) + "\n" for words, labels in ROWS)


def csv_text(delimiter: str = ",") -> str:
    return "".join(
        delimiter.join(row) + "\n"
        for row in (("text", "label"), *((words, "|".join(labels)) for words, labels in ROWS))
    )


@pytest.mark.parametrize("text", ["text", "token", "doc_token"])
@pytest.mark.parametrize("label", ["label", "labels", "doc_label"])
def test_the_usual_keys_are_understood(text: str, label: str, write: Write) -> None:
    assert pairs(write("a.jsonl", json_lines(text, label))) == ROWS


def test_other_keys_are_named(write: Write) -> None:
    path = write("a.jsonl", json_lines("body", "category"))
    assert pairs(path, text_key="body", label_key="category") == ROWS


def test_words_in_a_list_are_joined_and_places_are_kept(write: Write) -> None:
    path = write("a.json", '\n{"doc_token": ["a", "b", 3], "doc_label": ["X--Y"], "doc_id": 7}\n')
    assert list(read_documents(path)) == [Document("a b 3", ("X--Y",), "7", str(path), 2)]


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, zstd().compress, bytes])
@pytest.mark.parametrize(
    ("name", "content"), [("a.jsonl", json_lines()), ("a.csv", csv_text()), ("a.tsv", csv_text("\t"))]
)
def test_every_text_format_is_read_compressed_or_not(
    compress: Callable[[bytes], bytes], name: str, content: str, write: Write
) -> None:
    for encoding in ("utf-8", "utf-16"):
        found = pairs(write(name, compress(content.encode(encoding))))
        assert [(text, "|".join(labels)) for text, labels in found] == [
            (text, "|".join(labels)) for text, labels in ROWS
        ]


@pytest.mark.parametrize("name", ["a.data", "a"])
def test_the_format_is_told_by_content_where_the_name_says_nothing(name: str, write: Write) -> None:
    assert [text for text, _ in pairs(write(name, json_lines()))] == [text for text, _ in ROWS]
    assert [text for text, _ in pairs(write(name, csv_text()))] == [text for text, _ in ROWS]
    assert [text for text, _ in pairs(write(name, csv_text("\t")))] == [text for text, _ in ROWS]
    assert [text for text, _ in pairs(write(name, csv_text(";")))] == [text for text, _ in ROWS]


def test_parquet_is_read_a_batch_at_a_time_and_only_the_columns_needed(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = [f"text {number}" for number in range(3000)]
    table = pa.table({"text": texts, "label": [["A", "B"]] * 3000, "heavy": [b"x" * 100] * 3000})
    pq.write_table(table, path)
    found = list(read_documents(path))
    assert [document.text for document in found] == texts
    assert found[2999] == Document("text 2999", ("A", "B"), None, str(path), 3000)


def test_a_damaged_parquet_file_and_a_false_one_are_named(tmp_path: Path, write: Write) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a"] * 1000, "label": ["b"] * 1000}), path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"a\.parquet: the Parquet file is damaged"):
        pairs(path)
    with pytest.raises(InputError, match="not a Parquet file"):
        pairs(write("b.parquet", "text,label\n"))


def test_crlf_quotes_and_line_ends_inside_cells_are_read(write: Write) -> None:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows([["text", "label"], ['say "x",\nthen y', "A"], ["z", "B"]])
    found = list(read_documents(write("a.csv", out.getvalue())))
    assert [(document.text, document.line) for document in found] == [('say "x",\nthen y', 2), ("z", 4)]


def test_control_characters_emoji_and_half_characters_are_read_without_fuss(write: Write) -> None:
    path = write(
        "a.jsonl", '{"text": "bell \\u0007 nul \\u0000 👩‍⚕️", "label": []}\n{"text": "half \\ud83d", "label": "A"}'
    )
    assert pairs(path) == [("bell \x07 nul \0 👩‍⚕️", []), ("half \ufffd", ["A"])]


def test_numbers_are_label_names(write: Write) -> None:
    assert pairs(write("a.jsonl", '{"text": "a", "label": 7}\n{"text": "b", "label": [7, "8"]}')) == [
        ("a", ["7"]),
        ("b", ["7", "8"]),
    ]


def test_quotes_in_tab_separated_files_count_only_where_they_must(write: Write) -> None:
    rows = ['"Unclosed start\tA', "plain\tB", 'ending in quote"\tA', '"Hello" she said\tB', '"quoted ""cell"""\t"A"']
    raw = write("raw.tsv", "\n".join(["text\tlabel", *rows]) + "\n")
    assert [text for text, _ in pairs(raw)] == [
        '"Unclosed start',
        "plain",
        'ending in quote"',
        '"Hello" she said',
        'quoted "cell"',
    ]


@pytest.mark.parametrize("columns", [["text", "label"], ["label", "text"], ["id", "text", "label"]])
def test_tab_separated_files_of_pandas_are_read_whatever_their_cells_hold(columns: list[str], write: Write) -> None:
    texts = ["one\nline", "a\ttab", 'a "b"', "last\n\n", '"', "x\r\ny", "\u2028 \x0b", "\n" * 300, "end"]
    frame = pd.DataFrame({"text": texts, "label": [f"L{number}" for number in range(9)], "id": "a\u2028b"})
    content = "\n" + frame[columns].to_csv(sep="\t", index=False)
    found = list(read_documents(write("pandas.tsv", content)))
    assert [(document.text, document.labels) for document in found] == [
        (text, (f"L{number}",)) for number, text in enumerate(texts)
    ]
    lines = content.split("\n")
    assert all(document.labels[0] in "\n".join(lines[document.line - 1 :]) for document in found if document.line)
    assert [document.line for document in found] == [3, 5, 6, 7, 10, 11, 13, 14, 315]


def test_broken_quotes_in_tab_separated_files_cost_no_more_than_a_look(write: Write) -> None:
    rows = ["x" * 50 + '"\t"' + "y" * 50, '"' + "z" * 50] * 10_000
    errors: list[InputError] = []
    start = time.process_time()
    pairs(write("a.tsv", "\n".join(["id\ttext\tlabel", *rows])), on_error=errors.append)
    assert time.process_time() - start < 5
    assert len(errors) > 10_000


def test_lines_that_are_not_text_do_not_shift_the_numbers_of_the_others(write: Write) -> None:
    errors: list[InputError] = []
    for name in ("a.csv", "a.tsv"):
        mark = b"," if name == "a.csv" else b"\t"
        path = write(name, b"text,label\n\xff,A\n\xff,B\ngood,A\n".replace(b",", mark))
        assert [document.line for document in read_documents(path, on_error=errors.append)] == [4]


EMPTY_TEXTS = {
    "one column": ("a.csv", 'text\nparcel\n""\nlate\n', ["parcel", "", "late"]),
    "two columns": ("a.csv", 'id,text\n1,parcel\n,\n"",""\n2,late\n', ["parcel", "", "", "late"]),
    "blanks in cells": ("a.csv", "id;text\n1;parcel\n ; \n2;late\n", ["parcel", "", "late"]),
    "blank lines": ("a.csv", "\n \n,,\nid,text\n\n1,parcel\n  \n\t\r\n2,late\n\n", ["parcel", "late"]),
    "tabs, one column": ("a.tsv", 'text\nparcel\n""\nlate\n', ["parcel", "", "late"]),
    "tabs, two columns": ("a.tsv", 'id\ttext\n1\tparcel\n\t\n""\t""\r\n2\tlate\n', ["parcel", "", "", "late"]),
    "tabs, blank lines": ("a.tsv", "\n \n\t\t\nid\ttext\n\n1\tparcel\n  \n2\tlate\n\n", ["parcel", "late"]),
}


@pytest.mark.parametrize("case", EMPTY_TEXTS)
def test_rows_of_empty_cells_are_documents_and_blank_lines_are_not(case: str, write: Write) -> None:
    name, content, texts = EMPTY_TEXTS[case]
    assert [text for text, _ in pairs(write(name, content), labelled=False)] == texts


def test_an_empty_text_is_a_document_in_every_format(tmp_path: Path) -> None:
    frame = pd.DataFrame({"text": ["parcel", "", "late"], "label": ["A", "", "B"]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_csv(tmp_path / "a.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    for path in sorted(tmp_path.iterdir()):
        assert pairs(path) == [("parcel", ["A"]), ("", []), ("late", ["B"])]


def test_empty_cells_at_the_end_of_a_row_are_no_harm(write: Write) -> None:
    assert pairs(write("a.csv", "text,label\na,A,,\nb,B,\n")) == [("a", ["A"]), ("b", ["B"])]


def test_the_delimiter_is_the_one_that_gives_the_right_columns(write: Write) -> None:
    assert pairs(write("a.csv", "text;label;a,b,c,d\nx, y;A;1\n")) == [("x, y", ["A"])]


def test_parquet_comes_compressed_and_through_pipes(tmp_path: Path, write: Write) -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"text": ["a"], "label": ["b"]}), out)
    for compress in (gzip.compress, lzma.compress, zstd().compress):
        assert pairs(write("a.parquet.gz", compress(out.getvalue()))) == [("a", ["b"])]
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(out.getvalue()))
    writer.start()
    assert pairs(pipe) == [("a", ["b"])]
    writer.join()


def test_parquet_without_its_column_or_with_broken_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"body": ["a"], "label": ["b"]}), path)
    with pytest.raises(InputError, match=r"a\.parquet: no column is called 'text' .*; there are: body, label"):
        pairs(path)
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe"))
    pq.write_table(pa.table({"text": broken, "label": ["b"]}), path)
    with pytest.raises(InputError, match="damaged after row 0"):
        pairs(path)


@pytest.mark.parametrize("several", [False, True])
def test_a_data_set_that_numbers_its_classes_gives_their_names(several: bool) -> None:
    kind: object = datasets.ClassLabel(names=["A", "B"])
    kind = datasets.Sequence(kind) if several else kind
    features = datasets.Features({"text": datasets.Value("string"), "label": kind})
    data = datasets.Dataset.from_dict({"text": ["x"], "label": [[1, 0] if several else 1]}, features=features)
    for form in (data, data.with_format("numpy")):
        assert pairs(form) == [("x", ["B", "A"] if several else ["B"])]


def test_columns_that_come_twice_or_cannot_be_had_are_refused(write: Write) -> None:
    twice = pd.DataFrame([["a", "b", "A"]], columns=["text", "text", "label"])
    for data in (twice, write("a.csv", "text,label,label\na,A,B\n")):
        with pytest.raises(InputError, match="two columns are called"):
            pairs(data)
    with pytest.raises(InputError, match="Collect it into a data frame"):
        pairs(pl.LazyFrame({"text": ["a"], "label": ["b"]}))


def test_columns_may_be_numbers() -> None:
    assert pairs(pd.DataFrame([["a", "A"]]), text_key="0", label_key="1") == [("a", ["A"])]


TABLES = {
    "pandas": pd.DataFrame(ROWS, columns=["text", "label"]),
    "polars": pl.DataFrame({"text": [text for text, _ in ROWS], "label": [labels for _, labels in ROWS]}),
    "datasets": datasets.Dataset.from_dict(
        {"text": [text for text, _ in ROWS], "label": [labels for _, labels in ROWS]}
    ),
    "arrow": pa.table({"text": [text for text, _ in ROWS], "label": [labels for _, labels in ROWS]}),
    "categorical": pd.DataFrame({"text": [text for text, _ in ROWS], "label": [labels for _, labels in ROWS]}).astype(
        {"text": "category"}
    ),
    "arrow in pandas": pa.table(
        {"text": [text for text, _ in ROWS], "label": [labels for _, labels in ROWS]}
    ).to_pandas(),
    "mappings": [{"text": text, "label": labels} for text, labels in ROWS],
    "pairs": ROWS,
    "documents": [Document(text, tuple(labels)) for text, labels in ROWS],
    "generator": (row for row in ROWS),
}


@pytest.mark.parametrize("kind", TABLES)
def test_data_frames_data_sets_and_lists_are_accepted(kind: str) -> None:
    assert pairs(TABLES[kind]) == ROWS


def test_numpy_and_missing_values_of_data_frames_are_understood() -> None:
    frame = pd.DataFrame({"text": ["a", "b"], "label": [np.array(["A"]), np.nan]})
    with pytest.raises(InputError, match=r"^document 2: the document has no label: its 'label' is null"):
        pairs(frame)
    assert pairs(frame, labelled=False) == [("a", ["A"]), ("b", [])]
    assert pairs(pd.DataFrame({"text": ["a"], "label": np.array([3], dtype=np.int64)})) == [("a", ["3"])]


def test_texts_without_labels_are_read_when_asked_for(write: Write) -> None:
    assert pairs(write("a.jsonl", '{"text": "a"}\n'), labelled=False) == [("a", [])]
    assert pairs(write("a.csv", "text\na\n"), labelled=False) == [("a", [])]


BAD = {
    "broken JSON": ("a.jsonl", '{"text": "a", "label": "b"}\n{"text": \n', ":2: the JSON is broken", "broken-json"),
    "no object": (
        "a.jsonl",
        '{"text": "a", "label": "b"}\n[1]\n',
        ":2: the line is JSON but not an object",
        "broken-json",
    ),
    "deep JSON": ("a.jsonl", '{"text":' + "[" * 100_000, ":1: the JSON is broken", "broken-json"),
    "huge number": ("a.jsonl", '{"text": ' + "9" * 5000 + "}", ":1: the JSON is broken", "broken-json"),
    "no text": (
        "a.jsonl",
        '{"title": "a", "label": "b"}',
        ":1: the document has no text: its keys are title, label, none is 'text'",
        "no-text",
    ),
    "null text": ("a.jsonl", '{"text": null, "label": "b"}', ":1: the document has no text", "no-text"),
    "text of a wrong kind": ("a.jsonl", '{"text": {"a": 1}, "label": "b"}', ":1: the text must be text", "no-text"),
    "no label": ("a.jsonl", '{"text": "a"}', ":1: the document has no label", "no-label"),
    "label of a wrong kind": ("a.jsonl", '{"text": "a", "label": {"b": 1}}', ":1: labels must be text", "bad-label"),
    "label true": ("a.jsonl", '{"text": "a", "label": true}', ":1: labels must be text", "bad-label"),
    "null among labels": ("a.jsonl", '{"text": "a", "label": [null]}', ":1: a label must be text", "bad-label"),
    "empty name": ("a.jsonl", '{"text": "a", "label": [" "]}', ":1: a label's name is empty", "bad-label"),
    "ragged row": (
        "a.csv",
        "text,label\na,b\na,b,c\n",
        ":3: the row has 3 columns where the header has 2",
        "bad-row",
    ),
    "short row": ("a.csv", "text,label\na\n", ":2: the row has 1 column where the header has 2", "bad-row"),
    "open quote": ("a.csv", 'text,label\n"a,b\nc,d\n', ":2: the row cannot be read", "bad-row"),
    "another key": (
        "a.jsonl",
        '{"text": "a", "tag": "b"}',
        ":1: the document has no label: its keys are text, tag, none is 'label'",
        "no-label",
    ),
    "words that are none": ("a.jsonl", '{"text": [{"a": 1}], "label": "b"}', ":1: the text must be text", "no-text"),
    "header on line 3": ("a.csv", "\n\nbody,label\na,b\n", ":3: no column is called 'text'", "no-text"),
    "no text column": ("a.csv", "body,label\na,b\n", ":1: no column is called 'text'", "no-text"),
    "no label column": ("a.tsv", "text\tcategory\na\tb\n", ":1: no column is called 'label'", "no-label"),
    "not UTF-8": ("a.jsonl", b'{"text": "caf\xe9", "label": "b"}', ":1: the bytes are not UTF-8", "not-utf-8"),
    "a JSON array": ("a.json", '[\n{"text": "a", "label": "b"}\n]', ":1: the file is one JSON array", "broken-json"),
    "a JSON array on one line": ("a.json", '[{"text": "a"}]', ":1: the file is one JSON array", "broken-json"),
    "empty": ("a.jsonl", "", ": the file is empty", "empty-file"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_document_is_refused_with_file_line_and_remedy(case: str, write: Write) -> None:
    name, content, words, kind = BAD[case]
    path = write(name, content)
    with pytest.raises(InputError) as caught:
        pairs(path)
    assert str(caught.value).startswith(f"{path}{words}")
    assert caught.value.kind == kind
    assert len(str(caught.value).splitlines()) <= 4


def test_a_key_that_was_named_and_is_not_there_is_named_in_the_error(write: Write) -> None:
    path = write("a.jsonl", '{"text": "a", "label": "b"}')
    with pytest.raises(InputError, match="its keys are text, label, none is 'category'"):
        pairs(path, label_key="category")
    with pytest.raises(InputError, match="no column is called 'body'; there are: text, label"):
        pairs(write("a.csv", "text,label\na,b\n"), text_key="body")


def test_bad_documents_can_be_noted_and_left_out(write: Write) -> None:
    content = '{"text": "a", "label": "A"}\n{"text"\n{"text": "b"}\n{"text": "c", "label": "C"}\n'
    errors: list[InputError] = []
    assert pairs(write("a.jsonl", content), on_error=errors.append) == [("a", ["A"]), ("c", ["C"])]
    assert [(error.kind, error.line) for error in errors] == [("broken-json", 2), ("no-label", 3)]
    errors.clear()
    rows = 'text,label\na,A\nb\n"c" d,C\ne,E\n'
    assert pairs(write("a.csv", rows), on_error=errors.append) == [("a", ["A"]), ("e", ["E"])]
    assert [(error.kind, error.line) for error in errors] == [("bad-row", 3), ("bad-row", 4)]


def test_documents_made_by_hand_are_checked_like_others() -> None:
    assert [document.text for document in read_documents([Document("half \ud800")])] == ["half \ufffd"]
    with pytest.raises(InputError, match="document 1: the text must be text"):
        pairs([Document({"a": 1})])  # type: ignore[arg-type]


@pytest.mark.parametrize("data", [{"train": [], "test": []}, 7, [1], ["just a text"]])
def test_what_cannot_be_documents_is_refused(data: object) -> None:
    with pytest.raises(InputError) as caught:
        pairs(data)
    assert caught.value.kind == "bad-documents"


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=300)
@given(
    content=st.one_of(
        st.binary(max_size=200),
        st.text("text,label\t\n\r\"{}[]:;'| 1\0é", max_size=120).map(lambda text: f"text,label\n{text}".encode()),
        st.text('"text label{}[]:, \n1\\u', max_size=80).map(lambda text: ('{"text": "a", "label": ' + text).encode()),
    )
)
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.tsv", "a.parquet", "a.csv.gz", "a"])
def test_any_bytes_are_documents_or_a_clear_error(name: str, content: bytes, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    errors: list[InputError] = []
    try:
        found = list(read_documents(path, on_error=errors.append))
    except InputError as error:
        errors.append(error)
    else:
        assert all(isinstance(document.text, str) for document in found)
    assert all(name in str(error) for error in errors)
