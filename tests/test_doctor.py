"""The doctor: what it counts, what it finds, and the verdict."""

import json
from pathlib import Path

import pandas as pd
import pytest

from hitin import CheckUp, InputError, Taxonomy, check
from hitin.doctor.misspelling import is_misspelling
from hitin.doctor.problems import Problem
from tests.conftest import Write

TAXONOMY = "Root\tHealth\tSport\nHealth\tInjury\tDiet\nSport\tFootball\tTennis\n"


def line(text: str, *labels: str) -> str:
    return json.dumps({"text": text, "label": labels}) + "\n"


def problem(found: CheckUp, kind: str) -> Problem:
    return next(problem for problem in found.problems if problem.kind == kind)


def kinds(found: CheckUp) -> set[str]:
    return {problem.kind for problem in found.problems}


@pytest.fixture
def taxonomy(write: Write) -> Path:
    return write("taxonomy.tsv", TAXONOMY)


def test_the_counts_of_a_taxonomy_are_those_of_its_labels(taxonomy: Path) -> None:
    facts = check(taxonomy).taxonomy
    assert (facts.labels, facts.depth, facts.levels, facts.leaves_by_level) == (6, 2, [2, 4], [0, 4])
    assert (facts.edges, facts.mean_children, facts.max_children, facts.several_parents) == (4, 2.0, 2, 0)
    assert (facts.format, facts.encoding, facts.homonym_policy) == ("hiagm", "utf-8", None)


def test_the_counts_of_documents_are_taken_with_ancestors(taxonomy: Path, write: Write) -> None:
    train = write("train.jsonl", line("a b c", "Injury") + line("d", "Diet", "Health", "Sport") + line("e f", "Health"))
    found = check(taxonomy, [train], rare=1)
    facts = found.splits[0]
    assert (facts.documents, facts.labels_used) == (3, 4)
    assert facts.mean_labels == pytest.approx(2.0)
    assert facts.mean_labels_by_level == [pytest.approx(4 / 3, abs=1e-4), pytest.approx(2 / 3, abs=1e-4)]
    assert facts.several_paths == pytest.approx(1 / 3, abs=1e-4)
    assert (facts.words["p50"], facts.words["max"]) == (2, 3)
    assert found.exit_code == 0
    missing = problem(found, "missing-ancestors")
    assert (missing.count, missing.examples[0]) == (1, (f"{train}:1", "Health"))
    assert [example.detail for example in problem(found, "label-without-documents").examples] == [
        "'Football'",
        "'Tennis'",
    ]


def test_unknown_labels_come_once_each_with_count_place_and_nearest_spelling(taxonomy: Path, write: Write) -> None:
    train = write("train.jsonl", line("a", "Helth") + line("b", "Tenis") + line("c", "Tenis", "Diet"))
    found = check(taxonomy, [train])
    unknown = problem(found, "unknown-label")
    assert unknown.count == 3
    assert unknown.examples == [
        (f"{train}:1", "'Helth'; did you mean 'Health'?"),
        (f"{train}:2", "'Tenis', 2 times; did you mean 'Tennis'?"),
    ]
    assert found.exit_code == 1


def test_only_the_first_ten_places_are_kept_and_all_are_counted(taxonomy: Path, write: Write) -> None:
    train = write("train.jsonl", "".join(line("", "Diet") for _ in range(25)))
    empty = problem(check(taxonomy, [train]), "empty-text")
    assert empty.count == 25
    assert [example.place for example in empty.examples] == [f"{train}:{number}" for number in range(1, 11)]


def test_duplicates_and_leaks_are_found_whatever_the_blanks(taxonomy: Path, write: Write) -> None:
    train = write("train.jsonl", line("one text", "Diet") + line("another", "Diet") + line("one  text ", "Diet"))
    test = write("test.jsonl", line("new", "Diet") + line("one text", "Diet") + line("One text", "Diet"))
    found = check(taxonomy, [train, test])
    assert problem(found, "duplicate-text").examples == [(f"{train}:3", f"as {train}:1")]
    assert problem(found, "leak").examples == [(f"{test}:2", f"as {train}:1")]
    assert (found.splits[0].duplicates, found.splits[1].leaks) == (1, {str(train): 1})
    assert found.exit_code == 1


def test_the_same_file_twice_is_a_leak_of_every_text(taxonomy: Path, write: Write) -> None:
    train = write("train.jsonl", line("a", "Diet") + line("b", "Diet"))
    assert problem(check(taxonomy, [train, train]), "leak").count == 2


