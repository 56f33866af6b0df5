"""`hitin predict` and `hitin evaluate`: answers in order, as they come, for whatever is a text; scores."""

import gzip
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hitin.answering import Texts, answer_lines
from hitin.answers import Answers, path_of
from hitin.decisions import Decisions
from hitin.documents import Document, read_documents
from hitin.errors import InputError
from hitin.estimator import HierarchicalTextClassifier
from hitin.live_input import LiveInput
from hitin.taxonomy import Taxonomy
from tests.conftest import REPOSITORY, Run, Write

TICKETS = REPOSITORY / "examples" / "tickets"
LOW = ("--policy", "consistent", "--threshold", "0.2")  # so that a model that has hardly learnt gives labels, too


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "tickets"
    documents = list(read_documents(TICKETS / "train.jsonl"))
    tiny = {"hidden": 8, "embedding": 16, "filters": 8, "width": 8, "epochs": 3, "batch_size": 8, "min_count": 1}
    classifier = HierarchicalTextClassifier(TICKETS / "taxonomy.tsv", **tiny)  # type: ignore[arg-type]
    classifier.fit([each.text for each in documents], [each.labels for each in documents], out=folder)
    return folder


def answers(output: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


# Prediction.


def test_answers_do_not_take_the_place_of_the_texts(model: Path, run: Run, write: Write, tmp_path: Path) -> None:
    texts = write("texts.jsonl", '{"text": "the parcel is late"}\n')
    (tmp_path / "link.jsonl").symlink_to(texts)
    for out in (texts, tmp_path / "link.jsonl", tmp_path / "." / "texts.jsonl"):
        result = run("predict", model, TICKETS / "test.csv", texts, "--out", out)
        assert result.exit_code == 2
        assert f"{out}: this file is read, and would be written" in result.stderr
        assert texts.read_text() == '{"text": "the parcel is late"}\n'


def test_answers_are_not_called_what_they_are_not(model: Path, run: Run, tmp_path: Path) -> None:
    for name, words in (("p.csv", "Call it .jsonl"), ("p.TSV.gz", "not .tsv"), ("p.parquet", "--to parquet")):
        result = run("predict", model, TICKETS / "test.csv", "--out", tmp_path / name)
        assert result.exit_code == 2
        assert f"{tmp_path / name}: answers are lines of JSON, not ." in result.stderr
        assert words in result.stderr
    assert list(tmp_path.iterdir()) == []
    done = run("predict", model, TICKETS / "test.csv", "--out", tmp_path, "--engine", "local", "--to", "parquet")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "test.parquet").is_file()


def test_every_document_is_answered_in_order(model: Path, run: Run, write: Write) -> None:
    texts = [f"the parcel {number} is late" * (1 + number % 7) for number in range(300)]
    lines = [json.dumps({"id": number, "text": text}) for number, text in enumerate(texts)]
    result = run("predict", model, write("texts.jsonl", "\n".join(lines)), *LOW)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    found = answers(result.stdout)
    assert [answer["id"] for answer in found] == [str(number) for number in range(300)]
    classifier = HierarchicalTextClassifier.load(model)
    classifier.decisions_ = classifier.decisions_.with_options(policy="consistent", threshold=0.2)
    assert [set(answer["labels"]) for answer in found] == classifier.predict(texts)  # type: ignore[call-overload]


def test_an_answer_has_labels_from_the_top_down_paths_and_probabilities(model: Path, run: Run, write: Write) -> None:
    file = write("text.txt", "my card was charged twice\n")
    (answer,) = answers(run("predict", model, file, "--threshold", "0.01", "--top", 3, "--with-text").stdout)
    taxonomy = Taxonomy.read(TICKETS / "taxonomy.tsv")
    assert list(answer) == ["text", "labels", "paths", "scores", "top"]
    numbers = [taxonomy.index(label) for label in answer["labels"]]  # type: ignore[attr-defined]
    assert numbers == list(taxonomy.closure(numbers))
    assert answer["paths"] == [path_of(taxonomy, label) for label in taxonomy.deepest(numbers)]
    assert list(answer["scores"]) == answer["labels"]  # type: ignore[call-overload]
    top = list(answer["top"].values())  # type: ignore[attr-defined]
    assert top == sorted(top, reverse=True)
    assert len(top) == 3
    (bare,) = answers(run("predict", model, file, "--threshold", "1", "--all-scores").stdout)
    assert (bare["labels"], bare["paths"]) == ([], [])
    assert list(bare["scores"]) == list(taxonomy.labels)  # type: ignore[call-overload]


