"""`examples/onnx/predict.py`, which has neither hitin nor torch, gives what `hitin predict` gives."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hitin import HierarchicalTextClassifier, Taxonomy
from hitin.bags import Bags, Shape
from hitin.calibration import Calibration, Kind
from hitin.decisions import Decisions, Policy
from hitin.decisions.policies import POLICIES
from hitin.export import exporting
from hitin.export.exporting import export_model
from hitin.export.folder import GRAPH
from hitin.export.labels import labels_json
from hitin.model_folder import DECISIONS
from tests.conftest import REPOSITORY, Run
from tests.exports import TEXTS, exported, trained_on_bag, trained_on_bert, trained_on_words
from tests.strategies import taxonomies
from tests.training_harness import documents, tiny_bert

SCRIPT = REPOSITORY / "examples" / "onnx" / "predict.py"
CALIBRATIONS: tuple[Kind, ...] = ("none", "temperature", "isotonic")
_ALONE = """
import runpy, sys
for name in ("torch", "hitin", "transformers"):
    sys.modules[name] = None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
ODD = ["fin [PAD] [UNK] bark [SEP] [CLS] whiskers", "Bark, BARK! ﬁn purrring \ud83d whiskers"]
INPUT = [*TEXTS, *documents(30, seed=6)[0], *ODD]


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("onnx_example", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def run_alone(folder: Path, lines: list[str]) -> subprocess.CompletedProcess[str]:
    """In a process that can import neither hitin nor torch."""
    command = [sys.executable, "-W", "error", "-c", _ALONE, str(SCRIPT), str(folder)]
    return subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=100)


def compare(folder: Path, write: Any, run: Run, within: float = 1e-3) -> None:
    """The labels and scores of the script and of `hitin predict`."""
    lines = [json.dumps({"text": text}) for text in INPUT]
    ended = run_alone(folder, lines)
    assert ended.returncode == 0, ended.stderr
    assert not ended.stderr
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    told = run("predict", folder, write("texts.jsonl", "\n".join(lines)))
    assert told.exit_code == 0, told.stderr
    expected = [json.loads(line) for line in told.stdout.splitlines()]
    assert len(found) == len(expected) == len(INPUT)
    for one, other in zip(found, expected, strict=True):
        assert one["labels"] == other["labels"]
        assert one["scores"] == pytest.approx(other["scores"], abs=within)


# Trained models.


@pytest.fixture(scope="module")
def bag(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "bag"
    exported(trained_on_bag(epochs=8), folder)
    return folder


@pytest.mark.parametrize("calibration", CALIBRATIONS)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_example_says_what_predict_says(
    policy: Policy, calibration: Kind, bag: Path, write: Any, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    kept = HierarchicalTextClassifier.load(bag, device="cpu")
    kept.tune(*documents(60, seed=7), policy=policy, calibration=calibration)
    kept.decisions_ = kept.decisions_.with_options(stop=0.3 if calibration == "temperature" else None)
    kept.save(tmp_path / "model")
    graph = (bag / "onnx" / GRAPH).read_bytes()  # which decisions have no part in
    monkeypatch.setattr(exporting, "export_graph", lambda _, path: path.write_bytes(graph) and [])
    compare(export_model(tmp_path / "model").folder, write, run)


def test_the_example_reads_words_as_textrcnn_does(write: Any, run: Run, tmp_path: Path) -> None:
    compare(exported(trained_on_words(method="flat"), tmp_path / "model").folder, write, run)


def test_the_example_reads_tokens_as_a_transformer_does(write: Any, run: Run, tmp_path: Path) -> None:
    bert = tiny_bert(tmp_path / "bert")
    compare(exported(trained_on_bert(bert), tmp_path / "model").folder, write, run)


def test_the_example_runs_8_bits_as_predict_does(write: Any, run: Run, tmp_path: Path) -> None:
    trained_on_bert(tiny_bert(tmp_path / "bert")).save(tmp_path / "model")
    compare(export_model(tmp_path / "model", int8=True).folder, write, run, within=1e-4)


def test_the_example_reads_plain_lines_too(bag: Path) -> None:
    plain, as_json = (
        run_alone(bag / "onnx", lines).stdout
        for lines in (["the bark", "purr"], ['{"text": "the bark"}', '{"text": "purr"}'])
    )
    assert plain == as_json
    assert plain.count("\n") == 2


def test_the_example_passes_over_blank_lines_and_marks_of_json(bag: Path) -> None:
    lines = ['{"text": "the bark"}', '{"text": "purr"}']
    plain, odd = (run_alone(bag / "onnx", each) for each in (lines, ["\ufeff" + lines[0], "", " ", lines[1], ""]))
    assert (odd.stdout, odd.stderr) == (plain.stdout, "")
    assert run_alone(bag / "onnx", ["\ufeffthe bark", "", "purr"]).stdout.count("\n") == 3, "an empty text is one"


def test_the_folder_of_a_model_itself_is_refused_by_the_example(bag: Path) -> None:
    ended = run_alone(bag, ["the bark"])
    assert ended.returncode == 1
    assert "hitin export" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_decisions_that_were_changed_after_the_export_are_told(bag: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bag / "onnx", tmp_path / "onnx")
    (folder / DECISIONS).write_text('{"policy": "raw"}')
    assert "decisions.json was changed" in run_alone(folder, ["bark"]).stderr


# Tables of random logits.


@st.composite
def cases(draw: st.DrawFn) -> tuple[Taxonomy, Decisions, int]:
    policy = draw(st.sampled_from(POLICIES))
    taxonomy = draw(taxonomies(tree=policy == "consistent"))
    kind = draw(st.sampled_from(CALIBRATIONS))
    chance = np.random.default_rng(seed := draw(st.integers(0, 999)))
    calibration = Calibration(
        kind,
        () if kind == "none" else tuple(chance.uniform(0.3, 3, taxonomy.depth).tolist()),
        tuple(_curve(chance) for _ in range(taxonomy.depth)) if kind == "isotonic" else (),
    )
    thresholds = {label: float(chance.choice([0, 0.2, 0.5, 0.71, 1])) for label in taxonomy.labels}
    stop = draw(st.sampled_from([0.0, 0.4]))
    return taxonomy, Decisions(policy, thresholds, draw(st.integers(1, 5)), stop, calibration), seed


def _curve(chance: np.random.Generator) -> tuple[tuple[float, float], ...]:
    """Some knots, or none."""
    count = int(chance.integers(0, 5))
    steps = chance.uniform(0.1, 2, (2, count)).cumsum(axis=1) - 3
    return tuple((float(x), float(y)) for x, y in steps.T)


@given(cases())
def test_the_example_decides_as_hitin_does(script: ModuleType, case: tuple[Taxonomy, Decisions, int]) -> None:
    taxonomy, decisions, seed = case
    logits = (3 * np.random.default_rng(seed).standard_normal((6, len(taxonomy)))).astype(np.float32)
    about = json.loads(labels_json(taxonomy, decisions, Bags(Shape(1, (0, 0)), (), ()), 8))
    probabilities, given_ = script.decide(logits.T, about)
    np.testing.assert_allclose(probabilities.T, decisions.probabilities(logits, taxonomy), atol=1e-6)
    assert np.array_equal(given_.T, decisions.decide(logits, taxonomy))


def test_the_example_refuses_consistent_sets_where_labels_have_several_parents(script: ModuleType) -> None:
    with pytest.raises(SystemExit, match="one parent at most"):
        script.likeliest(np.zeros((3, 1)), [[], [], [0, 1]])
