"""`hitin demo`, on a part of ICD-10-CM and with a tiny network."""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from hitin.commands import demo
from hitin.commands.demo import PHRASES, guess_table, guesses
from hitin.datasets import icd10
from hitin.display import Lines
from hitin.estimator import HierarchicalTextClassifier, ScoredTexts
from hitin.taxonomy import Taxonomy
from tests.conftest import Run, Write

CHAPTERS = ("04", "09")
TINY = """
[encoder]
hidden = 8
embedding = 16
filters = 8
max_length = 16
[method]
width = 8
[training]
epochs = 2
batch_size = 256
"""


@pytest.fixture(scope="module")
def part() -> icd10.Icd10:
    """Two chapters."""
    pytest.importorskip("simple_icd_10_cm")
    whole = icd10.icd10()
    train, val, test = (
        tuple(document for document in documents if document.labels[0][:2] in CHAPTERS)
        for documents in (whole.train, whole.val, whole.test)
    )
    taxonomy = Taxonomy.from_paths(dict.fromkeys(document.labels for document in train))
    return replace(whole, taxonomy=taxonomy, train=train, val=val, test=test)


@pytest.fixture(autouse=True)
def _small(part: icd10.Icd10, write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(icd10, "icd10", lambda *_: part)
    monkeypatch.setattr(demo, "PRESET", str(write("tiny.toml", TINY)))


def test_the_demo_leaves_data_a_model_scores_and_guesses(part: icd10.Icd10, run: Run, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    result = run("demo", "--out", out, "--device", "cpu")
    assert result.exit_code == 0, result.output
    metrics = json.loads((out / "metrics.json").read_text())
    assert (metrics["documents"], metrics["labels"]) == (len(part.test), len(part.taxonomy))
    assert metrics["seconds"] > 0
    assert [level["level"] for level in metrics["levels"]] == [1, 2, 3]
    (baseline,) = metrics["baselines"]
    assert baseline["name"] == "linear"
    scores = (metrics["micro_f1"], metrics["macro_f1"], baseline["scores"]["micro_f1"])
    for words in (*(f"{score:.4f}" for score in scores), f"hitin predict {out / 'model'}"):
        assert words in result.stdout
    assert (out / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    for phrase in PHRASES:
        assert phrase.split()[0] in result.stdout
    scored = run("evaluate", out / "model", out / "data" / "test.jsonl", "--json")
    assert json.loads(scored.stdout)["micro_f1"] == metrics["micro_f1"]


def test_an_interrupted_demo_goes_on_and_a_finished_one_can_be_repeated(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Write
) -> None:
    def stop(_: Lines, record: dict[str, float], is_best: bool) -> None:  # noqa: ARG001
        if record["epoch"] == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Lines, "epoch", stop)
        stopped = run("demo", "--out", tmp_path)
        assert stopped.exit_code == 130
        assert "the state is saved" in stopped.stderr
        finished = run("demo", "--out", tmp_path)
        assert finished.exit_code == 130
        assert "going on after 1 epoch " in finished.stderr
    monkeypatch.setattr(demo, "PRESET", str(write("other.toml", TINY.replace("epochs = 2", "epochs = 1"))))
    other = run("demo", "--out", tmp_path)
    assert other.exit_code == 0, other.output
    assert "beginning anew" in other.stderr
    again = run("demo", "--out", tmp_path)
    assert again.exit_code == 0
    assert again.stdout.splitlines()[0] == other.stdout.splitlines()[0]


@pytest.mark.parametrize("name", ["data/train.jsonl", "model/model.safetensors", "metrics.json", "about.txt"])
def test_a_folder_with_files_of_ones_own_is_left_as_it_is(name: str, run: Run, tmp_path: Path) -> None:
    own = tmp_path / "own" / name
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    refused = run("demo", "--out", tmp_path / "own")
    assert refused.exit_code == 2
    assert own.read_text() == "mine"
    taken = tmp_path / "own" / Path(name).parts[0]
    assert f"{taken}: this belongs to no demo" in " ".join(refused.stderr.split())
    assert "--out" in refused.stderr
    assert [path for path in (tmp_path / "own").rglob("*") if path.is_file()] == [own]


def test_where_nothing_is_sure_the_most_probable_path_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    taxonomy = Taxonomy.from_edges([("A", "B"), ("A", "C"), ("D", "E")])
    classifier = HierarchicalTextClassifier(taxonomy, hidden=4, embedding=8, filters=4, width=4, epochs=1)
    classifier.fit(["x", "y", "z"], ["B", "C", "E"])
    rows = {"sure": [0.9, 0.1, 0.8, 0.7, 0.1], "unsure": [0.3, 0.4, 0.49, 0.1, 0.2]}
    likely = np.array(list(rows.values()), np.float32)
    monkeypatch.setattr(classifier, "scored", lambda _: ScoredTexts(likely, likely > 0.5, np.zeros_like(likely, bool)))
    sure, unsure = guesses(classifier, list(rows))
    assert (sure.paths, sure.is_sure) == (("A > B", "A > C"), True)
    assert sure.probabilities == pytest.approx((0.8, 0.7))
    assert (unsure.paths, unsure.is_sure) == (("D > E",), False)
    assert unsure.probabilities == pytest.approx((0.2,))
    console = Console(file=io.StringIO(), width=80)
    console.print(guess_table([sure, unsure]))
    shown = [[cell.strip() for cell in line.split("│")[1:-1]] for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert [row for row in shown if row] == [
        ["sure", "A", "0.80"],
        ["", "> B", ""],
        ["", "A", "0.70"],
        ["", "> C", ""],
        ["unsure", "D", "0.20"],
        ["", "> E", "unsure"],
    ]
