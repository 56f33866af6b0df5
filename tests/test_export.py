"""The export as a folder: what is in it, that it is whole or not there, and that damage and mix-ups are told."""

import errno
import json
import os
import pickle
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from hitin import HierarchicalTextClassifier
from hitin.errors import InputError, MissingExtraError
from hitin.export import exporting, graph
from hitin.export.exporting import export_model
from hitin.export.folder import GRAPH, LABELS, WEIGHTS, usual_folder
from hitin.export.model import OnnxModel, open_session
from hitin.model_folder import DECISIONS, EXPORT, RUN, TAXONOMY
from hitin.neural import TOKENIZER
from tests.conftest import REPOSITORY, Run
from tests.exports import TEXTS, exported, trained_on_bag
from tests.training_harness import documents


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model"
    exported(trained_on_bag(), path)
    return path


@pytest.fixture
def model(original: Path, tmp_path: Path) -> Path:
    """A copy to spoil."""
    return shutil.copytree(original, tmp_path / "model")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, original: Path) -> None:
    """The graph is not made anew, which takes seconds."""

    def copied(_: object, path: Path) -> list[str]:
        path.write_bytes((original / "onnx" / GRAPH).read_bytes())
        return []

    monkeypatch.setattr(exporting, "export_graph", copied)


def load(path: Path) -> HierarchicalTextClassifier:
    return HierarchicalTextClassifier.load(path, device="cpu")


def refused(path: Path, kind: str) -> InputError:
    with pytest.raises(InputError) as caught:
        load(path)
    assert caught.value.kind == kind
    assert caught.value.remedy
    return caught.value


def names(path: Path) -> set[str]:
    return {each.name for each in path.iterdir()}


# What is in it.


def test_an_export_gives_the_probabilities_and_labels_of_its_model(original: Path) -> None:
    texts = TEXTS + documents(100, seed=2)[0]
    by_torch, by_onnx = load(original), load(original / "onnx")
    assert isinstance(by_onnx.model_, OnnxModel)
    np.testing.assert_allclose(by_onnx.predict_proba(texts), by_torch.predict_proba(texts), atol=1e-4)
    assert by_onnx.predict(texts) == by_torch.predict(texts)
    assert by_onnx.predict([]) == []


def test_an_export_can_be_sent_to_another_process(original: Path) -> None:
    one = load(original / "onnx")
    other = pickle.loads(pickle.dumps(one))
    assert np.array_equal(one.predict_proba(TEXTS), other.predict_proba(TEXTS))


def test_an_export_is_evaluated_like_its_model(original: Path) -> None:
    given = documents(50, seed=3)
    assert load(original / "onnx").evaluate(*given).micro_f1 == load(original).evaluate(*given).micro_f1


def test_the_folder_has_what_it_takes_and_the_checksums_of_what_no_one_may_change(original: Path) -> None:
    path = original / "onnx"
    assert names(path) == {GRAPH, TOKENIZER, TAXONOMY, DECISIONS, RUN, LABELS, "README.md", EXPORT}
    files = json.loads((path / EXPORT).read_text())["files"]
    assert set(files) == names(path) - {DECISIONS, "README.md", EXPORT}
    for name, checksum in files.items():
        assert sha256((path / name).read_bytes()).hexdigest() == checksum


def test_nothing_in_the_graph_tells_of_the_machine_it_was_made_on(original: Path) -> None:
    made = (original / "onnx" / GRAPH).read_bytes()
    for word in (str(REPOSITORY), "site-packages", 'File "'):
        assert word.encode() not in made


def test_labels_json_says_in_numbers_what_the_model_decides_by(original: Path) -> None:
    about, kept = json.loads((original / "onnx" / LABELS).read_text()), load(original)
    taxonomy, decisions = kept.taxonomy_, kept.decisions_
    assert about["labels"] == list(taxonomy.labels)
    assert about["parents"] == [taxonomy.parents(label).tolist() for label in range(len(taxonomy))]
    assert about["thresholds"] == decisions.thresholds(taxonomy).tolist()
    assert (about["policy"], about["k"], about["stop"]) == (decisions.policy, decisions.k, decisions.stop)
    assert len(about["calibration"]["temperatures"]) == len(about["calibration"]["curves"]) == taxonomy.depth
    assert (about["inputs"], about["output"]) == (["ids", "lengths"], "logits")


def test_decisions_may_be_changed_by_hand(model: Path) -> None:
    path = model / "onnx" / DECISIONS
    path.write_text('{"policy": "top-k", "k": 1}')
    assert load(model / "onnx").decisions_.policy == "top-k"
    path.write_text("{")
    assert refused(model / "onnx", "damaged-model").file == str(path)