def test_the_raw_policy_leaves_ancestors_out(model: Path, run: Run, write: Write) -> None:
    file = write("text.txt", "my card was charged twice\n")
    (whole,) = answers(run("predict", model, file, "--all-scores").stdout)
    scores = whole["scores"]
    assert isinstance(scores, dict)
    threshold = float(np.quantile(list(scores.values()), 0.5))
    (raw,) = answers(run("predict", model, file, "--policy", "raw", "--threshold", threshold).stdout)
    assert raw["labels"] == [label for label, score in scores.items() if score > threshold]
    assert len(raw["paths"]) <= len(raw["labels"])  # type: ignore[arg-type]


def test_files_of_all_formats_give_the_same_answers(model: Path, run: Run, write: Write, tmp_path: Path) -> None:
    texts = ["the parcel is late", "I forgot my password, again"]
    table = pd.DataFrame({"body": texts, "id": ["a", "b"]})
    table.to_parquet(tmp_path / "t.parquet")
    table.to_csv(tmp_path / "t.csv", index=False)
    table.to_csv(tmp_path / "t.tsv", index=False, sep="\t")
    lines = "".join(json.dumps({"id": row.id, "body": row.body}) + "\n" for row in table.itertuples())
    write("t.jsonl.gz", gzip.compress(lines.encode()))
    wanted = answers(run("predict", model, tmp_path / "t.csv", "--text-key", "body", *LOW).stdout)
    assert [answer["id"] for answer in wanted] == ["a", "b"]
    for name in ("t.parquet", "t.tsv", "t.jsonl.gz"):
        assert answers(run("predict", model, tmp_path / name, "--text-key", "body", *LOW).stdout) == wanted
    plain = answers(run("predict", model, write("t.txt", "\n".join(texts)), *LOW).stdout)
    assert plain == [{name: answer[name] for name in ("labels", "paths", "scores")} for answer in wanted]
    odd = write("t.log", "\n".join(texts))
    assert answers(run("predict", model, odd, "--format", "text", *LOW).stdout) == plain
    assert len(answers(run("predict", model, tmp_path / "t.txt", odd, "--format", "text").stdout)) == 4


def test_odd_texts_are_texts(model: Path, run: Run, write: Write) -> None:
    texts = ["", "   ", "😀", "x" * 1_000_000, "word " * 200_000, "\x00\x1b[31m", "日本語"]
    lines = "".join(json.dumps({"text": text, "id": "é\ud800"}) + "\n" for text in texts)
    result = run("predict", model, write("odd.jsonl", lines), "--top", 1)
    assert result.exit_code == 0, result.output
    assert [answer["id"] for answer in answers(result.stdout)] == ["é\ud800"] * len(texts)
    blank = run("predict", model, write("blank.txt", "a\n\n\r\nb\n"))
    assert len(answers(blank.stdout)) == 4


def test_what_came_before_a_broken_line_is_answered(model: Path, run: Run, write: Write, tmp_path: Path) -> None:
    file = write("broken.jsonl", '{"text": "a"}\n{"text": "b"}\n{"text": \n{"text": "c"}\n')
    result = run("predict", model, file)
    assert result.exit_code == 2
    assert len(answers(result.stdout)) == 2
    assert f"{file}:3: the JSON is broken" in result.stderr
    out = tmp_path / "answers.jsonl"
    assert run("predict", model, file, "--out", out).exit_code == 2
    assert not out.exists()


