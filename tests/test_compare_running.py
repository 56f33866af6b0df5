"""`hitin compare` as a command: results, failures, and going on after an interruption or a kill."""

import json
import os
import shutil
import signal
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from hitin import HierarchicalTextClassifier
from hitin.cli import app
from hitin.compare import data, worker
from hitin.compare.cells import MODEL, Cell
from hitin.compare.data import read_splits
from hitin.compare.events import EventWriter
from hitin.compare.places import Place
from hitin.compare.running import _Running
from hitin.compare.worker import work
from hitin.evaluation import truth_table
from hitin.locking import locked
from hitin.metrics import Counts, macro_f1, micro_f1
from tests.comparing import (
    TINY,
    child_of,
    comparison,
    finish,
    is_alive,
    kill_child,
    start,
    table,
    when,
    write_documents,
)
from tests.conftest import Run

LONG = TINY.replace("epochs = 3", "epochs = 90")
ROWS = """
[tables.first.rows.wild]
method = "flat"
learning_rate = 1e30
gradient_clip = 0
"""


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, str]:
    """The folder of a comparison that has run, its exit code, and what it said."""
    folder = tmp_path_factory.mktemp("compared")
    write_documents(folder)
    (folder / "run.toml").write_text(table(ROWS, methods='["hitin"]'))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        options = ["compare", str(folder / "run.toml"), "--out", str(folder / "out"), "--device", "cpu"]
        patch.setattr(sys, "argv", ["hitin", *options])
        done = CliRunner().invoke(app, options)
    return folder, done.exit_code, done.output


def cells(folder: Path) -> dict[str, Cell]:
    found = comparison(folder, (folder / "run.toml").read_text())
    return {f"{cell.row.name} {cell.seed}": cell for cell in found.cells}


def result(cell: Cell) -> dict[str, Any]:
    found = cell.result()
    assert found is not None
    return found


def numbers(cell: Cell) -> dict[str, Any]:
    """What must be the same whatever happened on the way."""
    found = result(cell)
    chosen = {name: found["training"][name] for name in ("epochs", "chosen_epoch", "best_epochs")}
    same = ("format", "data_key", "method", "seed", "parameters", "validation", "test", "decisions")
    return chosen | {name: found[name] for name in same}


