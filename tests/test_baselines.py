"""Baselines: trained beside a model, kept with it and no other, not trained twice, and shown by `hitin evaluate`."""

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hitin import HierarchicalTextClassifier, baselines
from hitin.baselines import baseline_folders
from hitin.locking import locked
from hitin.model_folder import BASELINES, TRAINING, WEIGHTS
from hitin.model_place import BEGUN
from tests.conftest import REPOSITORY, Run
from tests.training_harness import TAXONOMY, documents, fitted

TINY = [f"--set={each}" for each in ("hidden=4", "embedding=8", "filters=4", "width=8", "min_count=1", "layers=1")]
LINEAR = ["--baseline", "linear"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    TAXONOMY.write(folder / "taxonomy.json")
    for name, count, seed in (("train", 60, 0), ("val", 30, 1), ("test", 30, 2), ("other", 50, 3)):
        rows = zip(*documents(count, seed), strict=True)
        lines = [json.dumps({"text": text, "label": label}) + "\n" for text, label in rows]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    return folder


def command(data: Path, out: Path, *more: str, train: str = "train") -> list[object]:
    files = (data / "taxonomy.json", data / f"{train}.jsonl", "--val", data / "val.jsonl")
    return ["train", *files, "--out", out, *TINY, "--epochs", 1, "--device", "cpu", *more]


@pytest.fixture(scope="module")
def original(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from typer.testing import CliRunner

    from hitin.cli import app

    out = tmp_path_factory.mktemp("models") / "model"
    result = CliRunner().invoke(app, [str(each) for each in command(data, out, *LINEAR)])
    assert result.exit_code == 0, result.output
    return out


@pytest.fixture
def model(original: Path, tmp_path: Path) -> Path:
    import shutil

    return Path(shutil.copytree(original, tmp_path / "model"))


def names(model: Path) -> list[str]:
    return [name for name, _ in baseline_folders(model)]


def scored(run: Run, *arguments: object) -> dict[str, Any]:
    result = run("evaluate", *arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_a_baseline_stands_in_the_models_folder_and_beside_its_scores(model: Path, data: Path, run: Run) -> None:
    assert names(model) == ["linear"]
    assert not (model / TRAINING / BASELINES).exists()
    found = scored(run, model, data / "test.jsonl")
    assert [each["name"] for each in found["baselines"]] == ["linear"]
    linear = scored(run, model / BASELINES / "linear", data / "test.jsonl")
    assert found["baselines"][0]["scores"]["micro_f1"] == linear["micro_f1"]
    assert scored(run, model, data / "test.jsonl", "--no-baseline")["baselines"] == []
    other = model / BASELINES / "linear"
    both = scored(run, model, data / "test.jsonl", "--baseline", other)["baselines"]
    assert len(both) == 2
    table = run("evaluate", model, data / "test.jsonl").stdout
    assert "linear" in table
    assert "difference" in table


def test_a_single_document_tells_nothing_of_a_model_and_its_baseline(
    model: Path, data: Path, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "one.jsonl").write_text((data / "test.jsonl").read_text().splitlines()[0])
    found = scored(run, model, tmp_path / "one.jsonl")
    assert found["intervals"] == {}
    (baseline,) = found["baselines"]
    assert {frozenset(each) for each in baseline["differences"].values()} == {frozenset(("estimate", "clear"))}
    assert not any(each["clear"] for each in baseline["differences"].values())
    (row,) = (line for line in run("evaluate", model, tmp_path / "one.jsonl").stdout.splitlines() if "exact" in line)
    assert "none" in row
    assert "?" in row


def test_no_baseline_takes_the_place_of_another_of_the_same_short_name(
    model: Path, data: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    linear = model / BASELINES / "linear"
    long = [Path("a" * 40, each, "b" * 40) for each in ("one", "two")]
    monkeypatch.chdir(tmp_path)
    for folder in (*long, Path("linear"), Path("other")):
        shutil.copytree(linear, folder)
    options = [word for folder in (*long, "linear", "other") for word in ("--baseline", folder)]
    found = [each["name"] for each in scored(run, model, data / "test.jsonl", *options)["baselines"]]
    assert found == ["linear", *(str(tmp_path / each) for each in (*long, Path("linear"))), "other"]


def test_a_damaged_baseline_can_be_left_out(model: Path, data: Path, run: Run) -> None:
    (model / BASELINES / "linear" / WEIGHTS).write_bytes(b"no")
    result = run("evaluate", model, data / "test.jsonl")
    assert result.exit_code == 2
    assert "--no-baseline" in result.stderr
    assert run("evaluate", model, data / "test.jsonl", "--no-baseline").exit_code == 0


def test_a_model_that_is_saved_again_keeps_them_and_another_does_not(model: Path, tmp_path: Path) -> None:
    HierarchicalTextClassifier.load(model).save(model)
    assert names(model) == ["linear"]
    HierarchicalTextClassifier.load(model).save(tmp_path / "other")
    assert names(tmp_path / "other") == []
    fitted(30, epochs=1, seed=2).save(model)
    assert names(model) == []
    assert not (model / BASELINES).exists()


def test_a_new_training_replaces_them(model: Path, data: Path, run: Run) -> None:
    result = run(*command(data, model, "--overwrite", train="other"))
    assert result.exit_code == 0, result.output
    assert names(model) == []


def test_a_finished_model_keeps_its_own_until_the_next_is_complete(
    model: Path, data: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained: list[str] = []
    fit = HierarchicalTextClassifier.fit_documents

    def interrupted(self: HierarchicalTextClassifier, *given: Any, **options: Any) -> HierarchicalTextClassifier:
        trained.append(str(self.method))
        if self.method != "linear":
            raise KeyboardInterrupt
        return fit(self, *given, **options)

    monkeypatch.setattr(HierarchicalTextClassifier, "fit_documents", interrupted)
    again = command(data, model, *LINEAR, "--overwrite", "--seed", "5", train="other")
    assert run(*again).exit_code == 130
    assert trained == ["linear", "None"]
    assert names(model) == ["linear"]
    old = scored(run, model / BASELINES / "linear", data / "test.jsonl")
    new = scored(run, model / TRAINING / BASELINES / "linear", data / "test.jsonl")
    assert old["micro_f1"] != new["micro_f1"]
    assert run(*again).exit_code == 130
    assert trained == ["linear", "None", "None"]  # the baseline was not trained again
    monkeypatch.setattr(HierarchicalTextClassifier, "fit_documents", fit)
    result = run(*again)
    assert result.exit_code == 0, result.output
    assert "is trained already" in result.stderr
    assert scored(run, model / BASELINES / "linear", data / "test.jsonl")["micro_f1"] == new["micro_f1"]
    assert not (model / TRAINING / BASELINES).exists()


def test_a_second_command_leaves_the_baseline_of_the_running_one(data: Path, tmp_path: Path, run: Run) -> None:
    (tmp_path / TRAINING / BASELINES / "linear").mkdir(parents=True)
    begun = tmp_path / TRAINING / BASELINES / "linear" / BEGUN
    begun.write_text("{}")
    with locked(tmp_path / TRAINING, "training"):
        result = run(*command(data, tmp_path, *LINEAR))
    assert result.exit_code == 2
    assert "another process is training in this folder" in result.stderr
    assert begun.read_text() == "{}"


def test_another_task_is_not_taken_for_the_same(tmp_path: Path) -> None:
    from hitin.inputs import Documents
    from hitin.settings import Run as Settings

    given = Documents(["a b", "c"], [(0,), (1,)])
    task = baselines.BaselineTask(tmp_path, Settings(), TAXONOMY, given, None)
    marks = {
        each._fingerprint("linear")
        for each in (
            task,
            baselines.BaselineTask(tmp_path, Settings(), TAXONOMY, Documents(["a", "b c"], [(0,), (1,)]), None),
            baselines.BaselineTask(tmp_path, Settings(), TAXONOMY, Documents(["a b", "c"], [(0,), (0,)]), None),
            baselines.BaselineTask(tmp_path, Settings(), TAXONOMY, given, Documents([], [])),
            baselines.BaselineTask(tmp_path, Settings().with_training(seed=3), TAXONOMY, given, None),
            baselines.BaselineTask(tmp_path, Settings(), TAXONOMY, given, given),
        )
    }
    assert len(marks) == 5  # no validation documents are no validation documents
    assert task._fingerprint("linear") != task._fingerprint("flat")


def test_a_network_may_be_a_baseline(data: Path, tmp_path: Path, run: Run) -> None:
    result = run(*command(data, tmp_path / "model", "--baseline", "flat", "--baseline", "flat", "--json"))
    assert result.exit_code == 0, result.output
    assert list(json.loads(result.stdout)["baselines"]) == ["flat"]
    assert names(tmp_path / "model") == ["flat"]


_TOGETHER = """
import json, sys
from pathlib import Path
from hitin.commands.training import prepare, train_model
from hitin.labelled import Reading, read_data
from hitin.watcher import Watcher
folder, data = Path(sys.argv[1]), Path(sys.argv[2])
options = dict(hidden=4, embedding=8, filters=4, width=8, layers=1, min_count=1, epochs=1)
task = prepare(str(folder), overwrite=False, device="cpu", options=options, baselines=["linear", "flat"])
read = read_data(str(data / "taxonomy.json"), [str(data / "train.jsonl")], [str(data / "val.jsonl")], Reading())
trained = train_model(task, read, resume="auto", watcher=Watcher())
Path(f"{folder}.{sys.argv[3]}").write_text(trained.classifier.decisions_.to_json())
"""


@pytest.mark.slow
def test_two_processes_have_the_same_decisions_and_train_baselines_once(data: Path, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    shared = os.environ | {"OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    shared |= {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
    words = [sys.executable, "-c", _TOGETHER, str(tmp_path / "model"), str(data)]
    started = [
        subprocess.Popen([*words, rank], cwd=REPOSITORY, env=shared | {"RANK": rank, "LOCAL_RANK": rank})
        for rank in ("0", "1")
    ]
    assert [process.wait(timeout=300) for process in started] == [0, 0]
    told = [(tmp_path / f"model.{rank}").read_text() for rank in ("0", "1")]
    assert told[0] == told[1] == (tmp_path / "model" / "decisions.json").read_text()
    assert json.loads(told[0])["tuned"]
    assert names(tmp_path / "model") == ["flat", "linear"]