def test_empty_texts_are_neither_duplicates_nor_leaks(taxonomy: Path, write: Write) -> None:
    train = write("train.jsonl", line("a", "Diet") + line("", "Diet") + line(" ", "Diet"))
    found = check(taxonomy, [train, write("test.jsonl", line("", "Diet") + line("b", "Diet"))])
    assert not {"duplicate-text", "leak"} & kinds(found)
    assert problem(found, "empty-text").count == 3


def test_a_text_in_three_splits_leaks_twice(taxonomy: Path, write: Write) -> None:
    first, second, third = (write(f"{name}.jsonl", line("a", "Diet") + line(name, "Diet")) for name in "xyz")
    found = check(taxonomy, [first, second, third])
    assert problem(found, "leak").count == 2
    assert [split.leaked for split in found.splits] == [0, 1, 1]
    assert found.splits[2].leaks == {str(first): 1, str(second): 1}


@pytest.mark.parametrize("rows", ["foo,\nbar,\n", ",Diet\n ,Diet\n"])
def test_training_data_without_a_text_that_has_a_label_is_wrong(rows: str, taxonomy: Path, write: Write) -> None:
    found = check(taxonomy, [write("train.csv", f"text,label\n{rows}")])
    assert problem(found, "nothing-to-learn").count == 1
    assert found.exit_code == 1


def test_shards_are_one_split_and_places_name_the_shard(taxonomy: Path, write: Write) -> None:
    shards = [
        write("train-00000-of-00002.jsonl", line("a", "Diet") + line("b", "Diet")),
        write("train-00001-of-00002.jsonl", line("", "Diet") + line("c", "Football") + line("b", "Diet")),
    ]
    found = check(taxonomy, [*shards, write("test.jsonl", line("c", "Diet"))])
    assert [split.documents for split in found.splits] == [5, 1]
    assert problem(found, "duplicate-text").examples == [(f"{shards[1]}:3", f"as {shards[0]}:2")]
    assert problem(found, "leak").examples[0].detail == f"as {shards[1]}:2"
    assert "label-only-in-other-splits" not in kinds(found)


def test_training_is_found_by_file_then_by_folder_then_by_order(taxonomy: Path, tmp_path: Path) -> None:
    for name in ("test", "train", "constraints"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "data.jsonl").write_text(line(name, "Diet" if name == "train" else "Football"))
    by_folder = check(taxonomy, [tmp_path / name / "data.jsonl" for name in ("constraints", "test", "train")])
    assert {example.detail for example in problem(by_folder, "rare-label").examples} == {"'Health': 1", "'Diet': 1"}
    by_order = check(taxonomy, [tmp_path / name / "data.jsonl" for name in ("constraints", "test")])
    assert {example.detail for example in problem(by_order, "rare-label").examples} == {"'Sport': 1", "'Football': 1"}


def test_a_split_without_documents_is_wrong(taxonomy: Path, write: Write) -> None:
    found = check(taxonomy, [write("train.csv", "text,label\n")])
    assert problem(found, "empty-split").count == 1
    assert found.exit_code == 1


def test_rare_and_unseen_labels_are_counted_in_the_training_split(taxonomy: Path, write: Write) -> None:
    test = write("test.jsonl", line("x", "Tennis"))
    train = write(
        "my_train.jsonl",
        "".join(line(f"text {number}", "Diet", "Health") for number in range(10)) + line("y", "Injury"),
    )
    found = check(taxonomy, [test, train])
    assert [example.detail for example in problem(found, "rare-label").examples] == ["'Injury': 1"]
    only = problem(found, "label-only-in-other-splits")
    assert [example.detail for example in only.examples] == ["'Sport': 1 elsewhere", "'Tennis': 1 elsewhere"]
    assert [example.detail for example in problem(found, "label-without-documents").examples] == ["'Football'"]


@pytest.mark.parametrize(
    "text",
    [
        "CafÃ© au lait",
        "itâ€™s",
        "broken \ufffd",
        "c1 \x92 quote",
        "straÃŸe",
        "Ãœber",
        "ÐŸÑ€Ð¸Ð²ÐµÑ‚",
        "ðŸ˜€",
        "â‚¬5",
        "nul \0",
    ],
)
def test_signs_of_a_wrong_encoding_are_found(text: str, taxonomy: Path, write: Write) -> None:
    found = check(taxonomy, [write("train.jsonl", line(text, "Diet"))])
    assert problem(found, "encoding").count == 1
    named = check(write("odd.tsv", f"Root\tA\nA\t{text}\n"))
    assert problem(named, "encoding").examples[0].place.endswith("odd.tsv:2")


