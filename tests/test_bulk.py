"""Folders scored shard by shard: a row of answers for each document, whatever the format; restarts; what is refused."""

import gzip
import json
import os
import shutil
import string
from collections.abc import Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hitin import HierarchicalTextClassifier
from hitin.bulk import Request, Scored, Watcher, score_folder
from hitin.bulk.folder import Plan
from hitin.bulk.shards import answers_name, find_shards
from hitin.bulk.writers import ParquetWriter
from hitin.compression import open_compressed
from hitin.errors import InputError
from hitin.loading import Deciding
from hitin.locking import locked
from tests.conftest import Run

LOW = Deciding("consistent", 0.2)  # so that a model that has hardly learnt gives labels, too
TEXTS = ["the parcel is late", "I forgot my password, again", "the screen is broken", "", "my card was charged twice"]
FORMATS = ("jsonl", "csv", "tsv", "txt", "parquet")
COMPRESSIONS = {".gz": "gzip", ".xz": "xz", ".zst": "zstd"}


def write_documents(path: Path, texts: Sequence[str], suffix: str = "") -> Path:
    """Documents in the format and the compression that the name says; with ids but for plain texts."""
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame({"id": [f"{path.name}:{row}" for row in range(len(texts))], "text": list(texts)}, dtype=str)
    if path.name.endswith(".parquet"):
        table.to_parquet(path)
        return path
    if path.name.endswith(".jsonl"):
        content = "".join(json.dumps(row) + "\n" for row in table.to_dict("records"))
    elif path.name.endswith(".txt"):
        content = "".join(text + "\n" for text in texts)
    else:
        content = table.to_csv(index=False, sep="\t" if path.name.endswith(".tsv") else ",")
    path = path.with_name(path.name + suffix)
    with open_compressed(COMPRESSIONS[suffix], path, "wb") if suffix else path.open("wb") as file:
        file.write(content.encode())
    return path


def read_answers(path: Path) -> list[dict[str, Any]]:
    """The records of a file of answers, as JSON lines have them."""
    if path.suffix == ".parquet":
        rows = pq.read_table(path).to_pylist(maps_as_pydicts="strict")
        return [{name: value for name, value in row.items() if value is not None} for row in rows]
    compression = COMPRESSIONS.get(path.suffix)
    with open_compressed(compression, path, "rb") if compression else path.open("rb") as file:
        return [json.loads(line) for line in file.read().splitlines()]


def files_of(folder: Path) -> list[str]:
    """What a person sees there."""
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path.as_posix() for path in found if not path.parts[0].startswith("."))


