"""Documents put aside before training: which, how many, and that none stands on both sides."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin.documents import read_documents
from hitin.errors import InputError
from hitin.splitting import Shares, drawn, write_splits
from tests.conftest import REPOSITORY, Run, Write

TICKETS = REPOSITORY / "examples" / "tickets"


def texts(path: Path) -> list[str]:
    return [document.text for document in read_documents(path)]


def test_every_document_is_in_one_file_with_its_labels(tmp_path: Path) -> None:
    found = write_splits([str(TICKETS / "train.jsonl")], tmp_path / "out", Shares(test=0.3, val=0.1))
    assert {path.name: count for path, count in found.items()} == {"train.jsonl": 18, "val.jsonl": 3, "test.jsonl": 9}
    before = {(document.text, document.labels) for document in read_documents(TICKETS / "train.jsonl")}
    after = [(document.text, document.labels) for path in found for document in read_documents(path)]
    assert len(after) == len(before) == len(set(after))
    assert set(after) == before


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=60), st.integers(0, 5), st.randoms())
def test_equal_texts_stay_together_in_any_order(prints: list[int], seed: int, random: object) -> None:
    shares = Shares(0.3, 0.2, seed)
    splits = drawn(prints, shares)
    by_print = dict(zip(prints, splits, strict=True))
    assert splits == [by_print[each] for each in prints]
    assert sorted(by_print.values()).count("test") == round(0.3 * len(by_print))
    mixed = list(prints)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert drawn(mixed, shares) == [by_print[each] for each in mixed]


@pytest.mark.parametrize("seed", range(20))
def test_a_text_that_very_many_documents_have_stays_for_training(seed: int) -> None:
    prints = [*range(1, 267), *[0] * 133]
    splits = drawn(prints, Shares(0.2, 0.1, seed))
    assert set(splits[266:]) == {"train"}
    assert (splits.count("test"), splits.count("val")) == (53, 27)  # of 267 texts


def test_another_seed_draws_other_documents() -> None:
    prints = range(100)
    assert drawn(prints, Shares(seed=0)) != drawn(prints, Shares(seed=1))
    assert drawn(prints, Shares(seed=1)) == drawn(prints, Shares(seed=1))


def test_the_command_reads_a_table_and_what_it_wrote_can_be_checked(tmp_path: Path, run: Run, write: Write) -> None:
    rows = [f'"text {number % 18}, or so";A > B{number % 3}|C' for number in range(20)]
    file = write("mine.csv", "\n".join(["body;category", *rows]))
    words = ("split", file, "--out", tmp_path / "data", "--text-key", "body", "--label-key", "category")
    result = run(*words)
    assert result.exit_code == 0, result.output
    train, test = tmp_path / "data" / "train.jsonl", tmp_path / "data" / "test.jsonl"
    assert not (tmp_path / "data" / "val.jsonl").exists()
    assert str(train) in result.stdout
    assert len(texts(train)) + len(texts(test)) == 20
    assert not set(texts(train)) & set(texts(test))
    assert len(set(texts(test))) == 4  # a fifth of 18
    assert json.loads(train.read_text().splitlines()[0])["label"][0].startswith("A > B")
    taxonomy = tmp_path / "taxonomy.tsv"
    assert run("taxonomy", train, test, "--out", taxonomy).exit_code == 0
    checked = run("check", taxonomy, train, test, "--json")
    assert checked.exit_code == 0, checked.output
    told = json.loads(run(*words, "--overwrite", "--json").stdout)
    assert told["documents"] == {str(train): len(texts(train)), str(test): len(texts(test))}


def test_what_cannot_be_split_is_refused_and_nothing_is_written(tmp_path: Path, run: Run, write: Write) -> None:
    file, out = write("one.csv", "text,label\na,A\nb,B\n"), tmp_path / "data"
    for options, words in (
        (("--test", "1.5"), "test is 1.5"),
        (("--test", "0"), "test and val are 0 together"),
        (("--test", "0.6", "--val", "0.4"), "test and val are 1 together"),
        (("--test", "0.1"), "no document in test.jsonl"),
        (("--test", "0.1"), "2 documents are too few: put a larger part aside, or add documents."),
        (("--test", "0.9"), "no document in train.jsonl"),
        (("--test", "0.9"), "2 documents are too few: put a smaller part aside, or add documents."),
    ):
        result = run("split", file, "--out", out, *options)
        assert result.exit_code == 2
        assert words in result.stderr
    single, none = write("single.csv", "text,label\na,A\n"), write("none.csv", "text,label\n")
    assert "1 document is too few: add documents." in run("split", single, "--out", out).stderr
    assert f"{none}: there are no documents" in run("split", none, "--out", out).stderr
    assert not out.exists()
    bad = write("bad.jsonl", '{"text": "a", "label": ["A"]}\n{"text": \n')
    refused = run("split", bad, "--out", out, "--test", "0.5")
    assert refused.exit_code == 2
    assert "bad.jsonl:2" in refused.stderr
    assert not out.exists()
    assert "standard input" in run("split", "-", "--out", out).stderr


def test_files_that_are_there_are_not_written_over(tmp_path: Path, run: Run) -> None:
    assert run("split", TICKETS / "train.jsonl", "--out", tmp_path).exit_code == 0
    before = (tmp_path / "train.jsonl").read_bytes()
    again = run("split", TICKETS / "train.jsonl", "--out", tmp_path, "--seed", 3)
    assert again.exit_code == 2
    assert "--overwrite" in again.stderr
    assert (tmp_path / "train.jsonl").read_bytes() == before
    with pytest.raises(InputError, match="would be written"):
        write_splits([str(tmp_path / "train.jsonl")], tmp_path, Shares(), overwrite=True)