@pytest.mark.parametrize(
    "text",
    ["Café, naïve – “quoted” €5", "Ã la carte? no: Ä Ö Ü", "日本語 🎾", "bell \x07", "Größe ÄÖÜ ñandú", "Привет, мир"],
)
def test_text_that_is_only_foreign_is_no_encoding_trouble(text: str, taxonomy: Path, write: Write) -> None:
    assert "encoding" not in kinds(check(taxonomy, [write("train.jsonl", line(text, "Diet"))]))


def test_documents_that_cannot_be_read_are_all_reported(taxonomy: Path, write: Write, tmp_path: Path) -> None:
    train = write("train.jsonl", line("a", "Diet") + "{\n" + '{"text": "b"}\n' + line("c", "Diet") + "{\n")
    found = check(taxonomy, [train, tmp_path / "missing.jsonl"])
    assert [(entry.kind, entry.count) for entry in found.problems if entry.severity == 2] == [
        ("broken-json", 2),
        ("no-label", 1),
        ("missing-file", 1),
    ]
    assert found.splits[0].documents == 2
    assert found.exit_code == 2
    assert "empty-split" not in kinds(found)


def test_what_was_done_with_homonyms_is_said(write: Write) -> None:
    path = write("paths.txt", "Health > Injury\nSport > Injury\n")
    merged, separate = check(path), check(path, homonyms="separate")
    assert (merged.taxonomy.homonym_policy, merged.taxonomy.homonyms, merged.taxonomy.labels) == ("merge", 1, 3)
    assert (separate.taxonomy.homonym_policy, separate.taxonomy.homonyms, separate.taxonomy.labels) == (
        "separate",
        1,
        4,
    )
    assert problem(merged, "homonym").examples[0].detail == "Injury"


def test_odd_taxonomies_are_remarked_upon(write: Write) -> None:
    assert "flat-taxonomy" in kinds(check(write("flat.txt", "Root A B\nA C D\n")))
    found = check(write("twins.tsv", "Root\tHealth care\tSport\nSport\thealth-care\nRoot\tSport\n"))
    assert problem(found, "look-alike-labels").examples[0].detail == "'Health care' and 'health-care'"
    assert problem(found, "duplicate-edge").examples[0].place.endswith("twins.tsv:3")
    assert found.exit_code == 0


def test_a_label_at_the_top_that_looks_like_a_path_from_another_is_remarked_upon(write: Write) -> None:
    found = check(write("mixed.tsv", "Root\tDevice>Battery\tDevice\tSound -> noise\nDevice\ta -> b\n"))
    assert problem(found, "path-at-top").examples[0].detail == "'Device>Battery': Device > Battery?"
    assert (problem(found, "path-at-top").count, found.exit_code) == (1, 0)
    assert "path-at-top" not in kinds(check(write("sound.tsv", "Root\tDevice\tR -> D\nDevice\tDevice>Battery\n")))


def test_a_rare_label_that_is_nearly_called_like_its_sibling_is_remarked_upon(write: Write) -> None:
    taxonomy = write("taxonomy.tsv", "Root\tDevice\tPower\nDevice\tBattery\tBatery\tType A\tType B\nPower\tBattary\n")
    rows = [line(f"battery {number}", "Device > Battery") for number in range(6)]
    rows += [line("one", "Device > Batery"), line("two", "Power > Battary"), line("three", "Type A")]
    rows += [line(f"four {number}", "Type B") for number in range(6)]
    found = problem(check(taxonomy, [write("train.jsonl", "".join(rows))]), "misspelt-label")
    assert [example.detail for example in found.examples] == ["'Batery' (1) and 'Battery' (6)"]
    assert found.severity == 0


@pytest.mark.parametrize(
    ("one", "other", "is_one"),
    [
        ("battery", "batery", True),
        ("battery life", "batterry life", True),
        ("recieve", "receive", True),
        ("plant", "plants", True),
        ("type a", "type b", False),
        ("cat", "cats", False),
        ("grade 10", "grade 11", False),
        ("section12", "section13", False),
        ("battery", "battery x", False),
        ("battery", "battery", False),
    ],
)
def test_a_letter_in_a_long_word_makes_a_misspelling(one: str, other: str, is_one: bool) -> None:
    assert is_misspelling(one, other) == is_misspelling(other, one) == is_one


def test_what_is_in_memory_can_be_checked_too() -> None:
    frame = pd.DataFrame({"text": ["a", "b"], "label": ["A", "C"]})
    taxonomy = Taxonomy.from_edges([("A", "B")])
    for documents, place in (
        ({"train": frame, "test": [("x", "A")]}, "train:2"),
        ([frame], "documents 1:2"),
        (frame, "documents 1:2"),
        ([("a", "A"), ("b", "C")], "documents 1:2"),
        ([{"text": "a", "label": "A"}, {"text": "b", "label": "C"}], "documents 1:2"),
    ):
        assert problem(check(taxonomy, documents), "unknown-label").examples[0].place == place