class Heard(Watcher):
    """Keeps the plan."""

    plan: Plan

    def planned(self, plan: Plan) -> None:
        self.plan = plan


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of documents in several formats, and what is no document."""
    given = tmp_path / "in"
    write_documents(given / "a.jsonl", TEXTS)
    write_documents(given / "deep" / "er" / "b.csv", TEXTS[:2], ".gz")
    write_documents(given / "c.parquet", TEXTS[1:])
    write_documents(given / "deep" / "d.txt", TEXTS[:3])
    for name in (".hidden.jsonl", "_SUCCESS", "deep/_temporary/x.jsonl", ".git/y.jsonl"):
        (given / name).parent.mkdir(parents=True, exist_ok=True)
        (given / name).write_text("no document\n")
    return given


ALL = ["a.jsonl", "c.parquet", "deep/d.jsonl", "deep/er/b.jsonl.gz"]


def scored(model: Path, given: Path | Sequence[Path], out: Path, **options: Any) -> Scored:
    request = Request(
        str(model), LOW, **{name: options.pop(name) for name in ("to", "top", "format") if name in options}
    )
    return score_folder(request, [given] if isinstance(given, Path) else given, out, **options)


def names(records: Iterable[Any]) -> list[str]:
    return sorted(record.name for record in records)


@given(
    st.lists(st.text(string.ascii_letters + " ,é😀", max_size=30).map(str.strip), max_size=12),
    st.sampled_from(FORMATS),
    st.sampled_from(["", *COMPRESSIONS]),
    st.sampled_from(["auto", "jsonl", "parquet"]),
)
@settings(max_examples=25)
def test_every_document_has_one_row_of_answers_in_order(
    tickets: Path, texts: list[str], format: str, suffix: str, to: Any
) -> None:
    with TemporaryDirectory() as temporary:
        given, out = Path(temporary, "in"), Path(temporary, "out")
        write_documents(given / f"some.{format}", texts, suffix)
        found = scored(tickets, given, out, to=to)
        (name,) = files_of(out)
        answers = read_answers(out / name)
        assert not found.failed
        assert (found.rows, len(answers)) == (len(texts), len(texts))
        classifier = HierarchicalTextClassifier.load(tickets)
        classifier.decisions_ = LOW.changed(classifier.decisions_)
        assert [set(answer["labels"]) for answer in answers] == (classifier.predict(texts) if texts else [])
        if format != "txt":
            assert [answer["id"] for answer in answers] == [f"some.{format}:{row}" for row in range(len(texts))]


def test_answers_are_those_of_a_single_stream(tickets: Path, folder: Path, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--policy", "consistent", "--threshold", "0.2", "--top", 2, "--with-text", "--deepest")
    result = run("predict", tickets, folder, "--out", out, *options)
    assert result.exit_code == 0, result.output
    assert (result.stdout, "14 documents of 4 files" in result.stderr) == ("", True)
    assert files_of(out) == ALL
    for name, file in zip(ALL, ("a.jsonl", "c.parquet", "deep/d.txt", "deep/er/b.csv.gz"), strict=True):
        single = run("predict", tickets, folder / file, *options).stdout
        assert read_answers(out / name) == [json.loads(line) for line in single.splitlines()]


@pytest.mark.parametrize(
    ("file", "to", "name"),
    [
        ("a.jsonl", "auto", "a.jsonl"),
        ("x/a.csv.gz", "auto", "x/a.jsonl.gz"),
        ("a.b.tsv.zst", "auto", "a.b.jsonl.zst"),
        ("a.parquet", "auto", "a.parquet"),
        ("a.parquet", "jsonl", "a.jsonl"),
        ("a.txt.xz", "parquet", "a.parquet"),
        ("part-00000", "auto", "part-00000.jsonl"),
        ("a.JSONL", "auto", "a.jsonl"),
        ("a.log.gz", "auto", "a.log.jsonl.gz"),
    ],
)
def test_names_of_answers_tell_their_format(file: str, to: Any, name: str) -> None:
    assert answers_name(Path(file), "auto", to) == name


def test_a_file_of_nothing_has_no_answers(tickets: Path, tmp_path: Path) -> None:
    given = tmp_path / "in"
    given.mkdir()
    for name in ("a.jsonl", "b.txt", "c.csv", "d.parquet"):
        (given / name).touch()
    (given / "e.jsonl.gz").write_bytes(gzip.compress(b""))
    found = scored(tickets, given, tmp_path / "out")
    assert [each.rows for each in found.finished] == [0, 0, 0, 0]


# Parquet.


def test_columns_are_the_same_for_all_shards(tickets: Path, folder: Path, tmp_path: Path) -> None:
    scored(tickets, folder, tmp_path / "out", to="parquet", top=2)
    schemas = [pq.read_schema(tmp_path / "out" / name) for name in files_of(tmp_path / "out")]
    assert len(schemas) == 4
    assert all(schema == schemas[0] for schema in schemas)
    assert schemas[0].names == ["id", "labels", "paths", "scores", "unsure", "top"]
    assert pa.types.is_map(schemas[0].field("scores").type)


def test_row_groups_are_of_bounded_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitin.bulk.writers._ROWS", 25)
    path = tmp_path / "x.parquet"
    writer = ParquetWriter(path, Request("model", with_text=True))
    record = {"id": "\ud800x", "text": "é\udfff😀", "labels": ["A"], "paths": ["A"], "scores": {"A": 0.1234}}
    for _ in range(10):
        writer.write([record] * 10)
    writer.close()
    groups = pq.ParquetFile(path)
    assert [groups.metadata.row_group(at).num_rows for at in range(groups.num_row_groups)] == [30, 30, 30, 10]
    row = pq.read_table(path).to_pylist(maps_as_pydicts="strict")[-1]
    assert row == {**record, "id": "\ufffdx", "text": "é\ufffd😀", "unsure": None}


# Restarts.


def test_what_is_finished_is_not_done_again(tickets: Path, folder: Path, tmp_path: Path) -> None:
    out, heard = tmp_path / "out", Heard()
    assert names(scored(tickets, folder, out).finished) == ALL
    before = {name: (out / name).stat().st_mtime_ns for name in ALL}
    (out / ".0123456789abcdef.part").write_text("left by a kill")
    again = scored(tickets, folder, out, watcher=heard)
    assert (again.finished, names(again.before), heard.plan.again) == ([], ALL, [])
    assert {name: (out / name).stat().st_mtime_ns for name in ALL} == before
    assert not list(out.rglob("*.part"))
    write_documents(folder / "new.jsonl", TEXTS)
    assert names(scored(tickets, folder, out).finished) == ["new.jsonl"]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("harm", [cut, flip, Path.unlink], ids=["cut", "flipped", "removed"])
def test_damaged_answers_are_written_again(
    name: str, harm: Any, tickets: Path, folder: Path, tmp_path: Path, run: Run
) -> None:
    out, heard = tmp_path / "out", Heard()
    scored(tickets, folder, out)
    before = {each: (out / each).read_bytes() for each in ALL}
    harm(out / name)
    again = scored(tickets, folder, out, watcher=heard)
    assert (names(again.finished), heard.plan.again) == ([name], [name])
    assert {each: (out / each).read_bytes() for each in ALL if not each.endswith(".gz")} == {
        each: content for each, content in before.items() if not each.endswith(".gz")
    }
    harm(out / name)
    told = run("predict", tickets, folder, "--out", out, "--policy", "consistent", "--threshold", "0.2").stderr
    assert f"so written again: {name}\n" in told


@pytest.mark.parametrize("harm", [cut, flip], ids=["cut", "flipped"])
def test_a_damaged_record_is_not_believed(harm: Any, tickets: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    scored(tickets, folder, out)
    harm(out / ".hitin" / "shards" / "a.jsonl.json")
    assert names(scored(tickets, folder, out).finished) == ["a.jsonl"]


def test_answers_without_a_record_are_taken_for_a_file_of_someone_else(
    tickets: Path, folder: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    scored(tickets, folder, out)
    (out / ".hitin" / "shards" / "a.jsonl.json").unlink()
    with pytest.raises(InputError, match="a file already where answers are to be written"):
        scored(tickets, folder, out)
    (out / "a.jsonl").unlink()
    assert names(scored(tickets, folder, out).finished) == ["a.jsonl"]


def test_answers_have_a_record_before_they_are_there(
    tickets: Path, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that what a kill leaves is not taken for someone else's."""
    out, replace = tmp_path / "out", Path.replace

    def killed(part: Path, target: Path) -> Path:
        if target.name == "d.jsonl":
            raise KeyboardInterrupt
        return replace(part, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            scored(tickets, folder, out)
    assert (out / ".hitin" / "shards" / "deep" / "d.jsonl.json").exists()
    assert "deep/d.jsonl" in names(scored(tickets, folder, out).finished)
    assert files_of(out) == ALL


def test_the_record_of_another_shard_is_not_believed(tickets: Path, folder: Path, tmp_path: Path) -> None:
    """Also where the documents are the same."""
    shutil.copy2(folder / "a.jsonl", folder / "z.jsonl")
    out = tmp_path / "out"
    scored(tickets, folder, out)
    (out / "z.jsonl").unlink()
    records = out / ".hitin" / "shards"
    shutil.copy(records / "a.jsonl.json", records / "z.jsonl.json")
    assert names(scored(tickets, folder, out).finished) == ["z.jsonl"]
    assert (out / "z.jsonl").read_bytes() == (out / "a.jsonl").read_bytes()


def test_documents_that_changed_are_answered_again_and_copies_are_not(
    tickets: Path, folder: Path, tmp_path: Path
) -> None:
    out, moved = tmp_path / "out", tmp_path / "moved"
    scored(tickets, folder, out)
    shutil.copytree(folder, moved)
    os.utime(moved / "a.jsonl", (1, 1))
    assert scored(tickets, moved, out).finished == []
    lines = (moved / "a.jsonl").read_text().splitlines(keepends=True)
    (moved / "a.jsonl").write_text("".join(reversed(lines)))  # of the same size
    assert names(scored(tickets, moved, out).finished) == ["a.jsonl"]
    assert read_answers(out / "a.jsonl")[0]["id"] == "a.jsonl:4"


def test_a_file_of_the_same_size_and_time_is_not_read_again(tickets: Path, folder: Path, tmp_path: Path) -> None:
    """Told by one that changed behind its back: to read what may be terabytes is to be paid for once."""
    out, file = tmp_path / "out", folder / "a.jsonl"
    scored(tickets, folder, out)
    time = file.stat().st_mtime_ns
    flip(file)
    os.utime(file, ns=(time, time))
    assert scored(tickets, folder, out).finished == []


def test_another_request_is_refused_unless_it_is_to_overwrite(
    tickets: Path, folder: Path, tmp_path: Path, run: Run
) -> None:
    out, other = tmp_path / "out", tmp_path / "other"
    shutil.copytree(tickets, other)
    (other / "decisions.json").write_text('{"policy": "top-down"}')
    assert run("predict", tickets, folder, "--out", out).exit_code == 0
    before = {name: (out / name).read_bytes() for name in ALL}
    for words, arguments in (
        ("another --top", (tickets, folder, "--top", 2)),
        ("another --to", (tickets, folder, "--to", "parquet")),
        ("another decisions", (other, folder)),
        ("another decisions", (tickets, folder, "--uncalibrated")),
    ):
        result = run("predict", *arguments, "--out", out)
        assert result.exit_code == 2
        assert words in result.stderr
        assert "--overwrite" in result.stderr
    assert {name: (out / name).read_bytes() for name in ALL} == before
    assert run("predict", tickets, folder, "--out", out, "--to", "parquet", "--overwrite").exit_code == 0
    assert files_of(out) == ["a.parquet", "c.parquet", "deep/d.parquet", "deep/er/b.parquet"]


def test_files_of_others_are_not_replaced(tickets: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / "deep").mkdir(parents=True)
    (out / "deep" / "d.jsonl").write_text("precious\n")
    with pytest.raises(InputError) as error:
        scored(tickets, folder, out)
    assert error.value.kind == "file-exists"
    assert (out / "deep" / "d.jsonl").read_text() == "precious\n"
    assert len(scored(tickets, folder, out, overwrite=True).finished) == 4


def test_files_that_others_put_there_later_are_not_replaced(tickets: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    scored(tickets, folder, out)
    (out / "notes.jsonl").write_text("precious\n")
    write_documents(folder / "notes.txt", TEXTS)
    with pytest.raises(InputError) as error:
        scored(tickets, folder, out)
    assert (error.value.kind, error.value.file) == ("file-exists", str(out / "notes.jsonl"))
    assert (out / "notes.jsonl").read_text() == "precious\n"
    assert len(scored(tickets, folder, out, overwrite=True).finished) == 5


def test_answers_that_are_documents_now_are_not_overwritten(tickets: Path, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    scored(tickets, folder, out)
    before = {name: (out / name).read_bytes() for name in ALL}
    (tmp_path / "link").symlink_to(out / "deep")
    for documents in (out / "deep", out / "a.jsonl", tmp_path / "link"):
        with pytest.raises(InputError, match="among the answers that --overwrite removes"):
            scored(tickets, documents, out, to="parquet", overwrite=True)
        assert {name: (out / name).read_bytes() for name in ALL} == before
    assert names(scored(tickets, folder, out).before) == ALL


def test_one_run_at_a_time(tickets: Path, folder: Path, tmp_path: Path) -> None:
    with locked(tmp_path / "out" / ".hitin", "scoring"), pytest.raises(InputError) as error:
        scored(tickets, folder, tmp_path / "out")
    assert error.value.kind == "busy-folder"


# What is wrong.


def test_a_bad_shard_fails_alone_and_is_done_when_mended(tickets: Path, folder: Path, tmp_path: Path, run: Run) -> None:
    bad, out = folder / "deep" / "bad.jsonl", tmp_path / "out"
    bad.write_text('{"text": "a"}\n' * 6 + '{"text": \n')
    (folder / "x.csv").write_text("id,body\n1,a\n")
    result = run("predict", tickets, folder, "--out", out)
    assert result.exit_code == 1
    assert f"failed: {bad}:7: the JSON is broken" in result.stderr
    assert f"failed: {folder / 'x.csv'}:1: no column is called 'text'" in result.stderr
    assert "2 files could not be scored" in result.stderr
    assert files_of(out) == ALL
    assert not list(out.rglob("*.part"))
    bad.write_text('{"text": "a"}\n' * 7)
    (folder / "x.csv").write_text("id,text\n1,a\n")
    result = run("predict", tickets, folder, "--out", out)
    assert result.exit_code == 0
    assert "8 documents of 2 files answered" in result.stderr
    assert "4 files finished before" in result.stderr


def test_answers_that_cannot_be_written_are_told_before_any_work(
    tickets: Path, folder: Path, tmp_path: Path, run: Run
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "deep").write_text("in the way of a folder")
    result = run("predict", tickets, folder, "--out", out)
    assert result.exit_code == 2
    assert result.stderr.count("error:") == 1
    assert "cannot be written" in result.stderr
    assert files_of(out) == ["deep"]
    (out / "deep").unlink()
    assert run("predict", tickets, folder, "--out", out).exit_code == 0
    assert files_of(out) == ALL


def test_clashes_are_refused_before_any_work(tmp_path: Path) -> None:
    given = tmp_path / "in"
    for name in ("a.csv", "a.jsonl"):
        write_documents(given / name, TEXTS)
    for inputs, out, kind in (
        ([given], tmp_path / "out", "clash"),
        ([given / "a.jsonl"], given, "clash"),
        ([given], given, "bad-option"),
        ([given], given / "answers", "bad-option"),
        ([tmp_path / "nothing"], tmp_path / "out", "missing-file"),
        (["-"], tmp_path / "out", "bad-option"),
    ):
        with pytest.raises(InputError) as error:
            find_shards(inputs, out)
        assert error.value.kind == kind


def test_answers_that_would_be_a_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    for name in ("a.csv", "a.jsonl/part.csv"):
        write_documents(tmp_path / "in" / name, TEXTS)
    with pytest.raises(InputError) as error:
        find_shards([tmp_path / "in"], tmp_path / "out")
    assert error.value.kind == "clash"


@pytest.mark.timeout(30)
def test_pipes_are_left_aside_and_broken_links_are_told(tickets: Path, folder: Path, tmp_path: Path) -> None:
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "broken.jsonl").symlink_to(tmp_path / "nothing")
    heard = Heard()
    result = scored(tickets, folder, tmp_path / "out", watcher=heard)
    assert heard.plan.found.others == [str(folder / "pipe.jsonl")]
    assert names(result.failed) == ["broken.jsonl"]
    assert names(result.finished) == ALL


@pytest.mark.timeout(30)
def test_a_pipe_that_is_named_is_refused(folder: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="a pipe or a device, which is no shard"):
        find_shards([folder, tmp_path / "pipe"], tmp_path / "out")


@pytest.mark.parametrize("name", ["é" * 124 + ".txt", "a" * 249 + ".jsonl"])
def test_a_name_that_is_too_long_is_a_failure_of_its_file_alone(
    name: str, tickets: Path, folder: Path, tmp_path: Path
) -> None:
    write_documents(folder / name, TEXTS)
    for finished in (ALL, []):
        result = scored(tickets, folder, tmp_path / "out")
        assert [(failed.error.kind, failed.error.file) for failed in result.failed] == [
            ("bad-name", str(folder / name))
        ]
        assert names(result.finished) == finished


def test_a_file_that_is_named_twice_is_one_shard(folder: Path, tmp_path: Path) -> None:
    inputs = [folder, folder.parent / "." / "in", folder / "deep" / ".." / "a.jsonl", folder / "a.jsonl"]
    assert names(find_shards(inputs, tmp_path / "out").shards) == ALL


def test_links_to_folders_are_followed_but_not_in_circles(folder: Path, tmp_path: Path) -> None:
    given = tmp_path / "given"
    (given / "one").mkdir(parents=True)
    (given / "one" / "all").symlink_to(folder)
    (given / "one" / "again").symlink_to(given)
    (folder / "deep" / "back").symlink_to(given / "one")
    found = names(find_shards([given], tmp_path / "out").shards)
    assert found == [f"one/all/{name}" for name in ALL]
    with pytest.raises(InputError, match="among the documents"):
        find_shards([given], folder / "answers")


def test_no_answers_go_among_the_files_of_a_model(tickets: Path, folder: Path, run: Run) -> None:
    result = run("predict", tickets, folder, "--out", tickets)
    assert (result.exit_code, "the folder holds a model" in result.stderr) == (2, True)


def test_files_that_are_not_known_are_told_and_can_be_named(tickets: Path, tmp_path: Path, run: Run) -> None:
    given = tmp_path / "in"
    write_documents(given / "a.txt", TEXTS)
    (given / "a.txt").rename(given / "part-00000")
    result = run("predict", tickets, given, "--out", tmp_path / "out")
    assert result.exit_code == 2
    assert "part-00000" in result.stderr
    write_documents(given / "b.txt", TEXTS)
    result = run("predict", tickets, given, "--out", tmp_path / "out")
    assert (result.exit_code, "left aside" in result.stderr) == (0, True)
    result = run("predict", tickets, given, "--out", tmp_path / "all", "--format", "text")
    assert (result.exit_code, result.stderr.count("left aside")) == (0, 0)
    assert files_of(tmp_path / "all") == ["b.jsonl", "part-00000.jsonl"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("IN",), "--out"),
        (("IN", "--out", "OUT", "--workers", 2), "the local engine has neither workers"),
        (("IN/a.jsonl", "--workers", 2), "--workers is for folders"),
        (("IN/a.jsonl", "--to", "parquet"), "--to is for folders"),
        (("IN/a.jsonl", "--overwrite"), "--overwrite is for folders"),
        (("IN", "-", "--out", "OUT"), "standard input is no shard"),
        (("IN", "--out", __file__), "not a directory"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    arguments: tuple[object, ...], words: str, tickets: Path, folder: Path, tmp_path: Path, run: Run
) -> None:
    named = [str(each).replace("IN", str(folder)).replace("OUT", str(tmp_path / "out")) for each in arguments]
    result = run("predict", tickets, *named)
    assert result.exit_code == 2
    assert words in result.stderr