# Damage.


@pytest.mark.parametrize("name", [GRAPH, TOKENIZER, TAXONOMY, RUN, LABELS])
@pytest.mark.parametrize("spoil", ["tampered", "cut", "missing"])
def test_a_file_that_is_not_the_one_exported_is_told(name: str, spoil: str, model: Path) -> None:
    path = model / "onnx" / name
    data = path.read_bytes()
    if spoil == "missing":
        path.unlink()
    else:
        middle = len(data) // 2
        changed = data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]
        path.write_bytes(changed if spoil == "tampered" else data[:middle])
    told = refused(model / "onnx", "damaged-model")
    assert told.file == str(path)
    assert "export the model again" in str(told.remedy)


@pytest.mark.parametrize("content", [b"", b"no graph", b"\x08\x08\x12\x00"])
def test_a_graph_that_cannot_be_loaded_is_told_even_with_the_right_checksum(content: bytes, model: Path) -> None:
    path = model / "onnx" / GRAPH
    path.write_bytes(content)
    resign(model / "onnx")
    assert refused(model / "onnx", "damaged-model").file == str(path)


def test_a_graph_that_cannot_be_run_with_several_documents_is_told(model: Path) -> None:
    path = model / "onnx" / GRAPH
    found = onnx.load(path)
    for node in found.graph.node:
        node.output[:] = ["inner" if output == "logits" else output for output in node.output]
    labels = found.graph.output[0].type.tensor_type.shape.dim[1].dim_value
    found.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1, labels]), "one"))
    found.graph.node.append(onnx.helper.make_node("Reshape", ["inner", "one"], ["logits"]))
    onnx.save(found, path)
    resign(model / "onnx")
    assert refused(model / "onnx", "damaged-model").file == str(path)


def test_the_graph_of_another_taxonomy_is_told(original: Path) -> None:
    with pytest.raises(InputError, match="another model"):
        open_session(original / "onnx" / GRAPH, labels=3, device="cpu")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 1, "files": {}}', '{"format": 1, "files": 3}'])
def test_a_damaged_list_of_files_is_told(text: str, model: Path) -> None:
    (model / "onnx" / EXPORT).write_text(text)
    refused(model / "onnx", "damaged-model")


def test_an_export_of_another_format_is_told(model: Path) -> None:
    path = model / "onnx" / EXPORT
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    refused(model / "onnx", "other-format")


def resign(path: Path) -> None:
    """Make the checksums right again."""
    found = json.loads((path / EXPORT).read_text())
    found["files"] = {name: sha256((path / name).read_bytes()).hexdigest() for name in found["files"]}
    (path / EXPORT).write_text(json.dumps(found))


# Whole, or not at all.


@pytest.mark.usefixtures("quick")
def test_an_export_takes_the_place_of_an_older_one_and_of_nothing_else(model: Path, tmp_path: Path) -> None:
    (model / "onnx" / GRAPH).write_bytes(b"old")
    export_model(model)
    load(model / "onnx")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match=r"letter\.txt") as caught:
        export_model(model, tmp_path / "other")
    assert caught.value.kind == "unwritable"
    assert names(tmp_path / "other") == {"letter.txt"}
    (tmp_path / "other" / "letter.txt").rename(tmp_path / "other" / "README.md")
    with pytest.raises(InputError, match=r"README\.md"):
        export_model(model, tmp_path / "other")
    assert names(tmp_path / "other") == {"README.md"}


@pytest.mark.usefixtures("quick")
def test_a_link_to_a_folder_stays_one(model: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    export_model(model, tmp_path / "link")
    load(tmp_path / "real")
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path) == {"model", "real", "link"}


@pytest.mark.usefixtures("quick")
def test_what_a_kill_left_goes_with_a_later_export_and_hinders_no_training(model: Path) -> None:
    old, new, others = (model / name for name in (f".{1:016x}.part", f".{2:016x}.part", ".mine.part"))
    for path in (old, new, others):
        path.mkdir()
        (path / GRAPH).write_bytes(b"half")
    for path in (old, others):
        os.utime(path, (0, 0))
    load(model).save(model)
    export_model(model)
    assert [path.exists() for path in (old, new, others)] == [False, True, True]