def test_labels_of_a_taxonomy_in_memory_are_named_too() -> None:
    found = check(Taxonomy.from_edges([("A", "B"), ("a", "D")]), {"train": [("hi", "B")]})
    assert problem(found, "label-without-documents").examples[0] == ("taxonomy", "'a'")
    assert problem(found, "look-alike-labels").examples[0] == ("taxonomy", "'A' and 'a'")
    assert problem(check(Taxonomy.from_paths([["A"], ["B"]])), "flat-taxonomy").examples[0].place == "taxonomy"


def test_folders_are_no_shards_and_a_file_given_three_times_is_three_splits(taxonomy: Path, tmp_path: Path) -> None:
    for fold in ("fold-1-of-2", "fold-2-of-2"):
        (tmp_path / fold).mkdir()
        (tmp_path / fold / "test.jsonl").write_text(line(fold, "Diet"))
    files = [tmp_path / "fold-1-of-2" / "test.jsonl", tmp_path / "fold-2-of-2" / "test.jsonl"]
    assert [split.name for split in check(taxonomy, files).splits] == [str(file) for file in files]
    assert len(check(taxonomy, files[:1] * 3).splits) == 3


def test_one_file_may_stand_for_a_list_of_files(taxonomy: Path, write: Write) -> None:
    train = write("train.jsonl", line("a", "Diet"))
    assert check(taxonomy, train).splits == check(taxonomy, str(train)).splits == check(taxonomy, [train]).splits
    with pytest.raises(InputError, match="files of documents are expected"):
        check(taxonomy, 7)


def test_every_unknown_label_is_counted_however_many(taxonomy: Path, write: Write) -> None:
    found = check(taxonomy, [write("train.jsonl", "".join(line("a", f"new {number}") for number in range(12_000)))])
    unknown = problem(found, "unknown-label")
    assert (unknown.count, unknown.places, len(unknown.examples)) == (12_000, 12_000, 10)


def test_each_error_keeps_its_own_remedy(taxonomy: Path, write: Write, tmp_path: Path) -> None:
    write("train.jsonl", "{}")
    write("test.jsonl", "{}")
    missing = problem(check(taxonomy, [tmp_path / "trian.jsonl", tmp_path / "tset.jsonl"]), "missing-file")
    assert "train.jsonl" in missing.remedy
    assert "test.jsonl" in missing.examples[1].detail


def test_separator_and_root_hold_for_the_labels_of_documents_too(write: Write) -> None:
    paths = write("paths.txt", "Top/Health/Injury\nTop/Sport\n")
    documents = write("a.jsonl", line("a", "Health/Injury") + line("b", "Top/Sport") + line("c", "Top", "Sport"))
    assert check(paths, documents, separator="/", root="Top").exit_code == 0


def test_long_and_hostile_names_do_the_terminal_no_harm(taxonomy: Path, write: Write) -> None:
    found = check(taxonomy, [write("train.jsonl", line("a", "x" * 300_000) + line("b", "\x1b[2J\nnew line"))])
    details = [example.detail for example in problem(found, "unknown-label").examples]
    assert all(len(detail) < 250 and detail.isprintable() for detail in details)


def test_a_taxonomy_that_cannot_be_read_raises(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        check(tmp_path / "missing.tsv")


def test_the_findings_are_plain_json(taxonomy: Path, write: Write) -> None:
    found = check(taxonomy, [write("train.jsonl", line("a", "Helth"))])
    report = json.loads(json.dumps(found.to_json()))
    assert report["exit_code"] == 1
    assert report["taxonomy"]["levels"] == [2, 4]
    assert report["splits"][0]["documents"] == 1
    assert report["problems"][0]["kind"] == "unknown-label"
    assert report["problems"][0]["severity"] == "wrong"
    assert report["problems"][0]["examples"][0]["place"].endswith("train.jsonl:1")


def test_progress_is_told_in_bytes_of_the_file(taxonomy: Path, write: Write) -> None:
    train = write("train.jsonl", "".join(line(f"text {number}", "Diet") for number in range(5000)))
    calls: list[tuple[str, int, int]] = []
    check(taxonomy, [train], progress=lambda *call: calls.append(call))
    assert [name for name, _, _ in calls] == [str(train)] * 3
    done = [position for _, position, _ in calls]
    assert done == sorted(done)
    assert all(0 < position <= size == train.stat().st_size for _, position, size in calls)
