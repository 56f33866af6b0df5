"""`hitin taxonomy`: a tree out of documents whose labels are paths."""

import json
import shlex
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin import InputError, LabelReader, Taxonomy
from hitin.label_paths import LabelPaths
from hitin.names import label_name
from tests.conftest import Run, Write

TICKETS = """text,label
It dies after an hour.,Device > Battery
The screen is dark.,Device > Screen
It is empty again.,Battery
I was charged twice.,Billing > Refund | Device > Screen
Where is my bill?,Billing
Hello?,
"""
NAMES = st.text("abc", min_size=1, max_size=2)


def test_the_tree_of_a_csv_whose_labels_are_paths(run: Run, write: Write) -> None:
    documents = write("tickets.csv", TICKETS)
    out = documents.parent / "new" / "taxonomy.tsv"
    result = run("taxonomy", documents, "--out", out)
    assert result.exit_code == 0, result.output
    assert "5 labels of 6 documents (2 on level 1, 3 on level 2)" in result.stdout
    assert out.read_text() == "Root\tDevice\tBilling\nDevice\tBattery\tScreen\nBilling\tRefund\n"
    assert run("check", out, documents).exit_code == 0


def test_a_taxonomy_does_not_take_the_place_of_the_documents(run: Run, write: Write) -> None:
    documents = write("tickets.csv", TICKETS)
    for options in ((), ("--overwrite",)):
        result = run("taxonomy", documents, "--out", documents, *options)
        assert result.exit_code == 2
        assert "this file is read, and would be written" in result.stderr
        assert documents.read_text() == TICKETS


def test_what_is_told_is_also_told_to_programs(run: Run, write: Write) -> None:
    documents = write("tickets.jsonl", '{"text": "a", "label": ["A/B", "C/B"]}\n')
    out = str(documents.parent / "taxonomy.json")
    told = json.loads(run("taxonomy", documents, "--out", out, "--separator", "/", "--json").stdout)
    assert told == {"taxonomy": out, "documents": 1, "labels": 4, "levels": [2, 2], "homonyms": ["B"]}


def test_a_name_in_two_places_is_two_labels_unless_they_are_merged(run: Run, write: Write) -> None:
    documents = write("tickets.csv", "text,label\na,Device > Other\nb,Billing > Other\nc,Device > Screen\n")
    out = documents.parent / "taxonomy.tsv"
    result = run("taxonomy", documents, "--out", out)
    assert "in several places: Other; labels are called by their paths" in result.stdout
    taxonomy = Taxonomy.read(out)
    assert set(taxonomy) == {"Device", "Billing", "Device > Other", "Billing > Other", "Device > Screen"}
    ids = LabelReader(taxonomy).read(["Device > Other"]).ids
    assert {taxonomy.labels[label] for label in ids} == {"Device", "Device > Other"}
    merged = run("taxonomy", documents, "--out", out, "--homonyms", "merge", "--overwrite")
    assert "each is one label" in merged.stdout
    assert set(Taxonomy.read(out)) == {"Device", "Billing", "Other", "Screen"}


def test_that_labels_are_called_by_their_paths_is_said_by_the_policy_not_by_the_first_name(
    run: Run, write: Write
) -> None:
    documents = write("tickets.csv", "text,label\na,A > B\nb,A > C\nc,C > D\n")
    out = documents.parent / "taxonomy.tsv"
    result = run("taxonomy", documents, "--out", out)
    assert "in several places: C; labels are called by their paths" in result.stdout
    assert set(Taxonomy.read(out)) == {"A", "A > B", "A > C", "C", "C > D"}


@pytest.mark.parametrize("other", ["Device>Battery", "Device -> Battery", "Device--Battery", "Root>Device>Battery"])
def test_a_path_with_another_mark_is_a_path_and_told(other: str, run: Run, write: Write) -> None:
    documents = write("tickets.csv", f"text,label\na,{other}\nb,Device > Screen\nc,Sound -> noise\nd,Screen\n")
    out = documents.parent / "taxonomy.tsv"
    made = run("taxonomy", documents, "--out", out)
    assert out.read_text() == "Root\tDevice\tSound -> noise\nDevice\tBattery\tScreen\n"
    assert f"1 label has another mark than the rest: '{other}' is read as Device > Battery." in made.stderr
    found = json.loads(run("check", out, documents, "--json").stdout)
    assert found["exit_code"] == 0
    assert [level["mean_labels_by_level"] for level in found["splits"]] == [[1.0, 0.75]]
    named = run("taxonomy", documents, "--out", out, "--overwrite", "--separator", " > ")
    assert (other in Taxonomy.read(out), named.stderr) == (True, "")


