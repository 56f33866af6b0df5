"""`hitin train`: what it writes and says, what it refuses, and that Ctrl-C loses nothing."""

import io
import json
import math
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from tokenizers import Tokenizer

from hitin.commands.training import Trained, prepare, repeat_command, show_trained, train_model
from hitin.decisions import Decisions
from hitin.display import Lines, LiveDisplay
from hitin.encoders.textrcnn import TextRCNN, TextRCNNSettings
from hitin.errors import InputError
from hitin.estimator import HierarchicalTextClassifier
from hitin.labelled import Reading, read_data
from hitin.methods import METHODS, NeuralMethod
from hitin.model_folder import MANIFEST
from hitin.neural import NeuralModel
from hitin.watcher import Watcher
from tests.conftest import REPOSITORY, Run, Write

TICKETS = REPOSITORY / "examples" / "tickets"
TINY = [f"--set={setting}" for setting in ("hidden=8", "embedding=16", "filters=8", "width=8", "min_count=1")]
DATA = [TICKETS / "taxonomy.tsv", TICKETS / "train.jsonl"]
VAL = ["--val", TICKETS / "test.csv"]

TAXONOMY = "Root\tHealth\tSport\nHealth\tInjury\tDiet\nSport\tFootball\n"
GOOD = '{"text": "a broken leg", "label": ["Injury"]}\n{"text": "offside", "label": "Sport > Football"}\n'


