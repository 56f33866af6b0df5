"""`hitin tune`: the table, what is written and what is not, and options that make no sense."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hitin import HierarchicalTextClassifier
from hitin.export.exporting import export_model
from hitin.model_folder import CARD, DECISIONS
from hitin.validation_scores import FILE
from tests.conftest import Run, Write
from tests.training_harness import documents, fitted

Choice = dict[str, Any]


def jsonl(count: int, seed: int = 1) -> str:
    rows = zip(*documents(count, seed), strict=True)
    return "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "one"
    fitted(120, val=40, epochs=4).save(folder)
    return folder


@pytest.fixture
def model(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "model"))


def choice(result: Any) -> Choice:
    assert result.exit_code == 0, result.output
    found: Choice = json.loads(result.stdout)
    return found


def test_the_table_shows_every_way_and_the_choice_is_written(model: Path, run: Run, write: Write) -> None:
    before = (model / CARD).read_text()
    result = run("tune", model, write("val.jsonl", jsonl(60)), "--for", "micro", "--policy", "top-down")
    assert result.exit_code == 0, result.output
    for words in ("60 documents, tuned for micro-F1", "as in papers", "top-down", "level", "held out", "chosen"):
        assert words in result.stdout
    assert result.stderr.splitlines()[-1] == f"written to {model / DECISIONS}"
    decisions = HierarchicalTextClassifier.load(model).decisions_
    assert decisions.policy == "top-down"
    assert decisions.describe() in result.stdout
    assert (model / CARD).read_text() != before


def test_the_card_of_an_export_stays_one(model: Path, run: Run, write: Write) -> None:
    folder = export_model(model).folder
    before = (folder / CARD).read_text()
    result = run("tune", folder, write("val.jsonl", jsonl(60)), "--policy", "top-down")
    assert result.exit_code == 0, result.output
    after = (folder / CARD).read_text()
    assert after != before
    assert [line for line in after.splitlines() if line.startswith("#")] == [
        line for line in before.splitlines() if line.startswith("#")
    ]
    assert "labels.json" in after
    refused = run("tune", folder)
    assert refused.exit_code == 2
    assert "an exported model keeps no scores of validation documents\nName a file" in refused.stderr


def test_without_documents_those_of_the_training_are_taken(model: Path, run: Run) -> None:
    found = choice(run("tune", model, "--json"))
    assert found["documents"] == 40
    assert found["reached"]
    assert found["folds"] == 5
    assert found["table"][0]["name"] == "as in papers"
    names = [(row["name"], row["thresholds"]) for row in found["table"]]
    assert len(set(names)) == len(names)
    assert json.loads((model / DECISIONS).read_text())["tuned"]["table"] == found["table"]


def test_a_dry_run_leaves_the_model_as_it_is(model: Path, run: Run) -> None:
    files = {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()}
    result = run("tune", model, "--dry-run", "--policy", "raw", "--thresholds", "one", "--calibration", "none")
    assert result.exit_code == 0, result.output
    assert "written" not in result.stderr
    assert {path.name: path.read_bytes() for path in model.iterdir() if path.is_file()} == files


def test_a_wished_precision_is_reached_or_said_not_to_be(model: Path, run: Run, write: Write) -> None:
    found = choice(run("tune", model, "--precision", "0.6", "--json"))
    (row,) = (row for row in found["table"] if row["chosen"])
    assert found["reached"]
    assert row["precision"] >= 0.6
    shown = run("tune", model, "--precision", "0.6")
    assert " -0." not in shown.stdout
    assert "held out" not in shown.stdout
    assert "single-path, stopping" in shown.stdout
    assert "…" not in shown.stdout
    rows = zip(documents(40, 1)[0], documents(40, 7)[1], strict=True)  # labels by lot
    lot = write("lot.jsonl", "".join(json.dumps({"text": text, "label": label}) + "\n" for text, label in rows))
    result = run("tune", model, lot, "--precision", "1", "--policy", "top-k", "--dry-run")
    assert result.exit_code == 0, result.output
    assert "warning: no way to decide has a precision of 1 on these documents" in result.stderr
    assert "below 1" in result.stdout
    assert not choice(run("tune", model, lot, "--precision", "1", "--policy", "top-k", "--dry-run", "--json"))[
        "reached"
    ]


def test_too_few_documents_to_hold_some_out_are_told(model: Path, run: Run, write: Write) -> None:
    result = run("tune", model, write("few.jsonl", jsonl(5)), "--dry-run")
    assert result.exit_code == 0, result.output
    assert "5 documents are too few to hold some of them out" in result.stderr
    assert "held out" not in result.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--precision", "0"], "above 0 and at most 1"),
        (["--precision", "1.5"], "--precision"),
        (["--policy", "loud"], "loud"),
        (["--thresholds", "two"], "two"),
        (["--for", "speed"], "speed"),
        (["nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_what_makes_no_sense_is_refused(options: list[str], words: str, model: Path, run: Run) -> None:
    before = (model / DECISIONS).read_bytes()
    result = run("tune", model, *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr
    assert (model / DECISIONS).read_bytes() == before


def test_errors_are_for_programs_too(model: Path, run: Run) -> None:
    (model / FILE).unlink()
    result = run("tune", model, "--json")
    assert result.exit_code == 2
    (problem,) = json.loads(result.stdout)["problems"]
    assert problem["kind"] == "missing-file"


def test_documents_without_labels_are_refused(model: Path, run: Run, write: Write) -> None:
    result = run("tune", model, write("none.jsonl", '{"text": "bark", "label": []}\n'))
    assert result.exit_code == 2
    assert "label" in result.stderr
