"""`hitin explain` and the deletion test: what is shown, what is written, and whether explanations tell the truth."""

import json
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hitin.documents import read_documents
from hitin.errors import InputError
from hitin.estimator import HierarchicalTextClassifier
from hitin.explain import explain
from hitin.explain.deletion import Deletions, deletion_test, rank_correlation
from hitin.explain.quadrature import MOST_POINTS, TOLERANCE
from tests.conftest import REPOSITORY, SHARED, Run, Write
from tests.training_harness import fitted

TICKETS = REPOSITORY / "examples" / "tickets"
TEXT = "the parcel is late"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tickets"
    given = list(read_documents(TICKETS / "train.jsonl"))
    chosen: dict[str, Any] = {"encoder": "bag", "embedding": 32, "epochs": 20, "batch_size": 8, "min_count": 1}
    classifier = HierarchicalTextClassifier(TICKETS / "taxonomy.tsv", device="cpu", **chosen)
    classifier.fit([each.text for each in given], [each.labels for each in given], out=folder)
    return folder


def lines(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


# The command.


def test_a_text_on_the_command_line_is_shown_with_its_words(model: Path, run: Run) -> None:
    result = run("explain", model, TEXT, "--label", "Late", "--top", 2)
    assert result.exit_code == 0, result.output
    (each,) = explain(HierarchicalTextClassifier.load(model), TEXT, ["Late"])
    best = sorted(each.words, key=lambda word: -abs(word.weight))
    for word in best[:2]:
        assert f"{word.weight:+.2f}" in result.stdout
    assert f"{100 * each.probability:.1f} %" in result.stdout
    assert f"{len(each.words) - 2} others" in result.stdout
    assert f"{each.score:+.2f}" in result.stdout


def test_a_single_word_that_is_no_file_is_told_how_it_is_given(model: Path, run: Run) -> None:
    result = run("explain", model, "late")
    assert result.exit_code == 2
    assert "with --text" in result.stderr
    assert run("explain", model, "--text", "late").exit_code == 0


def test_json_is_what_the_library_says_a_line_for_each_text(model: Path, run: Run, write: Write) -> None:
    records = [{"id": "a", "text": TEXT}, {"text": "Forgot my password \U0001f600 again"}, {"text": ""}]
    file = write("texts.jsonl", "\n".join(map(json.dumps, records)))
    result = run("explain", model, file, "--json")
    assert result.exit_code == 0, result.output
    found, classifier = lines(result.stdout), HierarchicalTextClassifier.load(model)
    assert [each.get("id") for each in found] == ["a", None, None]
    for record, told in zip(records, found, strict=True):
        expected = explain(classifier, record["text"])
        assert [each["label"] for each in told["explanations"]] == [each.label for each in expected]
        for one, other in zip(told["explanations"], expected, strict=True):
            assert one["score"] == pytest.approx(other.score, abs=1e-4)
            assert [(word["start"], word["end"]) for word in one["words"]] == [word[:2] for word in other.words]


def test_texts_come_from_standard_input_and_from_the_option_too(
    model: Path, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spoken = run("explain", model, "--text", "late", "--text", TEXT, "--json")
    assert len(lines(spoken.stdout)) == 2
    (tmp_path / "two words.txt").write_text("late\nlater\n")
    monkeypatch.chdir(tmp_path)
    assert len(lines(run("explain", model, "two words.txt", TEXT, "--json").stdout)) == 3  # a file, and a text
    missing = run("explain", model, "nothing.jsonl")
    assert missing.exit_code == 2
    assert "nothing.jsonl" in missing.stderr


def test_decisions_of_the_command_line_are_those_of_predict(model: Path, run: Run) -> None:
    result = run("explain", model, TEXT, "--policy", "top-k", "--k", 1, "--json")
    expected = run("predict", model, REPOSITORY / "examples" / "tickets" / "test.csv", "--policy", "top-k", "--k", 1)
    assert expected.exit_code == 0
    assert len(lines(result.stdout)[0]["explanations"]) <= 3  # one label and its ancestors


def test_what_harms_a_terminal_is_not_written(model: Path, run: Run) -> None:
    result = run("explain", model, "--text", "late \x1b[31m parcel\nwith [bold]brackets[/bold]", "--label", "Late")
    assert result.exit_code == 0, result.output
    assert "\x1b[31m" not in result.stdout
    assert "[bold]brackets" in result.stdout.replace("\n", " ")


def test_an_unknown_label_is_an_error_with_the_nearest(model: Path, run: Run) -> None:
    result = run("explain", model, TEXT, "--label", "Lat")
    assert result.exit_code == 2
    assert "Did you mean 'Late'" in result.stderr


def test_an_exported_model_is_refused_and_its_model_is_named(model: Path, run: Run) -> None:
    pytest.importorskip("onnxruntime")
    assert run("export", model, "--to", "onnx").exit_code == 0
    result = run("explain", model / "onnx", TEXT)
    assert result.exit_code == 2
    assert f"hitin explain {model}" in result.stderr
    with pytest.raises(InputError, match="exported") as caught:
        explain(HierarchicalTextClassifier.load(model / "onnx"), TEXT)
    assert caught.value.kind == "no-explanation"


# Leaving out words.


def test_leaving_out_the_top_word_lowers_more_than_leaving_out_another(model: Path, run: Run, write: Write) -> None:
    file = write("some.jsonl", "\n".join((TICKETS / "train.jsonl").read_text().splitlines()[:12]))
    result = run("explain", model, file, "--deletions", "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["documents"] == 12
    assert found["top_lowers_score_more"] > 0.8
    assert found["top"]["score_drop"] > found["other"]["score_drop"]
    assert found["agreement"] > 0.5
    texts = [document.text for document in read_documents(file)]
    errors = [
        (each.explanation.error, each.explanation.points)
        for each in deletion_test(HierarchicalTextClassifier.load(model), texts).trials
    ]
    assert found["error"]["largest"] == pytest.approx(max(error for error, _ in errors), abs=1e-3)
    assert found["error"]["median"] <= TOLERANCE
    assert all(error <= TOLERANCE or points > MOST_POINTS - 8 for error, points in errors)  # or all points are used up
    table = run("explain", model, file, "--deletions").stdout  # by the same chance
    assert f"{found['agreement']:.3f}" in table
    assert f"{100 * found['top_lowers_score_more']:.1f} %" in table


def test_drops_are_what_the_model_says_without_a_word() -> None:
    classifier = fitted(60, val=20)
    text = "purr the mew"
    found = deletion_test(classifier, [text], seed=3)
    for trial in found.trials:
        label = list(classifier.classes_).index(trial.explanation.label)
        whole = classifier.model_.logits([text])[0, label]
        best = max(trial.explanation.words, key=lambda word: word.weight)
        without = classifier.model_.logits([text[: best.start] + text[best.end :]])[0, label]
        assert trial.top.score == pytest.approx(whole - without, abs=1e-5)
        others = {
            round(float(whole - classifier.model_.logits([text[: word.start] + text[word.end :]])[0, label]), 4)
            for word in trial.explanation.words
            if word != best
        }
        assert round(trial.other.score, 4) in others


def test_texts_of_a_word_are_counted_and_compared_with_nothing() -> None:
    found = deletion_test(fitted(20), ["purr", "", "!"])
    assert (found.documents, found.skipped, found.trials) == (3, 3, [])
    assert found.told["agreement"] is None
    assert found.told["top"]["score_drop"] is None
    assert Deletions([], 0, 0).told["error"] is None


def test_ranks_agree_as_in_scipy() -> None:
    stats = pytest.importorskip("scipy.stats")
    chance = np.random.default_rng(0)
    for _ in range(50):
        left, right = chance.integers(0, 5, (2, 8)).astype(float)
        assert rank_correlation(left, right) == pytest.approx(stats.spearmanr(left, right)[0])
    assert rank_correlation(np.ones(4), np.arange(4.0)) is None


# Real weights.


@pytest.mark.slow
def test_words_of_real_abstracts_add_up_on_a_real_transformer(shared: Path) -> None:
    """Twenty abstracts, a classifier that has learnt a little; of each text the most probable label."""
    pytest.importorskip("transformers")
    folder = shared / "arxiv46985"
    given = list(islice(read_documents(folder / "train.jsonl.xz"), 300))
    chosen: dict[str, Any] = {"freeze": True, "max_length": 64, "epochs": 10, "device": "cpu", "validation": 0}
    encoder = str(SHARED / "pretrained" / "minilm-l6-fp16")
    classifier = HierarchicalTextClassifier(folder / "taxonomy.tsv", encoder=encoder, text_pooling="mean", **chosen)
    classifier.fit([each.text for each in given], [each.labels for each in given])
    for document in islice(read_documents(folder / "test.jsonl.xz"), 20):
        likeliest = classifier.classes_[classifier.predict_proba([document.text])[0].argmax()]
        (each,) = explain(classifier, document.text, [likeliest])
        assert each.error <= 0.01
        assert sum(word.weight for word in each.words) == pytest.approx(each.score - each.baseline, rel=0.0101)
        assert all(one.end <= other.start for one, other in pairwise(each.words))