def test_a_model_is_trained_and_its_scores_and_place_are_told(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "new" / "model"
    result = run("train", *DATA, *VAL, "--out", out, *TINY, "--epochs", 2, "--device", "cpu", "--height", 3)
    assert result.exit_code == 0, result.output
    for words in ("best epoch", "of 2", "micro-F1", f"hitin predict {out}"):
        assert words in result.stdout
    assert [line.split()[:2] for line in result.stderr.splitlines() if line.startswith("epoch")] == [
        ["epoch", "1/2"],
        ["epoch", "2/2"],
    ]
    classifier = HierarchicalTextClassifier.load(out)
    assert len(classifier.classes_) == 20
    assert classifier.model_.run.method.height == 3


def test_json_is_for_programs(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "model"
    result = run("train", *DATA, *VAL, "--out", out, *TINY, "--epochs", 1, "--json")
    report = json.loads(result.stdout)
    assert report["model"] == str(out)
    assert report["best_epoch"] == 1
    assert report["documents"] == {"train": 30, "validation": 10}
    assert 0 <= report["validation"]["micro_f1"] <= 1
    broken = run("train", *DATA, "--out", out, "--json")
    assert broken.exit_code == 2
    assert json.loads(broken.stdout)["problems"][0]["kind"] == "model-exists"


def test_a_finished_model_is_replaced_only_when_told_so(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "model"
    assert run("train", *DATA, "--out", out, *TINY, "--epochs", 1).exit_code == 0
    refused = run("train", *DATA, "--out", out, *TINY, "--epochs", 1)
    assert refused.exit_code == 2
    assert "holds a finished model" in refused.stderr
    assert "--overwrite" in refused.stderr
    assert run("train", *DATA, "--out", out, *TINY, "--epochs", 2, "--overwrite").exit_code == 0
    assert HierarchicalTextClassifier.load(out).model_.run.training.epochs == 2


def test_a_model_that_another_command_finished_meanwhile_is_not_replaced(tmp_path: Path) -> None:
    options = {"method": "flat", "encoder": "bag", "epochs": 1}
    task = prepare(str(tmp_path), overwrite=False, device="cpu", options=options)
    data = read_data(str(DATA[0]), [str(DATA[1])], (), Reading())
    train_model(task, data, resume="auto", watcher=Watcher())
    manifest = (tmp_path / MANIFEST).read_bytes()
    with pytest.raises(InputError, match="holds a finished model"):
        train_model(task, data, resume="auto", watcher=Watcher())
    assert (tmp_path / MANIFEST).read_bytes() == manifest


def test_without_validation_documents_a_part_is_held_out(run: Run, tmp_path: Path) -> None:
    result = run("train", *DATA, "--out", tmp_path / "model", *TINY, "--epochs", 1, "--set", "validation=0.2")
    assert result.exit_code == 0
    assert "6 of 30 documents are held out" in result.stderr
    kept = run("train", *DATA, "--out", tmp_path / "last", *TINY, "--epochs", 1, "--set", "validation=0")
    assert kept.exit_code == 0
    assert "last epoch" in kept.stdout


def test_without_validation_documents_settings_of_decisions_are_heeded_or_told(run: Run, tmp_path: Path) -> None:
    options = [word for each in ("validation=0", "policy=single-path", "tune_for=macro") for word in ("--set", each)]
    result = run("train", *DATA, "--out", tmp_path / "model", *TINY, "--epochs", 1, *options)
    assert result.exit_code == 0
    assert "nothing comes of tune_for=macro: there are no validation documents" in " ".join(result.stderr.split())
    assert HierarchicalTextClassifier.load(tmp_path / "model").decisions_ == Decisions("single-path")


def test_settings_come_from_a_file_and_options_go_before(run: Run, write: Write, tmp_path: Path) -> None:
    preset = write("mine.toml", "[encoder]\nhidden = 4\nembedding = 8\nfilters = 4\n[method]\nwidth = 6\n")
    out = tmp_path / "model"
    options = ("--preset", preset, "--set", "width=5", "--epochs", 1, "--batch-size", 7, "--learning-rate", "1e-3")
    result = run("train", *DATA, "--out", out, *options, "--seed", 3, "--precision", "fp32", "--method", "hitin")
    assert result.exit_code == 0, result.output
    settings = HierarchicalTextClassifier.load(out).model_.run
    assert isinstance(settings.encoder, TextRCNNSettings)
    assert (settings.encoder.hidden, settings.method.width) == (4, 5)
    assert (settings.training.batch_size, settings.training.learning_rate) == (7, 1e-3)
    assert (settings.training.seed, settings.training.precision) == (3, "fp32")


def test_words_begin_with_the_vectors_of_a_file(run: Run, write: Write, tmp_path: Path) -> None:
    vectors = write("vectors.txt", "parcel 0.5 -1 2\npassword 3 0 -0.5\nelsewhere 1 1 1\n")
    still = ["--epochs", 1, "--set", "learning_rate=1e-9", "--set", "tokens=word"]
    result = run("train", *DATA, "--out", tmp_path / "model", *TINY, *still, "--vectors", vectors)
    assert result.exit_code == 0, result.output
    model = HierarchicalTextClassifier.load(tmp_path / "model", device="cpu").model_
    assert isinstance(model, NeuralModel)
    assert isinstance(model.network.encoder, TextRCNN)
    assert isinstance(model.tokenizer, Tokenizer)
    found = model.network.encoder.embedding.weight.detach()
    for word, vector in (("parcel", [0.5, -1, 2]), ("password", [3, 0, -0.5])):
        assert found[model.tokenizer.token_to_id(word)].tolist() == pytest.approx(vector, abs=1e-4)


def test_documents_that_are_longer_than_what_is_read_of_them_are_told(run: Run, write: Write, tmp_path: Path) -> None:
    taxonomy = write("t.tsv", TAXONOMY)
    lengths = (2, 3, 4, 5)
    lines = [json.dumps({"text": "offside " * length, "label": "Sport > Football"}) + "\n" for length in lengths]
    train = ("train", taxonomy, write("d.jsonl", "".join(lines)), "--val", write("v.jsonl", lines[0]), *TINY)
    cut = run(*train, "--out", tmp_path / "cut", "--epochs", 1, "--set=max_length=4")
    assert "2 of 4 training documents (50%) reach max_length, 4 tokens: what comes after is not read" in cut.stderr
    whole = run(*train, "--out", tmp_path / "whole", "--epochs", 1, "--set=max_length=6")
    assert (whole.exit_code, "max_length" in whole.stderr) == (0, False), whole.output
    bag = run(*train, "--out", tmp_path / "bag", "--epochs", 1, "--encoder=bag", "--set=max_length=4")
    assert "max_length" not in bag.stderr


def test_unknown_labels_are_errors_with_file_line_and_nearest_spelling(run: Run, write: Write, tmp_path: Path) -> None:
    taxonomy, train = write("taxonomy.tsv", TAXONOMY), write("train.jsonl", GOOD)
    bad = write("bad.jsonl", GOOD + '{"text": "x", "label": "Foot ball"}\n')
    for files in ((bad,), (train, "--val", bad), (train, bad)):
        result = run("train", taxonomy, *files, "--out", tmp_path / "model")
        assert result.exit_code == 2
        assert f"{bad}:3: the label 'Foot ball' is not in the taxonomy" in result.stderr
        assert "Did you mean 'Football'?" in result.stderr
        assert "hitin check" in result.stderr
    assert not (tmp_path / "model").exists()


def test_what_is_odd_about_the_documents_is_a_warning(run: Run, write: Write, tmp_path: Path) -> None:
    taxonomy = write("taxonomy.tsv", TAXONOMY)
    odd = '\n{"text": "?", "label": []}\n{"text": " ", "label": "Football"}\n'
    train = write("train.jsonl", GOOD + GOOD.splitlines()[0] + odd)
    val = write("val.jsonl", GOOD.splitlines()[1] + "\n")
    result = run("train", taxonomy, train, "--val", val, "--out", tmp_path / "model", *TINY, "--epochs", 1)
    assert result.exit_code == 0, result.output
    for words in (
        "1 of 5 labels has no training document and cannot be learnt: Diet",
        "1 training document has no label",
        "1 training document has an empty text",
        "1 training document has a text that came before",
        "1 validation document has the text of a training document",
        f"hitin check {taxonomy} {train} {val}",
    ):
        assert f"warning: {words}" in result.stderr


def test_documents_without_any_text_are_not_trained_on(run: Run, write: Write, tmp_path: Path) -> None:
    rows = '{"text": "", "body": "x", "label": "Football"}\n{"text": "y", "label": []}\n'
    train = write("train.jsonl", rows)
    result = run("train", write("taxonomy.tsv", TAXONOMY), train, "--out", tmp_path / "model", *TINY)
    assert result.exit_code == 2
    assert f"{train}: no training document has both a text and a label" in result.stderr
    assert "Is the right key or column taken for the texts?" in result.stderr
    assert not (tmp_path / "model").exists()


def test_the_check_that_is_recommended_reads_as_training_did(run: Run, write: Write, tmp_path: Path) -> None:
    paths = write("paths.dat", "Top\tSanté\tInjury\nTop\tSport\tInjury\n".encode("latin-1"))
    rows = 'body,category\nleg,"Santé\tInjury\nSport"\nleg,Sport\n'
    train = write("a.csv", rows.encode("latin-1"))
    options = ["--separator", r"\t", "--label-delimiter", r"\n", "--root", "Top", "--homonyms", "separate"]
    options += ("--format", "paths", "--encoding", "latin-1", "--text-key", "body", "--label-key", "category")
    result = run("train", paths, train, *options, "--out", tmp_path / "model", *TINY, "--epochs", 1)
    assert result.exit_code == 0, result.output
    told = next(line for line in result.stderr.splitlines() if line.endswith(" shows more"))
    words = shlex.split(told.removeprefix("warning: hitin ").removesuffix(" shows more"))
    assert words[:3] == ["check", str(paths), str(train)]
    assert sorted(words[3:]) == sorted(options)
    assert run(*words).exit_code == 0, run(*words).output


def test_a_taxonomy_in_utf_8_needs_no_encoding_of_its_own(run: Run, write: Write, tmp_path: Path) -> None:
    rows = "text,label\nleer,Gerät > Akku\ndunkel,Gerät > Größe\n"
    train = write("cp.csv", rows.encode("windows-1252"))
    taxonomy, encoding = tmp_path / "cp.tsv", ("--encoding", "windows-1252")
    assert run("taxonomy", train, *encoding, "--out", taxonomy).exit_code == 0
    result = run("train", taxonomy, train, *encoding, "--out", tmp_path / "model", *TINY, "--epochs", 1)
    assert result.exit_code == 0, result.output
    assert run("check", taxonomy, train, *encoding).exit_code == 0
    taxonomy.write_text(taxonomy.read_text(encoding="utf-8"), encoding="windows-1252")
    assert run("check", taxonomy, train, *encoding).exit_code == 0


def test_the_taxonomy_and_the_documents_are_read_as_told(run: Run, write: Write, tmp_path: Path) -> None:
    paths = write("paths.txt", "Top/Santé/Injury\nTop/Sport/Injury\n".encode("latin-1"))
    rows = "body,category\nleg,Santé/Injury\nball,Top/Sport\n"
    first, second = write("a.csv", rows.encode("latin-1")), write("b.csv", "body,category\narm,Sport/Injury\n")
    options = ("--separator", "/", "--root", "Top", "--homonyms", "separate", "--encoding", "latin-1")
    keys = ("--text-key", "body", "--label-key", "category")
    out = tmp_path / "model"
    result = run("train", paths, first, second, *options, *keys, "--out", out, *TINY, "--epochs", 1, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["documents"] == {"train": 3, "validation": 0}
    assert list(HierarchicalTextClassifier.load(out).classes_) == ["Santé", "Sport", "Santé > Injury", "Sport > Injury"]


MISTAKES = {
    "an unknown setting": (["--set", "hight=3"], "Did you mean height?"),
    "a setting without a value": (["--set", "height"], "Write it as name=value"),
    "a wrong value": (["--set", "select=all"], "select cannot be 'all'"),
    "an unknown method": (["--method", "hittin"], "there is no method 'hittin'"),
    "a missing preset": (["--preset", "nowhere.toml"], "Name a TOML file"),
    "a preset given twice": (["--preset", "a", "--set", "preset=nowhere.toml"], "Name a TOML file"),
    "missing vectors": (["--vectors", "nowhere.txt"], "nowhere.txt"),
    "a missing encoder": (["--encoder", "no/such/folder"], "there is no such folder"),
    "what is no setting": (["--set", "taxonomy=a"], "there is no option 'taxonomy'"),
    "a missing device": (["--device", "mps"], "there is no device 'mps' here"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_wrong_option_is_told_before_anything_is_read(case: str, run: Run, tmp_path: Path) -> None:
    options, words = MISTAKES[case]
    result = run("train", tmp_path / "missing.tsv", tmp_path / "missing.jsonl", "--out", tmp_path / "model", *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_an_unwritable_folder_is_told_before_anything_is_read(run: Run, write: Write, tmp_path: Path) -> None:
    file = write("file", "")
    for out in (file, file / "model"):
        result = run("train", tmp_path / "missing.tsv", tmp_path / "missing.jsonl", "--out", out)
        assert result.exit_code == 2
        assert "is not a directory" in result.stderr
    told = run("train", tmp_path / "missing.tsv", tmp_path / "missing.jsonl", "--out", file).stderr
    assert "Choose another --out" in told


def test_documents_that_teach_nothing_are_errors(run: Run, write: Write, tmp_path: Path) -> None:
    taxonomy = write("taxonomy.tsv", TAXONOMY)
    for content, words in (
        ('{"text": "a", "label": []}\n', "no training document has a label"),
        ('{"text": "a"}\n', ":1: the document has no label"),
        ("", "the file is empty"),
    ):
        result = run("train", taxonomy, write("train.jsonl", content), "--out", tmp_path / "model", *TINY)
        assert result.exit_code == 2
        assert words in result.stderr
        assert "warning" not in result.stderr
    good, val = write("train.jsonl", GOOD), write("val.jsonl", '{"text": "a", "label": []}\n')
    result = run("train", taxonomy, good, "--val", val, "--out", tmp_path / "model", *TINY)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {val}: no validation document has a label")


def test_files_without_documents_are_named(run: Run, write: Write, tmp_path: Path, tickets: Path) -> None:
    taxonomy, train, none = write("t.tsv", TAXONOMY), write("a.jsonl", GOOD), write("none.csv", "text,label\n")
    for words, what in (
        (("train", taxonomy, none, "--out", tmp_path / "model"), "training documents"),
        (("train", taxonomy, train, "--val", none, "--out", tmp_path / "model"), "validation documents"),
        (("evaluate", tickets, none), "test documents"),
        (("tune", tickets, none), "validation documents"),
        (("taxonomy", none, "--out", tmp_path / "new.tsv"), "documents"),
    ):
        result = run(*words)
        assert result.exit_code == 2
        assert f"{none}: there are no {what}\nAt least one is needed." in result.stderr


def test_too_few_documents_to_hold_some_out_are_said_to_be_so(run: Run, write: Write, tmp_path: Path) -> None:
    taxonomy, train = write("taxonomy.tsv", TAXONOMY), write("train.jsonl", GOOD)
    result = run("train", taxonomy, train, "--out", tmp_path / "model", *TINY, "--epochs", 1)
    assert result.exit_code == 0, result.output
    assert "too few documents to hold some out" in result.stderr
    assert "last epoch" in result.stdout


def test_a_model_that_gives_no_right_label_says_what_may_help() -> None:
    for score, is_told in ((0.0, True), (0.25, False)):
        epoch = {"epoch": 1.0, "micro_f1": score, "macro_f1": score, "val_loss": 0.5}
        history = SimpleNamespace(chosen=epoch, epochs=[epoch], best={"select": 1}, seconds=1.0)
        classifier: Any = SimpleNamespace(history_=history, decisions_=Decisions())
        assert ("--top 3" in show_trained(Trained("model", classifier))) is is_told


def test_help_is_not_offered_where_tuned_decisions_give_right_labels() -> None:
    epoch = {"epoch": 1.0, "micro_f1": 0.0, "macro_f1": 0.0, "val_loss": 0.5}
    history = SimpleNamespace(chosen=epoch, epochs=[epoch], best={"select": 1}, seconds=1.0)
    tuned = {"table": [{"chosen": True, "micro_f1": 0.4, "macro_f1": 0.3}]}
    classifier: Any = SimpleNamespace(history_=history, decisions_=Decisions(tuned=tuned))
    assert "micro-F1 0.4000" in show_trained(Trained("model", classifier))
    assert "--top 3" not in show_trained(Trained("model", classifier))


def test_a_single_document_is_spoken_of_as_one(run: Run, write: Write, tmp_path: Path) -> None:
    taxonomy, train = write("taxonomy.tsv", TAXONOMY), write("train.jsonl", GOOD)
    val = write("val.jsonl", '{"text": "fish", "label": "Diet"}\n{"text": "?", "label": []}\n')
    result = run("train", taxonomy, train, "--val", val, "--out", tmp_path / "model", *TINY, "--epochs", 1)
    assert "1 validation document has no label: every label counts as wrong for it" in result.stderr


def test_an_interrupted_training_says_so_and_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "my model"
    arguments = [
        *map(str, DATA),
        "--out",
        str(out),
        *TINY,
        "--epochs",
        "30",
        "--set",
        "patience=0",
        "--batch-size",
        "8",
    ]
    command = [sys.executable, "-m", "hitin", "train", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        told = next(line for line in process.stderr if line.startswith("epoch"))
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, told + stderr
    assert stdout == ""
    assert "stopped; the state is saved in" in stderr
    assert f"Go on with: hitin train {shlex.join(arguments)}" in stderr
    assert "Traceback" not in stderr
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "going on after" in done.stderr
    assert "epoch 1/30" not in done.stderr
    assert "of 30" in done.stdout


def test_the_command_to_repeat_does_not_begin_anew() -> None:
    assert repeat_command(["train", "a b", "--resume", "never", "--out", "m"]) == "hitin train 'a b' --out m"
    assert repeat_command(["train", "a", "--resume=never"]) == "hitin train a"


def test_an_unfinished_training_of_other_settings_is_not_mixed_up(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: Lines, record: dict[str, float], is_best: bool) -> None:  # noqa: ARG001
        if record["epoch"] == 2:
            raise KeyboardInterrupt

    command = ("train", *DATA, "--out", tmp_path / "model", *TINY)
    with monkeypatch.context() as patch:
        patch.setattr(Lines, "epoch", stop)
        stopped = run(*command, "--epochs", 3)
        assert stopped.exit_code == 130
        assert "the state is saved" in stopped.stderr
    other = run(*command, "--epochs", 2)
    assert other.exit_code == 2
    assert "an unfinished training with other settings" in other.stderr
    assert "--resume never" in other.stderr
    assert run(*command, "--epochs", 2, "--resume", "never").exit_code == 0


def test_a_training_stopped_before_its_first_checkpoint_says_no_more_than_that(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Lines, "begin", stop)
    stopped = run("train", *DATA, "--out", tmp_path / "model", *TINY)
    assert stopped.exit_code == 130
    assert stopped.stderr.splitlines()[-1] == "stopped"


RECORD = {"epoch": 1.0, "loss": 0.5, "val_loss": 0.25, "micro_f1": 0.75, "macro_f1": 0.5, "seconds": 2.0}


def test_the_live_display_shows_scores_speed_and_what_is_left() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with LiveDisplay(console) as display:
        display.note("a [red]note[/red]")
        display.begin(3, 100, 0, 50)
        with display.counting("validating", 10) as advance:
            advance(5)
            display._bars.refresh()
        for _ in range(5):
            display.step(10, 0.125)
        display.epoch(RECORD, is_best=True)
        display.epoch(RECORD | {"epoch": 2.0, "micro_f1": 0.5}, is_best=False)
        display._bars.refresh()
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    for words in (
        "a [red]note[/red]",
        "validating",
        "loss 0.1250",
        "epoch 1/3  loss 0.5000  validation loss 0.2500  micro-F1 0.7500  macro-F1 0.5000  after 2.0 s  best",
        "last micro-F1 0.5000  macro-F1 0.5000   best micro-F1 0.7500  macro-F1 0.5000 (epoch 1)",
    ):
        assert words in shown


def test_after_an_interruption_the_display_claims_no_best_that_it_does_not_know() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with LiveDisplay(console) as display:
        display.begin(3, 100, 1, 50)
        display.step(10, math.nan)
        display.step(10, 0.25)
        display.epoch(RECORD | {"epoch": 2.0}, is_best=False)
        display._bars.refresh()
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert "loss 0.2500" in shown
    assert "best" not in shown


def test_a_training_without_validation_is_displayed_too(capsys: pytest.CaptureFixture[str]) -> None:
    record = {"epoch": 10.0, "loss": 0.5, "seconds": 4000.0}
    console = Console(file=io.StringIO(), force_terminal=True, width=20)
    for display in (LiveDisplay(console), lines := Lines()):
        display.begin(100, 10, 0, 0)
        display.step(10, 0.5)
        display.epoch(record, is_best=False)
    lines.note("x\x1b[31m")
    lines.note("x\x1b[31m")  # said once
    assert capsys.readouterr().err == "epoch  10/100  loss 0.5000  after 1:06:40\nx\\x1b[31m\n"


# Methods.


def test_the_help_names_every_method(run: Run) -> None:
    shown = "".join(run("train", "--help").stdout.replace("│", " ").split())
    assert all(method in shown for method in METHODS)


@pytest.mark.parametrize("method", ["hiagm-tp", "hiagm-la", "htcinfomax", "himatch"])
def test_much_memory_is_told_before_it_is_taken(
    method: str, run: Run, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reads it in time can still stop it."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    known = METHODS[method]
    assert isinstance(known, NeuralMethod)
    monkeypatch.setattr(known.module, "__init__", stop)
    taxonomy = write("many.tsv", "\n".join(["Root\tTop", "\t".join(["Top", *(f"L{n}" for n in range(1499))])]))
    documents = write("train.jsonl", '{"text": "a b", "label": "L1"}\n{"text": "c d", "label": "L2"}\n')
    result = run("train", taxonomy, documents, "--out", tmp_path / "model", "--method", method, "--device", "cpu")
    assert result.exit_code == 130
    assert f"warning: at 1,500 labels the last layer of {method} has" in result.stderr
    assert "GB of memory for it" in result.stderr


@pytest.mark.parametrize(("option", "says_what_learns_more"), [((), True), (("--encoder", "bag"), False)])
def test_few_validation_documents_are_remarked_upon(
    option: tuple[str, ...], says_what_learns_more: bool, tmp_path: Path, run: Run
) -> None:
    words = (TICKETS / "taxonomy.tsv", TICKETS / "train.jsonl", "--epochs", 1, *option)
    result = run("train", *words, "--out", tmp_path / "model")
    assert result.exit_code == 0, result.output
    assert "choices by 3 validation documents are mostly chance" in result.stderr
    assert ("--method linear or --encoder bag learns more" in result.stderr) == says_what_learns_more