def decisions(cell: Cell, way: str, labels: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    with np.load(cell.folder / "decisions.npz", allow_pickle=False) as arrays:
        packed = arrays[way] if way in arrays else arrays["half"]
        assert int(arrays["labels"]) == labels
    return np.unpackbits(packed, axis=1, count=labels).astype(np.bool_)


def test_every_row_has_a_result_and_the_tables_are_written(compared: tuple[Path, int, str]) -> None:
    folder, code, said = compared
    found = cells(folder)
    finished = {name for name, cell in found.items() if cell.state == "finished"}
    assert finished == {"linear 0", "hitin 0"}
    assert "[1/3] tiny / linear / seed 0: micro-F1 " in said
    for name in ("tables.md", "tables.csv", "tables.tex", "index.html"):
        assert (folder / "out" / name).is_file()
    assert code == 1  # one of them failed


def test_scores_are_those_of_the_decisions(compared: tuple[Path, int, str]) -> None:
    folder = compared[0]
    splits = read_splits(comparison(folder, (folder / "run.toml").read_text()).plan.data[0])
    truth = truth_table(splits.test.labels, splits.taxonomy)
    for name, cell in cells(folder).items():
        if name == "wild 0":
            continue
        test = result(cell)["test"]
        ways = {"tuned": "tuned", "half": "half"}
        for way, array in ways.items():
            counts = Counts.of(decisions(cell, array, len(splits.taxonomy)), truth)
            assert test[way] == {"micro_f1": micro_f1(counts), "macro_f1": macro_f1(counts)}
        micro, macro = (
            Counts.of(decisions(cell, f"{by}_best", len(splits.taxonomy)), truth) for by in ("micro", "macro")
        )
        assert test["per_metric"] == {"micro_f1": micro_f1(micro), "macro_f1": macro_f1(macro)}


def test_a_result_says_what_it_took(compared: tuple[Path, int, str]) -> None:
    found = cells(compared[0])
    for name in ("linear 0", "hitin 0"):
        told = result(found[name])
        assert told["memory"]["of"] == "process"
        assert 10**8 < told["memory"]["peak_bytes"] < 10**10
        assert told["parameters"]["trainable"] > told["parameters"]["encoder"]
        assert told["inference"]["documents"] == 40
        assert told["inference"]["documents_per_second"] > 0
        assert str(compared[0]) not in json.dumps(told)
    assert result(found["hitin 0"])["training"]["epochs"] == 3
    assert result(found["hitin 0"])["parameters"]["encoder"] > 0 == result(found["linear 0"])["parameters"]["encoder"]


def test_a_cell_that_fails_is_told_and_the_others_go_on(compared: tuple[Path, int, str]) -> None:
    folder, code, said = compared
    failure = cells(folder)["wild 0"].failure()
    assert code == 1
    assert failure is not None
    assert "the training has run away" in failure["message"]
    assert "failed: tiny / wild / seed 0: the loss is" in said
    assert "Go on with: hitin compare" in said


def test_models_and_states_of_finished_cells_are_removed(compared: tuple[Path, int, str]) -> None:
    left = {path.name for path in cells(compared[0])["hitin 0"].folder.iterdir()}
    assert left >= {"result.json", "decisions.npz"}
    assert not left & {"model", "trained.json", "stderr.txt", ".lock"}


def test_models_are_kept_where_that_is_wanted(tmp_path: Path, run: Run) -> None:
    write_documents(tmp_path)
    (tmp_path / "run.toml").write_text(table())
    words = "compare", tmp_path / "run.toml", "--out", tmp_path / "out", "--device", "cpu", "--only", "first/flat"
    assert run(*words, "--keep-models").exit_code == 0
    folder = cells(tmp_path)["flat 0"].folder / MODEL
    assert HierarchicalTextClassifier.load(folder, device="cpu").predict(["bark leash bone"])


def test_what_is_finished_is_not_trained_again(
    compared: tuple[Path, int, str], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, started = compared[0], []

    def start_none(_: _Running, cell: Cell) -> None:
        started.append(cell.name)
        raise KeyboardInterrupt

    monkeypatch.setattr(_Running, "start", start_none)
    stopped = run("compare", folder / "run.toml", "--out", folder / "out", "--device", "cpu")
    assert (stopped.exit_code, started) == (130, ["tiny / wild / seed 0"])
    done = run("compare", folder / "run.toml", "--out", folder / "out", "--device", "cpu", "--only", "hitin")
    assert (done.exit_code, len(started)) == (0, 1)


def test_a_dry_run_lists_the_cells_with_their_states(compared: tuple[Path, int, str], run: Run) -> None:
    folder = compared[0]
    (folder / "more.toml").write_text(
        (folder / "run.toml").read_text() + '[tables.first.rows.new]\nmethod = "flat"\nepochs = 1'
    )
    found = run("compare", folder / "more.toml", "--out", folder / "out", "--dry-run", "--device", "cpu")
    assert found.exit_code == 0
    assert "finished tiny / hitin / seed 0" in found.stdout
    assert "failed   tiny / wild / seed 0" in found.stdout
    assert "to do    tiny / new / seed 0" in found.stdout
    told = json.loads(run("compare", folder / "more.toml", "--out", folder / "out", "--dry-run", "--json").stdout)
    assert [cell["state"] for cell in told["cells"]].count("finished") == 2


def files_of(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_dry_run_writes_nothing_and_reads_again_only_what_has_changed(
    compared: tuple[Path, int, str], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = compared[0]
    before = files_of(folder)
    with monkeypatch.context() as patch:
        patch.setattr(data, "read_splits", _fail)
        found = run("compare", folder / "run.toml", "--out", folder / "out", "--dry-run")
    assert "3 trainings: 2 finished, 1 failed" in found.stdout
    assert files_of(folder) == before
    found = run("compare", folder / "run.toml", "--out", tmp_path / "out", "--dry-run")
    assert "3 trainings: 3 to do" in found.stdout
    assert not (tmp_path / "out").exists()


def test_a_dry_run_sees_that_documents_have_changed(compared: tuple[Path, int, str], run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(compared[0], folder)
    with (folder / "train.jsonl").open("a") as file:
        file.write('{"text": "more of it", "label": ["Stone"]}\n')
    found = run("compare", folder / "run.toml", "--out", folder / "out", "--dry-run")
    assert "3 trainings: 3 to do" in found.stdout


def test_tables_are_written_from_results_where_the_documents_are_not(
    compared: tuple[Path, int, str], run: Run, tmp_path: Path
) -> None:
    folder = compared[0]
    (tmp_path / "run.toml").write_text((folder / "run.toml").read_text())
    (folder / "out" / "tables.md").unlink()
    found = run("compare", tmp_path / "run.toml", "--out", folder / "out", "--tables-only", "--json")
    assert found.exit_code == 0
    assert json.loads(found.stdout)["unasked_results"] == 0
    assert json.loads(found.stdout)["states"]["finished"] == 2
    assert (folder / "out" / "tables.md").is_file()


def test_results_that_the_file_no_longer_asks_for_are_counted(compared: tuple[Path, int, str], run: Run) -> None:
    folder = compared[0]
    (folder / "changed.toml").write_text((folder / "run.toml").read_text().replace("epochs = 3", "epochs = 4"))
    found = run("compare", folder / "changed.toml", "--out", folder / "out", "--tables-only")
    assert "1 of 3 trainings finished" in found.stdout  # linear knows no epochs
    assert "1 more in the folder: results of other settings" in found.stdout


def test_two_comparisons_in_a_folder_are_refused(compared: tuple[Path, int, str], run: Run) -> None:
    folder = compared[0]
    with locked(folder / "out", "comparing"):
        found = run("compare", folder / "run.toml", "--out", folder / "out", "--device", "cpu")
    assert found.exit_code == 2
    assert "another process is comparing in this folder" in found.stderr


# Interruptions.


def in_this_process(folder: Path, text: str, name: str, watcher: EventWriter | None = None) -> Cell:
    """The cell of a row, trained without a process of its own and without any disturbance."""
    found = comparison(folder, text)
    cell = next(cell for cell in found.cells if cell.row.name == name)
    running = _Running(found.plan, found.data_keys, [Place("cpu", "cpu")], False, _NO_ONE)
    work(running._task(cell, Place("cpu", "cpu")), watcher or EventWriter(StringIO()))
    return cell


_NO_ONE: Any = None


class Interrupting(EventWriter):
    """Ctrl-C at the end of the second epoch."""

    def epoch(self, record: dict[str, float], is_best: bool) -> None:  # noqa: ARG002
        if record["epoch"] == 2:
            raise KeyboardInterrupt


def test_a_cell_that_was_interrupted_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    expected = numbers(in_this_process(tmp_path / "whole", table(), "flat"))
    with pytest.raises(KeyboardInterrupt):
        in_this_process(tmp_path / "disturbed", table(), "flat", Interrupting(StringIO()))
    (cell,) = comparison(tmp_path / "disturbed", patterns=["flat"]).wanted
    assert cell.state == "begun"
    assert numbers(in_this_process(tmp_path / "disturbed", table(), "flat")) == expected
    assert not (cell.folder / "model").exists()


def test_who_does_not_wait_for_the_state_to_be_saved_is_told_how_to_go_on(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_documents(tmp_path)
    (tmp_path / "run.toml").write_text(table())
    arguments = ["compare", str(tmp_path / "run.toml"), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["hitin", *arguments])
    monkeypatch.setattr(_Running, "look", _interrupt)  # also while it saves
    found = run(*arguments)
    assert found.exit_code == 130
    assert f"Go on with: hitin compare {tmp_path / 'run.toml'}" in found.stderr
    assert "saved is done again" in found.stderr


def _interrupt(_: _Running) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="processes are found as Linux shows them")
def test_a_comparison_that_was_killed_and_interrupted_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    text = table(settings=LONG)
    expected = numbers(in_this_process(tmp_path / "whole", text, "hitin"))
    folder = tmp_path / "disturbed"
    often = table(settings=f"{LONG}, checkpoint_seconds = 0.0")
    cell = next(cell for cell in comparison(folder, often).cells if cell.row.name == "hitin")
    log = cell.folder / "model" / "training" / "log.jsonl"

    def has_lines(count: int) -> bool:
        return log.is_file() and log.read_bytes().count(b"\n") >= count

    process = start(folder, "--only", "hitin")  # the process of the cell is killed
    when(process, lambda: has_lines(8))
    kill_child(process)
    code, said = finish(process)
    assert (code, cell.state) == (1, "failed")
    assert "killed" in said

    process = start(folder, "--only", "hitin")  # Ctrl-C
    when(process, lambda: has_lines(16))
    os.kill(process.pid, signal.SIGINT)
    code, said = finish(process)
    assert (code, cell.state) == (130, "begun"), said
    assert "0 of 3 trainings finished" in said
    assert f"Go on with: hitin compare {folder / 'run.toml'}" in said

    process = start(folder, "--only", "hitin")  # the command itself is killed
    when(process, lambda: has_lines(24))
    child = child_of(process)
    process.kill()
    finish(process)

    code, said = finish(start(folder, "--only", "hitin"))  # which waits for the process that was left behind
    assert code == 0, said
    assert not is_alive(child)
    assert numbers(cell) == expected
    assert not (cell.folder / "model").exists()


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="processes are found as Linux shows them")
def test_trainings_side_by_side_end_as_one_after_the_other(tmp_path: Path) -> None:
    text = table(settings=LONG)
    expected = {name: numbers(in_this_process(tmp_path / "alone", text, name)) for name in ("flat", "hitin")}
    found = {cell.row.name: cell for cell in comparison(tmp_path / "together", text).cells}
    process = start(tmp_path / "together", "--at-once", "2", "--only", "flat", "--only", "hitin")

    def both_run() -> bool:
        return all((found[name].folder / "model").is_dir() for name in expected)

    when(process, both_run)
    code, said = finish(process)
    assert code == 0, said
    assert {name: numbers(found[name]) for name in expected} == expected
    assert {result(found[name])["at_once"] for name in expected} == {2}


def test_seeds_differ_and_share_a_key(tmp_path: Path) -> None:
    found = [result(in_this_process(tmp_path, table(head=f"seeds = [{seed}]"), "flat")) for seed in (0, 1)]
    assert found[0]["key"] == found[1]["key"]
    assert found[0]["validation"] != found[1]["validation"]


def test_a_cell_whose_model_is_trained_is_only_scored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = numbers(in_this_process(tmp_path / "whole", table(), "flat"))
    with monkeypatch.context() as patch:
        patch.setattr(worker, "score", _fail)
        with pytest.raises(RuntimeError):
            in_this_process(tmp_path / "stopped", table(), "flat")
    monkeypatch.setattr(HierarchicalTextClassifier, "fit_documents", _fail)
    assert numbers(in_this_process(tmp_path / "stopped", table(), "flat")) == expected


def _fail(*_: object, **__: object) -> None:
    raise RuntimeError


def test_a_state_that_cannot_be_gone_on_from_is_begun_anew(tmp_path: Path) -> None:
    expected = numbers(in_this_process(tmp_path / "whole", table(), "flat"))
    cell = next(cell for cell in comparison(tmp_path / "spoilt").cells if cell.row.name == "flat")
    training = cell.folder / "model" / "training"
    training.mkdir(parents=True)
    (training / "checkpoint.safetensors").write_bytes(b"spoilt")
    assert numbers(in_this_process(tmp_path / "spoilt", table(), "flat")) == expected


def test_documents_that_change_while_it_runs_are_noticed(tmp_path: Path) -> None:
    found = comparison(tmp_path)
    running = _Running(found.plan, found.data_keys, [Place("cpu", "cpu")], False, _NO_ONE)
    task = running._task(found.cells[1], Place("cpu", "cpu"))
    write_documents(tmp_path, count=61)
    with pytest.raises(ValueError, match="were changed"):
        work(task, EventWriter(StringIO()))


def test_a_process_without_a_task_says_what_is_wrong() -> None:
    command = [sys.executable, "-m", "hitin.compare.worker"]
    found = subprocess.run(command, input="nothing\n", capture_output=True, text=True, check=False)
    assert found.returncode == 1
    assert json.loads(found.stdout)["kind"] == "error"
