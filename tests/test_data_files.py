"""What every data set writes, the splits of published programs, and the paper's Table 1 beside what was found."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from hitin import Document, InputError, Taxonomy, read_documents
from hitin.datasets.files import DataFiles, check_folder_of_data, in_splits, show_files, write_data
from hitin.datasets.splits import train_test_rows, wos_rows
from hitin.datasets.table1 import TABLE_1, compare_with_paper, show_comparison
from hitin.splitting import Split
from tests.conftest import Run

TAXONOMY = Taxonomy.from_paths([("A", "B"), ("A", "C")])
DOCUMENTS: list[tuple[Split, Document]] = [
    ("test", Document("one\nline, or two", ("A", "B"), "1")),
    ("train", Document("naïve “text”", ("A",), "2")),
    ("test", Document("", (), None)),
]


def files_of(labels: tuple[int, ...], documents: tuple[int, int, int], labels_given: int) -> DataFiles:
    return DataFiles(Path("t"), Path("a"), Path("b"), Path("c"), labels, documents, labels_given)


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    files = write_data(tmp_path / "new" / "set", TAXONOMY, iter(DOCUMENTS))
    assert Taxonomy.read(files.taxonomy) == TAXONOMY
    assert files.documents == (1, 0, 2)
    assert files.labels == (1, 2)
    assert files.labels_a_document == 1.0
    assert [json.loads(line) for line in files.test.read_text(encoding="utf-8").splitlines()] == [
        {"id": "1", "text": "one\nline, or two", "label": ["A", "B"]},
        {"text": "", "label": []},
    ]
    assert "naïve “text”" in files.train.read_text(encoding="utf-8")
    assert files.val.read_bytes() == b""
    assert sorted(path.name for path in files.taxonomy.parent.iterdir()) == [
        "taxonomy.tsv",
        "test.jsonl",
        "train.jsonl",
        "val.jsonl",
    ]


def test_a_taxonomy_may_be_known_only_when_all_documents_were_seen(tmp_path: Path) -> None:
    seen: list[str] = []

    def documents() -> Iterator[tuple[Split, Document]]:
        for split, document in DOCUMENTS:
            seen.append(document.text)
            yield split, document

    def taxonomy() -> Taxonomy:
        assert len(seen) == len(DOCUMENTS)
        return TAXONOMY

    files = write_data(tmp_path, taxonomy, documents())
    assert Taxonomy.read(files.taxonomy) == TAXONOMY


def test_an_error_on_the_way_leaves_the_files_of_an_earlier_time(tmp_path: Path) -> None:
    earlier = write_data(tmp_path, TAXONOMY, iter(DOCUMENTS))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def broken() -> Iterator[tuple[Split, Document]]:
        yield "train", Document("new", ("A",))
        raise InputError("the archive is cut short")

    with pytest.raises(InputError, match="cut short"):
        write_data(tmp_path, TAXONOMY, broken())
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert earlier.documents == (1, 0, 2)


def test_an_error_before_the_first_document_makes_no_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no document was found"):
        write_data(tmp_path / "out", TAXONOMY, iter([]))
    assert not (tmp_path / "out").exists()


def test_an_error_after_the_first_document_leaves_no_folder_that_was_not_there(tmp_path: Path) -> None:
    def broken() -> Iterator[tuple[Split, Document]]:
        yield "train", Document("new", ("A",))
        raise InputError("the archive is cut short")

    (tmp_path / "there").mkdir()
    (tmp_path / "empty").mkdir()
    for folder in ("there/new/out", "empty"):
        with pytest.raises(InputError, match="cut short"):
            write_data(tmp_path / folder, TAXONOMY, broken())
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["empty", "there"]


@pytest.mark.parametrize("words", [("icd10",), ("wos", "in"), ("rcv1", "in"), ("nyt", "in"), ("arxiv", "in")])
def test_a_folder_without_a_name_is_a_mistake_of_the_command_line(words: tuple[str, ...], run: Run) -> None:
    result = run("data", *words, "--out", "")
    assert result.exit_code == 2
    assert "Invalid value for '--out'" in result.stderr


@pytest.mark.parametrize("words", [("icd10",), ("wos", "in"), ("rcv1", "in"), ("nyt", "in"), ("arxiv", "in")])
def test_files_that_are_there_are_replaced_only_when_told_so(words: tuple[str, ...], run: Run, tmp_path: Path) -> None:
    (tmp_path / "taxonomy.tsv").write_text("mine\n")
    result = run("data", *words, "--out", tmp_path)
    assert result.exit_code == 2
    assert f"{tmp_path / 'taxonomy.tsv'}: there is a file of this name" in result.stderr
    assert "--overwrite" in result.stderr
    check_folder_of_data(tmp_path, overwrite=True)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine\n"]


def test_a_folder_that_cannot_be_written_to_is_told_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="not a directory"):
        check_folder_of_data(tmp_path / "file")
    (tmp_path / "out" / "val.jsonl").mkdir(parents=True)
    with pytest.raises(InputError, match=r"val\.jsonl"):
        check_folder_of_data(tmp_path / "out")


def test_splits_come_with_their_names() -> None:
    one, two, three = (Document(text) for text in "abc")
    assert list(in_splits(train=[one, two], val=[], test=[three])) == [("train", one), ("train", two), ("test", three)]


def test_what_was_written_is_shown_with_what_to_do_next(tmp_path: Path) -> None:
    files = write_data(tmp_path / "my set", TAXONOMY, iter(DOCUMENTS))
    shown = show_files("A set", files)
    assert shown.startswith("A set\n")
    assert "3 labels, 1 > 2 by level" in shown
    assert f"hitin check '{files.taxonomy}' '{files.train}'" in shown
    assert [document.text for document in read_documents(files.train)] == ["naïve “text”"]


@given(count=st.integers(2, 300), parts=st.integers(1, 9), seed=st.integers(0, 2**32 - 1))
def test_rows_are_split_as_scikit_learn_does_it(count: int, parts: int, seed: int) -> None:
    size = parts / 10
    if np.ceil(size * count) >= count:
        return
    expected = train_test_split(list(range(count)), test_size=size, random_state=seed)
    assert [rows.tolist() for rows in train_test_rows(count, size, seed)] == expected


@pytest.mark.parametrize("count", [50, 1_000, 46_985])
def test_the_splits_of_wos_are_those_of_the_recipe(count: int) -> None:
    rows = list(range(count))
    np.random.RandomState(7).shuffle(rows)  # of a list, as `numpy.random.seed(7)` and `shuffle` do it
    rest, test = train_test_split(rows, test_size=0.2, random_state=0)
    train, val = train_test_split(rest, test_size=0.2, random_state=0)
    found = [split.tolist() for split in wos_rows(count)]
    assert found == [train, val, test]
    if count == 46_985:
        assert tuple(map(len, found)) == (30_070, 7_518, 9_397)


def test_counts_of_the_paper_stand_beside_what_was_found() -> None:
    rows = compare_with_paper("wos", files_of((7, 134), (30_070, 7_518, 9_397), 2 * 46_985))
    assert all(row.agrees for row in rows)
    assert "Every count is that of the paper." in show_comparison("wos", rows)

    rows = compare_with_paper("nyt", files_of((5, 20, 60, 40, 20, 12, 6, 2), (23_345, 5_834, 7_292), 277_180))
    assert [row.what for row in rows if not row.agrees] == ["labels"]  # 7.6 labels a document, as it is printed
    shown = show_comparison("nyt", rows)
    assert "Not what the paper describes: labels." in shown
    (line,) = (line for line in shown.splitlines() if line.startswith("labels  "))
    assert line.split() == ["labels", "166", "165", "NO"]


def test_the_table_is_the_paper_s() -> None:
    sizes = {name: (row.train + row.dev + row.test, row.depth) for name, row in TABLE_1.items()}
    assert sizes == {"wos": (46_985, 2), "rcv1": (804_414, 4), "nyt": (36_471, 8)}