def test_what_came_before_a_broken_line_is_answered_chunk_by_chunk(
    model: Path, run: Run, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [json.dumps({"id": number, "text": "late " * (number % 5)}) for number in range(20)]
    file = write("broken.jsonl", "\n".join([*lines, "no json", *lines]))
    whole = run("predict", model, file)
    for documents, characters in ((3, 10**9), (1, 10**9), (10**9, 12)):
        monkeypatch.setattr("hitin.answering._DOCUMENTS", documents)
        monkeypatch.setattr("hitin.answering._CHARACTERS", characters)
        result = run("predict", model, file)
        assert (result.exit_code, result.stdout, result.stderr) == (2, whole.stdout, whole.stderr)
    assert [answer["id"] for answer in answers(whole.stdout)] == [str(number) for number in range(20)]


def test_long_texts_are_scored_few_at_a_time(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hitin.answering._CHARACTERS", 10)
    monkeypatch.setattr("hitin.answering._DOCUMENTS", 4)
    texts = ["a" * length for length in (1, 1, 1, 1, 1, 9, 20, 3, 3, 3, 3)]
    chunks = Texts(Taxonomy.read(TICKETS / "taxonomy.tsv")).chunks([str(write("a.txt", "\n".join(texts)))])
    found = [[len(document.text) for document in chunk] for chunk in chunks]
    assert found == [[1, 1, 1, 1], [1, 9], [20], [3, 3, 3, 3]]


def test_the_next_documents_are_scored_while_some_are_answered(model: Path) -> None:
    classifier = HierarchicalTextClassifier.load(model)
    read: list[int] = []

    def chunks() -> Iterator[list[Document]]:
        for number in range(50):
            read.append(number)
            yield [Document(f"late {number}", id=str(number))]

    before = threading.active_count()
    with closing(answer_lines(chunks(), Answers(classifier))) as lines:
        assert json.loads(next(lines))["id"] == "0"
        deadline = time.monotonic() + 20
        while len(read) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert 4 <= len(read) < 10  # a few ahead, not all
    assert threading.active_count() == before


def test_errors_of_the_network_come_out_in_their_place(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = HierarchicalTextClassifier.load(model)
    score = type(classifier.model_).prepared_logits

    def broken(self: Any, prepared: Any, advance: Any = None) -> Any:
        logits = score(self, prepared, advance)
        return logits * np.nan if len(prepared) == 2 else logits

    monkeypatch.setattr(type(classifier.model_), "prepared_logits", broken)
    chunks = [[Document("a")], [Document("b"), Document("c")], [Document("d")]]
    lines = answer_lines(chunks, Answers(classifier))
    assert "labels" in json.loads(next(lines))
    with pytest.raises(InputError, match="not finite"):
        next(lines)


def test_ctrl_c_ends_it_at_once(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "many.txt"
    file.write_text("the parcel is late and my card was charged\n" * 300_000)
    command = hitin("predict", model, file)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert "labels" in process.stdout.readline()
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told) == (130, "stopped\n")
    assert time.monotonic() - begun < 30


def test_answers_may_go_to_a_file(model: Path, run: Run, write: Write, tmp_path: Path) -> None:
    file, out = write("a.txt", "日本\nb\n"), tmp_path / "new" / "answers.jsonl"
    result = run("predict", model, file, "--out", out, "--with-text")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "日本" in out.read_text(encoding="utf-8")
    assert out.read_text(encoding="utf-8") == run("predict", model, file, "--with-text").stdout
    refused = run("predict", tmp_path / "no model", file, "--out", tmp_path)
    assert refused.exit_code == 2
    assert f"this is a folder, and the answers are one file\nName a file, such as {tmp_path}" in refused.stderr
    misspelt = run("predict", tmp_path / "no model", tmp_path / "documets", "--out", tmp_path)
    assert misspelt.exit_code == 2
    assert "documets: there is no such file" in misspelt.stderr


def test_an_output_that_cannot_show_a_name_gets_its_escape(model: Path) -> None:
    answers_of = Answers(HierarchicalTextClassifier.load(model), with_text=True)
    for encoding, shown in (("utf-8", "日本"), ("cp1252", "\\u65e5\\u672c")):
        (line,) = answer_lines([[Document("日本")]], answers_of, encoding)
        assert shown in line
        assert json.loads(line)["text"] == "日本"


def test_a_missing_model_or_file_is_told(model: Path, run: Run, write: Write, tmp_path: Path) -> None:
    file = write("a.txt", "b")
    for arguments, words in (
        ((tmp_path / "nothing", file), "there is no such model"),
        ((tmp_path, file), "this is not a model"),
        ((model, tmp_path / "b.txt"), "there is no such file"),
        ((model, write("a.csv", "x,y\n1,2\n")), "--text-key"),
        ((model, file, "--device", "cuda:99"), "Invalid value"),
    ):
        result = run("predict", *arguments)
        assert result.exit_code == 2
        assert words in result.stderr


def test_paths_go_by_first_parents_and_whole_names_stand_alone() -> None:
    dag = Taxonomy.from_edges([("A", "C"), ("B", "C"), ("C", "D"), ("B", "D")])
    assert path_of(dag, dag.index("D")) == "B > D"
    assert path_of(dag, dag.index("C")) == "A > C"
    assert path_of(dag, dag.index("B")) == "B"
    separate = Taxonomy.from_paths([("A", "X", "Y"), ("B", "X")], homonyms="separate")
    assert path_of(separate, separate.index("A > X > Y")) == "A > X > Y"
    assert path_of(separate, separate.index("B > X")) == "B > X"


# Standard input.


def hitin(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "hitin", *map(str, arguments)]


def test_a_line_is_answered_before_the_next_is_written(model: Path) -> None:
    with subprocess.Popen(
        hitin("predict", model, *LOW), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        for text in (b"the parcel is late\n", b"\n", "😀 two\n".encode()):
            process.stdin.write(text)
            process.stdin.flush()
            assert "labels" in json.loads(process.stdout.readline())
        process.stdin.write(b"one\ntwo\nthree without an end")
        process.stdin.close()
        assert len(process.stdout.readlines()) == 3
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"text": "a", "label": {"x": 1}}\n{"text": "b", "labels": [null]}\n'),
        ("a.csv", "text,label,label\na,A,B\nb,A,B\n"),
    ],
)
def test_labels_of_documents_are_not_looked_at(name: str, content: str, model: Path, write: Write, run: Run) -> None:
    result = run("predict", model, write(name, content))
    assert (result.exit_code, len(answers(result.stdout))) == (0, 2), result.stderr


def test_json_lines_come_through_a_pipe_and_a_reader_may_leave(model: Path) -> None:
    lines = '{"id": 1, "text": "late"}\n\n{"id": 2, "text": "broken"}\nno json\n'
    done = subprocess.run(hitin("predict", model, "-"), input=lines, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert [answer["id"] for answer in answers(done.stdout)] == ["1", "2"]
    assert "standard input:4: the JSON is broken" in done.stderr
    script = f"yes late | head -n 100000 | {' '.join(hitin('predict', model))} | head -n 1; exit ${{PIPESTATUS[2]}}"
    left = subprocess.run(["/bin/bash", "-c", script], capture_output=True, check=False)
    assert (left.returncode, left.stderr) == (0, b"")
    assert len(left.stdout.splitlines()) == 1


@pytest.fixture
def pipe() -> Iterator[tuple[io.FileIO, io.FileIO]]:
    reader, writer = os.pipe()
    with io.FileIO(reader) as reading, io.FileIO(writer, "w") as writing:
        yield reading, writing


Pipe = tuple[io.FileIO, io.FileIO]


def test_lines_come_as_they_are_written(pipe: Pipe) -> None:
    reader, writer = pipe
    writer.write(b"\n \none\ntw")
    source = LiveInput(file=reader)
    assert source.first_line == "one"
    lines = source.lines()
    assert [next(lines), next(lines)] == ["\n", " \n"]
    assert not source.is_waiting()
    assert next(lines) == "one\n"
    assert source.is_waiting()
    writer.write(b"o\nthree")
    assert not source.is_waiting()
    assert next(lines) == "two\n"
    assert source.is_waiting()
    writer.close()
    assert not source.is_waiting()
    assert list(lines) == ["three"]
    assert source.line == 5


@pytest.mark.parametrize(
    ("content", "encoding", "words"),
    [
        (b"", None, []),
        ("é\nb\n".encode("utf-8-sig"), None, ["é\n", "b\n"]),
        ("é\nb\n".encode("utf-16"), None, ["é\n", "b\n"]),
        ("é\nb\n".encode("latin-1"), "latin-1", ["é\n", "b\n"]),
        (b"a\rb\r", None, ["a\n", "b\n"]),
    ],
)
def test_encodings_and_line_ends_are_understood(
    content: bytes, encoding: str | None, words: list[str], pipe: Pipe
) -> None:
    reader, writer = pipe
    writer.write(content)
    writer.close()
    with LiveInput(encoding=encoding, file=reader) as source:
        assert list(source.lines()) == words


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (gzip.compress(b"a\n", mtime=0), "standard input: this is gzip data"),
        (b"PK\x03\x04\n", "standard input: this is a zip archive"),
        (b"a\nb\xff\n", "standard input:2: the bytes are not UTF-8: 0xff at byte 2"),
    ],
)
def test_what_is_no_text_is_told(content: bytes, words: str, pipe: Pipe) -> None:
    reader, writer = pipe
    writer.write(content)
    writer.close()
    with pytest.raises(InputError) as error:
        list(LiveInput(file=reader).lines())
    assert words in str(error.value)