def test_paths_may_have_the_mark_that_else_parts_labels(run: Run, write: Write) -> None:
    documents = write("tickets.csv", "text,label\na,Device|Battery\nb,Device|Screen\n")
    out = documents.parent / "taxonomy.tsv"
    assert run("taxonomy", documents, "--out", out, "--separator", "|").exit_code == 0
    assert out.read_text() == "Root\tDevice\nDevice\tBattery\tScreen\n"
    assert run("check", out, documents, "--separator", "|", "--format", "hiagm").exit_code == 0


def test_labels_that_are_no_paths_are_refused_with_the_remedy(run: Run, write: Write) -> None:
    documents = write("tickets.csv", "text,label\na,Battery\nb,Screen\n")
    result = run("taxonomy", documents, "--out", documents.parent / "taxonomy.tsv")
    assert result.exit_code == 2
    for word in (
        "tickets.csv:2",
        "no label is a path",
        "Battery",
        "Device > Battery",
        "tabs in between",
        "columns parent and child",
    ):
        assert word in result.stderr
    nothing = write("nothing.csv", "text,label\na,\n")
    assert f"{nothing}: no document has a label" in run("taxonomy", nothing, "--out", "taxonomy.tsv").stderr


def test_a_path_with_an_empty_name_is_told_with_its_line(run: Run, write: Write) -> None:
    documents = write("tickets.csv", "text,label\na,Device > Battery\nb,Device >  > Screen\n")
    result = run("taxonomy", documents, "--out", documents.parent / "taxonomy.tsv")
    assert result.exit_code == 2
    assert "tickets.csv:3" in result.stderr
    assert "is empty" in result.stderr


def test_a_blank_that_is_missing_beside_the_mark_makes_no_other_label(run: Run, write: Write) -> None:
    rows = "text,label\na,Device > Battery\nb,Device> Screen\nc,Device >Sound\nd,Device > a -> b\n"
    documents = write("tickets.csv", rows)
    out = documents.parent / "taxonomy.tsv"
    assert run("taxonomy", documents, "--out", out).exit_code == 0
    assert out.read_text() == "Root\tDevice\nDevice\tBattery\tScreen\tSound\ta -> b\n"
    assert run("check", out, documents).exit_code == 0
    result = run("taxonomy", write("tickets.csv", rows + "e,Device > \n"), "--out", out)
    assert result.exit_code == 2
    assert "tickets.csv:6" in result.stderr
    assert "delete the one too many" in result.stderr


def test_an_empty_separator_is_refused(run: Run, write: Write) -> None:
    result = run("taxonomy", write("tickets.csv", TICKETS), "--separator", "", "--out", "taxonomy.tsv", "--json")
    assert result.exit_code == 2
    assert "the separator of paths is empty" in result.stdout


def test_a_taxonomy_that_somebody_changed_is_not_replaced(run: Run, write: Write) -> None:
    documents, out = write("tickets.csv", TICKETS), write("taxonomy.tsv", "Root\tMine\n")
    refused = run("taxonomy", documents, "--out", out)
    assert refused.exit_code == 2
    assert "--overwrite" in refused.stderr
    assert out.read_text() == "Root\tMine\n"
    assert run("taxonomy", documents, "--out", out, "--overwrite").exit_code == 0
    assert run("taxonomy", documents, "--out", out).exit_code == 0  # the same again


def test_the_command_that_comes_next_has_the_options_of_this_one(run: Run, write: Write) -> None:
    documents = write("tickets.csv", "body;category\na;Gerät/Akku\nb;Gerät/Größe\n".encode("latin-1"))
    keys = ("--text-key", "body", "--label-key", "category", "--separator", "/", "--encoding", "latin-1")
    for name in ("taxonomy.tsv", "taxonomy.csv", "taxonomy.json"):
        result = run("taxonomy", documents, "--out", documents.parent / name, *keys)
        hitin, *words = shlex.split(result.stdout.splitlines()[-1])
        assert hitin == "hitin"
        assert run(*words).exit_code == 0, (words, run(*words).output)


def test_paths_that_run_together_are_told_and_the_mark_that_belongs_there(run: Run, write: Write) -> None:
    rows = 'text;label\na;Device > Sound, volume\nb;Billing > Refund\nc;"Device > Screen{}Billing > Refund"\n'
    for mark in (", ", "; ", " ,"):
        documents = write("tickets.csv", rows.replace("{}", mark))
        warning = run("taxonomy", documents, "--out", documents.parent / "taxonomy.tsv", "--overwrite").stderr
        assert "1 path looks like several labels, such as 'Device > Screen" in warning
        assert "Put | between" in warning
    lines = run("taxonomy", write("tickets.csv", rows.replace("{}", "\n")), "--out", documents.parent / "lines.tsv")
    assert "Put | between" in lines.stderr  # before it cannot be written
    documents = write("tickets.csv", rows.replace("{}", " | "))
    assert not run("taxonomy", documents, "--out", documents.parent / "taxonomy.tsv", "--overwrite").stderr