def test_the_folder_one_stands_in_is_refused(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    refusal = run("export", original, "--out", ".")
    assert refusal.exit_code == 2
    assert "Choose another --out" in refusal.stderr


@pytest.mark.usefixtures("quick")
def test_a_model_that_is_trained_anew_meanwhile_has_no_export(
    model: Path, texts: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    write = exporting._write_rest

    def retrain(*arguments: Any, **options: Any) -> None:
        trained_on_bag(seed=7).save(model)
        write(*arguments, **options)

    monkeypatch.setattr(exporting, "_write_rest", retrain)
    export_model(model)
    assert "another model" in run("predict", model, texts, "--runtime", "onnx").stderr


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left on device")])
@pytest.mark.parametrize("step", ["_write_graph", "_write_rest", "seal"])
def test_what_is_interrupted_leaves_nothing_behind(
    step: str, error: BaseException, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(exporting, step, fail)
    for out in (None, tmp_path / "new" / "deep"):
        with pytest.raises(KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else InputError) as caught:
            export_model(model, out)
        if isinstance(caught.value, InputError):
            assert caught.value.kind == "unwritable"
            assert "No space left" in str(caught.value)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert not (tmp_path / "new").exists()


_FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (8000, resource.RLIM_INFINITY))
from hitin.cli import main
sys.argv = ["hitin", "export", sys.argv[1], "--out", sys.argv[2]]
main()
"""


def test_a_disk_that_fills_up_while_the_graph_is_written_is_told(original: Path, tmp_path: Path) -> None:
    assert (original / "onnx" / GRAPH).stat().st_size > 8000
    command = [sys.executable, "-c", _FULL, str(original), str(tmp_path / "out")]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=200)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr
    assert "cannot be written" in ended.stderr
    assert not names(tmp_path)


def test_a_folder_that_cannot_be_written_to_is_told_before_the_work(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "export_graph", lambda *_: pytest.fail("the work was begun"))
    (tmp_path / "file").write_text("")
    for out in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/export")):
        with pytest.raises(InputError) as caught:
            export_model(original, out)
        assert caught.value.kind == "unwritable"
        assert caught.value.remedy


def test_weights_that_are_too_many_for_one_file_stand_beside_it(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph, "LARGEST_FILE", 0)
    out = export_model(original, tmp_path / "out")
    assert set(out.export.files) >= {GRAPH, WEIGHTS}
    expected = load(original).predict_proba(TEXTS)
    np.testing.assert_allclose(load(out.folder).predict_proba(TEXTS), expected, atol=1e-4)
    (out.folder / WEIGHTS).write_bytes(b"other")
    assert refused(out.folder, "damaged-model").file == str(out.folder / WEIGHTS)


# What cannot be exported.


def test_a_linear_model_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("sklearn")
    linear = HierarchicalTextClassifier(trained_on_bag().taxonomy, method="linear")
    linear.fit(*documents(40)).save(tmp_path / "linear")
    with pytest.raises(InputError, match="no network") as caught:
        export_model(tmp_path / "linear")
    assert caught.value.kind == "not-exportable"
    assert "hitin predict" in str(caught.value.remedy)


def test_int8_is_refused_for_what_is_no_transformer(original: Path) -> None:
    with pytest.raises(InputError, match="the bag's sums") as caught:
        export_model(original, int8=True)
    assert caught.value.kind == "no-int8"
    assert "--int8" in str(caught.value.remedy)
    assert not usual_folder(original, int8=True).exists()


def test_a_graph_that_gives_other_numbers_is_refused(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = exporting._tried

    def wrong(*given: Any) -> Any:
        return honest(*given) + np.float32(0.01)

    monkeypatch.setattr(exporting, "_tried", wrong)
    shutil.rmtree(model / "onnx")
    with pytest.raises(InputError, match=r"differs from torch's by 0\.00") as caught:
        export_model(model)
    assert caught.value.kind == "not-exportable"
    assert not (model / "onnx").exists()


def test_what_torch_cannot_export_is_told(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise RuntimeError("how to debug torch") from ValueError("unsupported\nmuch more")

    monkeypatch.setattr(graph, "_program", fail)
    with pytest.raises(InputError, match=r"could not export this network \(unsupported\)") as caught:
        export_model(model, model / "again")
    assert "newer torch" in str(caught.value.remedy)


@pytest.mark.parametrize("module", ["onnx", "onnxscript", "onnxruntime"])
def test_a_library_that_is_missing_is_named_with_the_extra(
    module: str, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"needs {module}.*\n.*pip install 'hitin\[onnx\]'"):
        export_model(model)
    if module == "onnxruntime":
        with pytest.raises(MissingExtraError, match=r"pip install 'hitin\[onnx\]'"):
            load(model / "onnx")


# What an exported model refuses.


def test_an_exported_model_is_not_saved_but_can_be_trained_anew(original: Path, tmp_path: Path) -> None:
    kept = load(original / "onnx")
    with pytest.raises(InputError, match="cannot be saved") as caught:
        kept.save(tmp_path / "copy")
    assert caught.value.kind == "exported"
    assert not (tmp_path / "copy").exists()
    assert not isinstance(kept.fit(*documents(20)).model_, OnnxModel)


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "mps", "abacus"])
def test_a_device_that_onnxruntime_has_not_is_told(device: str, original: Path) -> None:
    with pytest.raises(InputError, match="onnxruntime cannot compute on") as caught:
        HierarchicalTextClassifier.load(original / "onnx", device=device)
    assert caught.value.kind == "bad-option"


def test_cuda_is_taken_where_onnxruntime_has_it() -> None:
    from hitin.export import model as running

    both = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    assert running._providers("auto", both) == running._providers("cuda", both) == both
    assert running._providers("cuda:1", both)[0] == ("CUDAExecutionProvider", {"device_id": 1})
    assert running._providers("cpu", both) == running._providers("auto", both[1:]) == both[1:]


# The command.


def answers(found: Any) -> list[Any]:
    assert found.exit_code == 0, found.stderr
    return [json.loads(line) for line in found.stdout.splitlines()]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(documents(30, seed=4)[0]) + "\n")
    return path


def test_predict_by_onnx_gives_the_labels_of_torch(model: Path, texts: Path, run: Run) -> None:
    expected = answers(run("predict", model, texts))
    for arguments in (
        (model, texts, "--runtime", "onnx"),
        (model / "onnx", texts),
        (model / "onnx", texts, "--runtime", "onnx"),
    ):
        found = answers(run("predict", *arguments))
        assert [each["labels"] for each in found] == [each["labels"] for each in expected]
        for one, other in zip(found, expected, strict=True):
            assert one["scores"] == pytest.approx(other["scores"], abs=1e-3)


def test_the_models_own_decisions_count_for_its_export(model: Path, texts: Path, run: Run) -> None:
    (model / DECISIONS).write_text('{"policy": "top-k", "k": 8}')
    found = answers(run("predict", model, texts, "--runtime", "onnx"))
    assert all(len(each["labels"]) == 8 for each in found)
    assert any(len(each["labels"]) < 8 for each in answers(run("predict", model / "onnx", texts)))


def test_evaluate_has_the_runtime_too(model: Path, tmp_path: Path, run: Run) -> None:
    lines = [json.dumps({"text": text, "label": label}) for text, label in zip(*documents(30, seed=5), strict=True)]
    (tmp_path / "test.jsonl").write_text("\n".join(lines))
    scores = [
        json.loads(run("evaluate", model, tmp_path / "test.jsonl", "--json", "--runtime", runtime).stdout)["micro_f1"]
        for runtime in ("torch", "onnx")
    ]
    assert scores[0] == scores[1]
    refusal = run("evaluate", model, tmp_path / "test.jsonl", "--runtime", "onnx", "--best", "micro")
    assert refusal.exit_code == 2
    assert "--best" in refusal.stderr


def test_an_export_that_is_missing_or_of_an_older_model_is_told_with_the_command(
    model: Path, texts: Path, run: Run
) -> None:
    missing = run("predict", model, texts, "--runtime", "onnx-int8")
    assert missing.exit_code == 2
    assert f"hitin export {model} --to onnx --int8" in missing.stderr
    trained_on_bag(seed=7).save(model)
    stale = run("predict", model, texts, "--runtime", "onnx")
    assert stale.exit_code == 2
    assert "another model" in stale.stderr
    assert f"hitin export {model} --to onnx\n" in stale.stderr
    assert run("predict", model, texts).exit_code == 0


def test_an_export_in_the_place_of_another_kind_is_told(model: Path, texts: Path, run: Run) -> None:
    (model / "onnx").rename(model / "onnx-int8")
    found = run("predict", model, texts, "--runtime", "onnx-int8")
    assert found.exit_code == 2
    assert f"hitin export {model} --to onnx --int8\n" in found.stderr


@pytest.mark.parametrize("runtime", ["torch", "onnx-int8"])
def test_an_exported_folder_runs_only_as_what_it_is(runtime: str, original: Path, texts: Path, run: Run) -> None:
    found = run("predict", original / "onnx", texts, "--runtime", runtime)
    assert found.exit_code == 2
    assert "exported as onnx" in found.stderr


@pytest.mark.usefixtures("quick")
def test_the_command_tells_where_it_wrote(model: Path, tmp_path: Path, run: Run) -> None:
    found = run("export", model, "--to", "onnx", "--out", tmp_path / "here")
    assert found.exit_code == 0, found.stderr
    assert found.stdout == f"{tmp_path / 'here'}\n"
    told = json.loads(run("export", model, "--json").stdout)
    assert told["folder"] == str(model / "onnx")
    assert told["int8"] is False
    again = run("export", model / "onnx")
    assert again.exit_code == 2
    assert "exported model" in again.stderr