def test_a_line_over_the_limit_is_told(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"x" * (16 * 1024 * 1024 + 10) + b"\nb\n")
    with io.FileIO(path) as file, pytest.raises(InputError, match="1: the line is longer than"):
        list(LiveInput(file=file).lines())


# Scores.


def test_scores_are_those_of_the_estimator(model: Path, run: Run) -> None:
    documents = list(read_documents(TICKETS / "test.csv"))
    classifier = HierarchicalTextClassifier.load(model)
    classifier.decisions_ = classifier.decisions_.with_options(policy="raw", threshold=0.2)
    scores = classifier.evaluate([each.text for each in documents], [each.labels for each in documents])
    result = run("evaluate", model, TICKETS / "test.csv", *LOW, "--policy", "raw", "--json")
    found = json.loads(result.stdout)
    assert found["model"] == str(model)
    assert found["decisions"] == classifier.decisions_.summary()
    assert found["decisions"]["threshold"] == 0.2
    assert found["baselines"] == []
    expected = json.loads(json.dumps(scores.to_json()))
    assert {name: found[name] for name in expected} == expected
    shown = run("evaluate", model, TICKETS / "test.csv", *LOW, "--policy", "raw").stdout
    for words in (f"{scores.micro_f1:.4f}", f"{scores.macro_f1:.4f}", "precision", "raw, threshold 0.2"):
        assert words in shown