@pytest.mark.parametrize(("mark", "typed"), [(";", ";"), (", ", ","), ("\n", r"\n"), ("\t", r"\t"), ("|", "|")])
def test_any_mark_may_stand_between_labels_for_every_command_that_reads_them(
    mark: str, typed: str, run: Run, write: Write
) -> None:
    rows = ["Device/Battery", mark.join(["Device/Screen", "Billing/Refund"]), "Billing/Refund", "Device/Screen"] * 3
    documents = write("tickets.csv", "text,label\n" + "".join(f'"ticket {row}","{row}"\n' for row in rows))
    tree, model = documents.parent / "tree.tsv", documents.parent / "model"
    marks = ("--separator", "/", "--label-delimiter", typed)
    made = run("taxonomy", documents, "--out", tree, *marks)
    assert (made.exit_code, made.stderr) == (0, "")
    assert tree.read_text() == "Root\tDevice\tBilling\nDevice\tBattery\tScreen\nBilling\tRefund\n"
    assert run(*shlex.split(made.stdout.splitlines()[-1])[1:]).exit_code == 0
    for words in (
        ("train", tree, documents, "--val", documents, "--out", model, "--method", "linear"),
        ("evaluate", model, documents),
        ("tune", model, documents, "--dry-run"),
    ):
        done = run(*words, *marks)
        assert done.exit_code == 0, done.output
        again = () if words[0] != "train" else ("--overwrite",)
        assert run(*words, *again, "--separator", "/").exit_code == (0 if mark == "|" else 2)


def test_a_mark_that_is_not_read_is_told_with_its_option(run: Run, write: Write) -> None:
    tree = write("tree.tsv", "Device\tBattery\tScreen\n")
    for label, option in (("Battery;Screen", "--label-delimiter ';'"), ("Device/Screen", "--separator /")):
        documents = write("tickets.jsonl", json.dumps({"text": "a", "label": label}) + "\n")
        assert f"With {option} it is read" in run("train", tree, documents, "--out", documents.parent / "m").stderr
        assert f"with {option} it is read" in " ".join(run("check", tree, documents).stdout.split())
        assert run("check", tree, documents, *shlex.split(option)).exit_code == 0
    empty = run("check", tree, documents, "--label-delimiter", "")
    assert (empty.exit_code, "Leave it out" in empty.stderr) == (2, True)


def test_documents_in_place_of_a_taxonomy_are_told_of_the_command(run: Run, write: Write) -> None:
    documents = write("tickets.csv", TICKETS)
    assert "hitin taxonomy DOCUMENTS" in run("check", documents).stderr
    for rows in ("text,category\nIt dies.,Device > Battery\n", "Topic;Text\nBilling;Twice!\n"):
        assert "hitin taxonomy DOCUMENTS" in run("check", write("others.csv", rows)).stderr
    assert run("check", write("media.csv", "Media,text\nMedia,sound\n")).exit_code == 0


@given(st.lists(st.lists(NAMES, min_size=1, max_size=4), min_size=1, max_size=8))
def test_every_path_is_read_back_as_its_own_names_and_nothing_else(paths: list[list[str]]) -> None:
    collected = LabelPaths()
    collected.add([" > ".join(path) for path in paths])
    if all(len(path) == 1 for path in paths):
        return
    taxonomy = collected.taxonomy()
    reader = LabelReader(taxonomy)
    separate = bool(collected.homonyms())
    for path in paths:
        if len(path) == 1:
            continue  # may be short for a label in another path
        found = reader.read([" > ".join(path)])
        names = {" > ".join(path[: end + 1]) for end in range(len(path))} if separate else set(path)
        assert not found.unknown
        assert {taxonomy.labels[label] for label in found.ids} == names


@given(st.lists(st.text("ab >|[]'\"-\t\n#é\U0001f40d", max_size=12), max_size=6))
def test_any_labels_become_a_taxonomy_that_reads_back_or_are_refused(labels: list[str]) -> None:
    collected = LabelPaths()
    try:
        collected.add([label_name(label) for label in labels])
        taxonomy = collected.taxonomy()
    except InputError:
        return
    with TemporaryDirectory() as folder:
        taxonomy.write(f"{folder}/taxonomy.json")
        assert Taxonomy.read(f"{folder}/taxonomy.json") == taxonomy


@given(st.lists(st.lists(NAMES, min_size=2, max_size=3).map(" > ".join), min_size=2, max_size=6), st.data())
def test_labels_that_come_after_a_question_count_for_the_next(labels: list[str], data: st.DataObject) -> None:
    asked, whole = LabelPaths(), LabelPaths()
    for label in labels:
        asked.add([label])
        whole.add([label])
        if data.draw(st.booleans()):
            asked.homonyms()
    assert asked.taxonomy() == whole.taxonomy()
    assert (asked.homonyms(), asked.run_together()) == (whole.homonyms(), whole.run_together())
