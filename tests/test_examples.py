"""The scripts of `examples/` do what they say, on their own data or on less of it."""

import ast
import io
import re
import runpy
import sys
from pathlib import Path

import pytest

from hitin import HierarchicalTextClassifier
from hitin.methods import METHODS
from tests.conftest import REPOSITORY
from tests.serving import Served
from tests.training_harness import tiny_bert

EXAMPLES = REPOSITORY / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
TICKETS = {
    "Gerät dies": "Device > Battery",
    "It is dark": "Device > Screen",
    "Dark and dear": "Device > Screen | Billing > Refund",
    "Charged twice": "Billing > Refund, partly",
}


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> "Example":
    return Example(monkeypatch, capsys, tmp_path)


class Example:
    """Runs a script as a person does, in an empty folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
        self.monkeypatch, self.capsys, self.folder = monkeypatch, capsys, folder

    def __call__(self, name: str, *arguments: object) -> str:
        """What it prints."""
        self.monkeypatch.chdir(self.folder)
        self.monkeypatch.setenv("no_proxy", "*")  # what is asked is on this machine
        self.monkeypatch.setattr(sys, "argv", [name, *map(str, arguments)])
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        return self.capsys.readouterr().out


def some(folder: Path, every: int) -> list[Path]:
    """A part of the diagnoses: to train, and to test."""
    parts = []
    for name in ("train.csv", "test.csv"):
        head, *rows = (EXAMPLES / "diagnoses" / name).read_text(encoding="utf-8").splitlines()
        parts.append(folder / name)
        parts[-1].write_text("\n".join([head, *rows[::every]]), encoding="utf-8")
    return parts


def test_there_are_six_of_about_a_hundred_lines_that_say_what_they_show() -> None:
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert len(SCRIPTS) == 6
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        assert 60 <= len(text.splitlines()) <= 120, script.name
        assert f"python examples/{script.name}" in (ast.get_docstring(ast.parse(text)) or "")
        assert f"[{script.name}]({script.name})" in listed


def test_from_a_csv_to_a_model_that_is_kept(example: Example) -> None:
    told = example("from_csv.py", "--epochs", 4, "--out", "model")
    found = re.search(r"micro_f1 +(\d\.\d+) +95 % interval (\d\.\d+) to (\d\.\d+)", told)
    assert found is not None
    low, middle, high = float(found[2]), float(found[1]), float(found[3])
    assert 0.6 < low < middle < high  # it has learnt something
    classifier = HierarchicalTextClassifier.load(example.folder / "model")
    assert "G40-G47 Episodic and paroxysmal disorders" in classifier.predict(["Migraine with aura"])[0]


def test_a_csv_of_another_form_is_read_or_told_how(example: Example) -> None:
    rows = [f"{word} {number};{label}" for number in range(12) for word, label in TICKETS.items()]
    table = example.folder / "mine.csv"
    table.write_text("\n".join(["text;category", *rows]), encoding="latin-1")
    with pytest.raises(SystemExit, match="--encoding"):
        example("from_csv.py", table, "--label-key", "category")
    mine = (table, "--encoding", "latin-1", "--epochs", 1, "--out", "model")
    with pytest.raises(SystemExit, match="no column is called 'label'"):
        example("from_csv.py", *mine)
    assert "Taxonomy(6 labels, 2 levels, tree)" in example("from_csv.py", *mine, "--label-key", "category")


def test_labels_that_are_single_names_need_the_file_of_the_tree(example: Example) -> None:
    table, tree = example.folder / "mine.csv", example.folder / "tree.csv"
    rows = [f"It dies {number},Battery\nIt is dark {number},Screen" for number in range(10)]
    table.write_text("\n".join(["text,label", *rows]), encoding="utf-8")
    tree.write_text("parent,child\nDevice,Battery\nDevice,Screen\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="no label is a path"):
        example("from_csv.py", table)
    told = example("from_csv.py", table, "--taxonomy", tree, "--epochs", 1, "--out", "model")
    assert "Taxonomy(3 labels, 2 levels, tree)" in told
    assert set(re.findall("^  got  (.*)$", told, re.MULTILINE)) <= {
        *("nothing", "Device", "Device > Battery", "Device > Screen", "Device > Battery | Device > Screen")
    }


def test_several_paths_are_several_labels_in_every_example(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(METHODS, "neighbours", raising=False)  # and so afterwards
    table = example.folder / "mine.csv"
    rows = [f"{word} {number};{label}" for number in range(6) for word, label in TICKETS.items()]
    table.write_text("\n".join(["text;category", *rows]), encoding="utf-8")
    data = ("--train", table, "--test", table, "--label-key", "category", "--epochs", 1)
    told = example("new_method.py", *data, "--seeds", 1, "--methods", "flat")
    METHODS.pop("neighbours")
    assert "Taxonomy(6 labels, 2 levels, tree)" in told
    assert "auto" in example("choose_decisions.py", *data)
    assert "auto" in example("choose_decisions.py", *data, "--tune", table)


def test_what_an_example_cannot_do_is_told_before_anything_is_done(example: Example, tickets: Path) -> None:
    for name, *arguments in (("choose_decisions.py", "--model", tickets), ("coding_trees.py", "--out", "tree.pdf")):
        with pytest.raises(SystemExit) as ended:
            example(str(name), *arguments)
        assert ended.value.code == 2
    with pytest.raises(SystemExit, match="the height of a coding tree"):
        example("coding_trees.py", "--heights", 0)


def test_a_transformer_reads_the_documents(example: Example) -> None:
    pytest.importorskip("transformers")
    train, test = some(example.folder, every=20)
    data = ["--train", train, "--test", test, "--max-length", 16, "--epochs", 2]
    told = example("pretrained.py", tiny_bert(example.folder / "bert"), *data, "--freeze", "--out", "model")
    assert "epoch 2: loss" in told
    assert re.search(r"test documents: micro-F1 \d\.\d+", told)
    assert (example.folder / "model" / "model.safetensors").is_file()


@pytest.mark.slow
def test_a_real_transformer_that_stays_as_it_is_is_good_at_diagnoses(example: Example, shared: Path) -> None:
    folder = shared.parent / "pretrained" / "minilm-l6-fp16"
    told = example("pretrained.py", folder, "--pooling", "mean", "--freeze", "--epochs", 10, "--out", "model")
    found = re.search(r"test documents: micro-F1 (\d\.\d+)", told)
    assert found is not None
    assert float(found[1]) > 0.7


def test_every_way_to_decide_has_a_row_and_more_precision_costs_recall(example: Example) -> None:
    train, test = some(example.folder, every=3)
    told = example("choose_decisions.py", "--train", train, "--test", test, "--epochs", 4)
    head, *lines = told.splitlines()
    rows = {line[:24].strip(): [float(number.rstrip("%")) for number in line[24:].split()[:6]] for line in lines}
    policies = {"as in papers", "raw", "consistent", "top-down", "single-path", "top-k", "auto"}
    assert policies <= set(rows)
    precision, recall, consistent = (head.split().index(name) for name in ("precision", "recall", "consistent"))
    less, more = rows["one path, stop at 0.5"], rows["one path, stop at 0.8"]
    assert more[precision] >= less[precision]
    assert more[recall] < less[recall]
    assert all(rows[name][consistent] == 1 for name in policies - {"raw", "as in papers"})


def test_a_model_of_ones_own_is_decided_for(example: Example, tickets: Path) -> None:
    test = EXAMPLES / "tickets" / "test.csv"
    assert "auto" in example("choose_decisions.py", "--model", tickets, "--tune", test, "--test", test)


def test_the_least_entropy_and_a_picture(example: Example) -> None:
    told = example("coding_trees.py", "--heights", 2, "--out", "trees/tree.svg")
    bits = dict(re.findall(r"^2 +(\w+) +(\d+\.\d+)", told, re.MULTILINE))
    assert bits["optimal"] == min(bits.values(), key=float) == "1.8638"
    assert (example.folder / "trees" / "tree.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_method_of_ones_own_stands_beside_the_others(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(METHODS, "neighbours", raising=False)  # and so afterwards
    train, test = some(example.folder, every=4)
    told = example("new_method.py", "--train", train, "--test", test, "--epochs", 3, "--seeds", 2)
    METHODS.pop("neighbours")
    rows = [line.split() for line in told.splitlines()[2:]]
    assert [row[0] for row in rows] == ["flat", "hitin", "neighbours"]
    assert all(0 < float(row[1]) < 100 for row in rows)


def test_a_service_is_asked(example: Example, served_tickets: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    told = example("ask_service.py", "--url", served_tickets.address, "My parcel is three days late", "--explain")
    assert "Delivery > Late" in told
    assert re.search(r"Late: .*parcel [+-]\d", told) or re.search(r"Late: .*late [+-]\d", told)
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(["Where is my parcel?", "", "I was charged twice"] * 50)))
    assert len(example("ask_service.py", "--url", served_tickets.address).splitlines()) == 200


def test_a_service_explains_what_the_policy_gives(example: Example, served_tickets: Served) -> None:
    path, usual = (
        [each["label"] for each in served_tickets.post("/v1/explain", {"text": "hello", **more}).json()["explanations"]]
        for more in ({"policy": "single-path"}, {})
    )
    told = example("ask_service.py", "--url", served_tickets.address, "hello", "--policy", "single-path", "--explain")
    assert re.findall(r"^    (.+?): ", told, re.MULTILINE) == path != usual


def test_what_a_service_refuses_is_told(example: Example, served_tickets: Served) -> None:
    with pytest.raises(SystemExit, match="nothing answers at"):
        example("ask_service.py", "--url", "http://127.0.0.1:9", "text")
    with pytest.raises(SystemExit, match=r"no model of that name. GET /v1/models"):
        example("ask_service.py", "--url", served_tickets.address, "--model", "nobody", "text")