def test_several_files_are_scored_together_in_chunks(model: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    files = (TICKETS / "test.csv", TICKETS / "train.jsonl")
    whole = run("evaluate", model, *files, *LOW, "--json")
    assert json.loads(whole.stdout)["documents"] == 40
    monkeypatch.setattr("hitin.model._CELLS", 60)  # three documents of twenty labels
    chunks = json.loads(run("evaluate", model, *files, *LOW, "--json").stdout)
    expected = json.loads(whole.stdout)
    assert chunks.pop("calibration_error") == pytest.approx(expected.pop("calibration_error"))
    assert chunks == expected


def test_labels_with_another_separator_are_scored_and_tuned_on(model: Path, run: Run, write: Write) -> None:
    slashes = write("test.csv", (TICKETS / "test.csv").read_text(encoding="utf-8").replace(" > ", "/"))
    assert "/" in slashes.read_text(encoding="utf-8")
    for words in (("evaluate", model), ("tune", model, "--dry-run")):
        expected = json.loads(run(*words, TICKETS / "test.csv", "--json").stdout)
        assert json.loads(run(*words, slashes, "--separator", "/", "--json").stdout) == expected


def test_the_weights_of_another_epoch_can_be_scored(model: Path, run: Run, tmp_path: Path) -> None:
    for best in ("select", "micro", "macro"):
        assert run("evaluate", model, TICKETS / "test.csv", "--best", best).exit_code == 0
    moved = tmp_path / "moved"
    moved.mkdir()
    for file in model.iterdir():
        if file.is_file():
            (moved / file.name).write_bytes(file.read_bytes())
    result = run("evaluate", moved, TICKETS / "test.csv", "--best", "macro")
    assert result.exit_code == 2
    assert "best-macro.safetensors" in result.stderr


def test_what_cannot_be_scored_is_told_with_its_place(model: Path, run: Run, write: Write) -> None:
    good = '{"text": "a", "label": "Login"}\n'
    for content, words in (
        (good + '{"text": "a", "label": "Log in"}\n', ":2: the label 'Log in' is not in the taxonomy"),
        (good + '{"text": "a", "label": "qqqqqqqq"}\n', "is it the right model?"),
        (good + '{"text": "a"}\n', ":2: the document has no label"),
        ('{"text": "a", "label": []}\n', "no test document has a label"),
        (good + "{\n", ":2: the JSON is broken"),
    ):
        file = write("test.jsonl", content)
        result = run("evaluate", model, file)
        assert result.exit_code == 2
        assert words in result.stderr
        report = json.loads(run("evaluate", model, file, "--json").stdout)
        assert report["exit_code"] == 2


# How labels are chosen, for one command.


@pytest.mark.parametrize("policy", ["consistent", "top-down", "single-path", "top-k"])
def test_every_policy_answers_with_whole_paths(policy: str, model: Path, run: Run) -> None:
    found = answers(run("predict", model, TICKETS / "train.jsonl", "--policy", policy).stdout)
    taxonomy = Taxonomy.read(TICKETS / "taxonomy.tsv")
    assert len(found) == 30
    for answer in found:
        numbers = [taxonomy.index(label) for label in answer["labels"]]  # type: ignore[attr-defined]
        assert numbers == list(taxonomy.closure(numbers))
        if policy == "single-path" and numbers:
            assert len(answer["paths"]) == 1  # type: ignore[arg-type]


def test_k_labels_are_given_with_their_ancestors(model: Path, run: Run, write: Write) -> None:
    file = write("text.txt", "my card was charged twice\n")
    (answer,) = answers(run("predict", model, file, "--policy", "top-k", "--k", 2, "--top", 2).stdout)
    assert set(answer["top"]) <= set(answer["labels"])  # type: ignore[call-overload]
    result = run("predict", model, file, "--policy", "consistent", "--k", 2)
    assert result.exit_code == 2
    assert "has no k" in result.stderr


def test_an_answer_stops_where_it_is_unsure_and_says_what_it_left_out(model: Path, run: Run, write: Write) -> None:
    file = write("text.txt", "my card was charged twice\n")
    whole = ("--policy", "single-path", "--stop", "0", "--all-scores")
    (path,) = answers(run("predict", model, file, *whole).stdout)
    scores = path["scores"]
    assert isinstance(scores, dict)
    end = path["labels"][-1]  # type: ignore[index]
    stop = f"{scores[end] + 1e-3}"
    (answer,) = answers(run("predict", model, file, "--policy", "single-path", "--stop", stop).stdout)
    assert end not in answer["labels"]  # type: ignore[operator]
    assert end in answer["unsure"]  # type: ignore[operator]


def test_the_deepest_labels_are_the_ends_of_paths_in_both_worlds(model: Path, run: Run) -> None:
    documents = list(read_documents(TICKETS / "train.jsonl"))
    options = ("--policy", "raw", "--threshold", "0.15", "--uncalibrated")
    found = answers(run("predict", model, TICKETS / "train.jsonl", *options, "--deepest").stdout)
    classifier = HierarchicalTextClassifier.load(model)
    classifier.decisions_ = classifier.decisions_.uncalibrated().with_options(policy="raw", threshold=0.15)
    expected = classifier.predict([each.text for each in documents], deepest=True)
    assert [set(answer["labels"]) for answer in found] == expected  # type: ignore[call-overload]
    assert any(expected)


def test_uncalibrated_are_the_numbers_of_papers(model: Path, run: Run) -> None:
    found = json.loads(
        run("evaluate", model, TICKETS / "train.jsonl", "--policy", "raw", "--uncalibrated", "--json").stdout
    )
    assert found["decisions"] == {
        "policy": "raw", "calibration": "none", "stop": 0.0, "threshold": 0.5, "words": "raw, threshold 0.5"
    }  # fmt: skip
    classifier = HierarchicalTextClassifier.load(model)
    documents = list(read_documents(TICKETS / "train.jsonl"))
    classifier.decisions_ = Decisions("raw")
    scores = classifier.evaluate([each.text for each in documents], [each.labels for each in documents])
    assert found["micro_f1"] == scores.micro_f1


def test_a_threshold_alone_takes_a_policy_that_has_one(model: Path, run: Run, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(model, moved)
    (moved / "decisions.json").write_text('{"policy": "single-path"}')
    result = run("predict", moved, TICKETS / "train.jsonl", "--threshold", "0.2")
    assert result.exit_code == 0
    assert result.stderr == "the policy single-path has no threshold: --policy consistent is taken\n"
    (moved / "decisions.json").write_text('{"policy": "consistent", "threshold": 0.2}')
    assert run("predict", moved, TICKETS / "train.jsonl").stdout == result.stdout
    result = run("predict", model, TICKETS / "train.jsonl", "--policy", "single-path", "--threshold", "0.2")
    assert result.exit_code == 2
    assert "single-path has no threshold" in result.stderr


def test_decisions_for_other_labels_are_refused_with_their_file(model: Path, run: Run, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    shutil.copytree(model, moved)
    for text, words in (
        ('{"threshold": [0.5]}', "1 threshold for 3 levels"),
        ('{"threshold": {"Login": 0.5}}', "has no threshold"),
        ('{"calibration": {"kind": "temperature", "temperatures": [1]}}', "1 temperature for 3 levels"),
        ('{"others": {"raw": {"threshold": [0.5], "k": 3, "stop": 0.0}}}', "1 threshold for 3 levels"),
    ):
        (moved / "decisions.json").write_text(text)
        result = run("predict", moved, TICKETS / "train.jsonl")
        assert result.exit_code == 2
        assert words in result.stderr
        assert str(moved / "decisions.json") in result.stderr


def test_decisions_of_another_epochs_weights_are_doubted(model: Path, run: Run) -> None:
    result = run("evaluate", model, TICKETS / "test.csv", "--best", "macro")
    assert "tuned for the model's own weights" in result.stderr
    assert run("evaluate", model, TICKETS / "test.csv", "--best", "select").stderr == ""


def test_scores_that_are_no_numbers_are_told(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = HierarchicalTextClassifier.load(model)
    for wrong in (np.nan, np.inf):
        logits = np.full((1, 20), wrong, dtype=np.float32)
        monkeypatch.setattr(type(classifier.model_), "logits", lambda _, texts, logits=logits: logits)  # noqa: ARG005
        for ask in (classifier.predict, classifier.predict_proba):
            with pytest.raises(InputError, match="not finite numbers"):
                ask(["a text"])


# The report.


def test_the_report_is_written_after_the_scores_are_told(model: Path, run: Run, tmp_path: Path) -> None:
    page = tmp_path / "new" / "page.html"
    result = run("evaluate", model, TICKETS / "test.csv", "--report", page)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in page.parent.iterdir()) == ["page.html", "page.labels.csv", "page.report.json"]
    assert str(page) in result.stderr
    assert str(tmp_path) not in json.loads((page.parent / "page.report.json").read_text())["about"]["files"][0]


def test_a_full_disk_loses_no_scores(model: Path, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    result = run("evaluate", model, TICKETS / "test.csv", "--report", tmp_path / "page.html", "--json")
    assert result.exit_code == 2
    assert 0 <= json.loads(result.stdout)["micro_f1"] <= 1
    assert "No space left" in result.stderr


def test_a_report_never_replaces_a_file_that_is_read(model: Path, run: Run, tmp_path: Path) -> None:
    test = tmp_path / "test.labels.csv"
    shutil.copy(TICKETS / "test.csv", test)
    before = test.read_bytes()
    for report, words in (
        (tmp_path / "test.html", "documents it is about"),
        (model / "model.html", "holds a model"),
        (tmp_path / "test.json", "ends in .html"),
    ):
        result = run("evaluate", model, test, "--report", report)
        assert result.exit_code == 2
        assert words in result.stderr
        assert result.stdout == ""
    assert test.read_bytes() == before
