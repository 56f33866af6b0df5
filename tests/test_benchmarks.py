"""The benchmarks of speed run, tell what they should, and set the same model against `hitin`'s own."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import growth
import hugging_face
import inference
import plain_loop
import plots
import reporting
import speed_data
import training_speed
import training_step
from hitin import Taxonomy
from hitin.encoders.textrcnn import TextRCNN, TextRCNNSettings
from hitin.inputs import Documents
from hitin.neural import NeuralModel
from hitin.settings import Run, TrainingSettings
from hitin.training.optimisation import learning_rate_factor
from tests.conftest import REPOSITORY

Main = Callable[[Sequence[str]], None]
Rows = list[dict[str, str]]


def tables_of(markdown: str) -> list[Rows]:
    """Each table as its rows, cells by column."""
    found: list[Rows] = []
    columns: list[str] = []
    for line in markdown.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            columns = []
        elif not columns:
            columns = cells
            found.append([])
        elif set(line) != {"|", "-"}:
            found[-1].append(dict(zip(columns, cells, strict=True)))
    return found


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    speed_data.make_encoder(folder, tiny=True, seed=0)
    return folder


@pytest.fixture
def within(monkeypatch: pytest.MonkeyPatch) -> Callable[[Main], None]:
    """Measure in this process instead of in one of its own, which takes seconds to start."""
    for name in ("HITIN_CACHE", "TOKENIZERS_PARALLELISM", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, os.environ.get(name, "1"))  # so that it is put back

    def replace(main: Main) -> None:
        def measured(_: str, *arguments: object) -> object:
            with redirect_stdout(io.StringIO()) as said:
                main(["--measure", *map(str, arguments)])
            return json.loads(said.getvalue())

        monkeypatch.setattr(sys.modules[main.__module__], "measured", measured)

    return replace


def test_a_training_step_is_set_against_flat(
    encoder: Path, within: Callable[[Main], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    within(training_step.main)
    given = ["--tiny", "--encoder", str(encoder), "--ways", *training_step.WAYS, "--gigabytes", "0.001"]
    training_step.main([*given, "--out", str(tmp_path)])
    (rows,) = tables_of(said := capsys.readouterr().out)
    assert [row["method"] for row in rows] == list(training_step.WAYS.values())
    assert rows[0]["times flat"] == "1.000"
    assert all(float(row["ms a step"]) > 0 for row in rows[:2])
    assert all("not tried" in row["ms a step"] for row in rows[2:])
    assert tables_of((tmp_path / "training_step.md").read_text()) == [rows]
    assert str(encoder.parent) not in said  # no paths of a machine


def test_training_is_set_against_the_trainer_in_processes_of_their_own(
    encoder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HITIN_CACHE", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, "off")
    training_speed.main(["--tiny", "--parts", "bert", "--encoder", str(encoder)])
    (rows,) = tables_of(capsys.readouterr().out)
    assert [row["flat on a transformer"] for row in rows] == ["transformers.Trainer", "hitin"]
    ratio = float(rows[1]["documents/s"].replace(",", "")) / float(rows[0]["documents/s"].replace(",", ""))
    assert float(rows[1]["times the first row"]) == pytest.approx(ratio, rel=0.02)


def test_textrcnn_is_set_against_plain_loops(
    encoder: Path, within: Callable[[Main], None], capsys: pytest.CaptureFixture[str]
) -> None:
    within(training_speed.main)
    training_speed.main(["--tiny", "--parts", "textrcnn", "--encoder", str(encoder)])
    (rows,) = tables_of(capsys.readouterr().out)
    assert [row["flat on TextRCNN"] for row in rows] == list(training_speed.SIDES["textrcnn"].values())
    assert all(float(row["documents/s"].replace(",", "")) > 0 for row in rows)


@pytest.mark.parametrize(
    "ways", [["torch", "linear"], pytest.param(["torch", "onnx", "int8"], marks=pytest.mark.slow)], ids="-".join
)
def test_inference_sets_ways_against_torch(
    ways: list[str], encoder: Path, within: Callable[[Main], None], capsys: pytest.CaptureFixture[str]
) -> None:
    within(inference.main)
    given = ["--tiny", "--encoder", str(encoder), "--ways", *ways, "--threads", "1", "--calls", "3"]
    inference.main([*given, "--batches", "1"])
    calls, loading = tables_of(capsys.readouterr().out)
    titles = [inference.WAYS[way] for way in ways]
    assert [(row["way"], row["threads"], row["texts a call"]) for row in calls] == [(each, "1", "1") for each in titles]
    assert all(0 < float(row["p50 ms network"]) < float(row["p50 ms"]) <= float(row["p99 ms"]) for row in calls)
    assert [row["way"] for row in loading] == titles
    if "onnx" in ways:
        assert loading[0]["micro-F1"] == loading[1]["micro-F1"]


def test_growth_tells_slopes_and_draws_them(
    encoder: Path, within: Callable[[Main], None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    within(growth.main)
    growth.main(["--tiny", "--encoder", str(encoder), "--out", str(tmp_path)])
    rows, slopes = tables_of(capsys.readouterr().out)
    assert {(row["growing"], row["work"]) for row in rows} == {("documents", "scoring"), ("labels", "deciding")}
    assert [(row["growing"], row["work"]) for row in slopes] == [("documents", "scoring"), ("labels", "deciding")]
    text = (tmp_path / "growth.md").read_text()
    for picture in tmp_path.glob("*.svg"):
        assert f"]({picture.name})" in text
    assert len(list(tmp_path.glob("*.svg"))) == 4


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_the_slope_is_the_power(power: float) -> None:
    points = [(float(size), 3 * size**power) for size in (10, 70, 900)]
    assert plots.slope(points) == pytest.approx(power)


def test_a_plot_stands_alone() -> None:
    svg = plots.lines("a < b", "labels", "seconds", {"one & two": [(10, 0.1), (1000, 5)], "flat": [(10, 1), (1000, 1)]})
    root = ElementTree.fromstring(svg)
    assert not [each for each in root.iter() if {"class", "href", "style"} & set(each.attrib)]
    circles = [
        (float(each.get("cx", "")), float(each.get("cy", ""))) for each in root.iter() if each.tag[-6:] == "circle"
    ]
    assert len(circles) == 4
    assert circles[0][0] < circles[1][0]  # larger to the right
    assert circles[0][1] > circles[1][1]  # and further up
    assert all(0 <= x <= plots.WIDTH and 0 <= y <= plots.HEIGHT for x, y in circles)


def test_a_busy_machine_is_told() -> None:
    assert "mean nothing" in reporting.others_told(0.3, 2)
    assert reporting.others_told(0.1, 2) == "Other processes took 0.10 of 2 cores meanwhile."
    assert "not known" in reporting.others_told(None, 2)


def test_only_what_others_take_counts_as_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    busy, own, now = iter([100.0, 130.0]), iter([7.0, 12.0]), iter([50.0, 60.0])
    monkeypatch.setattr(reporting, "_busy_seconds", lambda: next(busy))
    monkeypatch.setattr(reporting, "_own_seconds", lambda: next(own))
    monkeypatch.setattr("reporting.time.monotonic", lambda: next(now))
    assert reporting.Others().cores() == pytest.approx((30 - 5) / 10)


# Both sides of a comparison are the same model.


def test_the_trainers_model_gives_the_logits_of_flat(encoder: Path) -> None:
    taxonomy = Taxonomy.from_edges([("a", "b"), ("a", "c")])
    run = Run.of(method="flat", encoder=str(encoder), text_pooling="mean", max_length=16)
    model = NeuralModel.build(taxonomy, run, [])
    other = hugging_face.FlatModel(encoder, np.array([3, 1, 2]), 4).eval()
    other.classifier.load_state_dict(model.network.method.classifier.state_dict())
    examples = model.examples(["acute pain", "fracture of the left knee and the heart"], [(0,), (0, 1)])
    batch = examples.batch(np.arange(2))
    assert batch.ids is not None
    assert batch.lengths is not None
    mask = (torch.arange(batch.ids.shape[1]) < batch.lengths[:, None]).long()
    with torch.no_grad():
        ours = model.network.eval()(batch)[1]
        theirs = other(batch.ids, mask, batch.targets)["logits"]
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_the_trainers_logits_are_in_the_order_of_the_documents(encoder: Path) -> None:
    short, long = "acute pain", "fracture of the left knee and of the heart with chronic pain of the eye"
    train, test = Documents([short, long], [(0,), (0, 1)]), Documents([short, long] * 6, [(0,), (0, 1)] * 6)
    plan = hugging_face.Plan(encoder, "cpu", 1, 2, 32, 1e-3, 1e-3, 0.0, 0.1, 1.0, 0, 0)
    logits = hugging_face.trained(plan, train, test, 2)["logits"]
    np.testing.assert_allclose(logits[0::2], np.broadcast_to(logits[0], (6, 2)), atol=1e-5)
    np.testing.assert_allclose(logits[1::2], np.broadcast_to(logits[1], (6, 2)), atol=1e-5)
    assert np.abs(logits[0] - logits[1]).max() > 1e-4


def test_what_was_needed_before_does_not_hide_what_is_needed_now() -> None:
    code = """
import numpy, torch, growth
device = torch.device("cpu")
large = numpy.ones(40 << 20, dtype=numpy.uint8)
del large
growth.forget_peak(device)
before = growth._held(device)
again = numpy.ones(20 << 20, dtype=numpy.uint8)
print(growth._held(device) - before)
"""  # in a process of its own: this one may have been told to keep freed memory
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY / "benchmarks", check=True, stdout=subprocess.PIPE, text=True
    )
    assert float(found.stdout) == pytest.approx(20, abs=3)


def test_the_plain_loops_network_gives_the_vectors_of_textrcnn() -> None:
    torch.manual_seed(0)
    sizes = TextRCNNSettings(embedding=6, hidden=5, filters=4)
    encoder, plain = TextRCNN(20, sizes).eval(), plain_loop.PlainTextRCNN(20, 3, sizes).eval()
    plain.load_state_dict(encoder.state_dict() | plain.classifier.state_dict(prefix="classifier."))
    ids, lengths = torch.randint(2, 20, (3, 7)), torch.tensor([7, 7, 7])
    with torch.no_grad():
        ours = plain.classifier(encoder(ids, lengths).vector)
        torch.testing.assert_close(ours, plain(ids, lengths))


@pytest.mark.parametrize("steps", [1, 10, 57])
def test_the_plain_loop_has_the_same_learning_rates(steps: int) -> None:
    settings = TrainingSettings(warmup=0.1, schedule="linear")
    ours = learning_rate_factor(settings, steps)
    assert [plain_loop._factor(step, steps, 0.1) for step in range(steps)] == pytest.approx(
        list(map(ours, range(steps)))
    )


@pytest.mark.parametrize("by_length", [False, True])
def test_an_epoch_of_the_plain_loop_has_every_document_once(by_length: bool) -> None:
    rows = [torch.ones(1 + number % 9, dtype=torch.int64) for number in range(230)]
    loop = plain_loop.PlainLoop(rows, torch.zeros(230, 2), 5, TextRCNNSettings(embedding=2, hidden=2, filters=2), "cpu")
    batches = list(loop._batches(np.random.default_rng(0), 4, by_length=by_length))
    assert sorted(np.concatenate(batches).tolist()) == list(range(230))
    padding = sum(
        max(len(rows[row]) for row in batch) * len(batch) - sum(len(rows[row]) for row in batch) for batch in batches
    )
    assert (padding < 60) == by_length


def test_made_documents_have_labels_of_both_levels() -> None:
    arguments = speed_data.options(None).parse_args([])
    data = speed_data.read_data(arguments, 50, 20)
    assert (len(data.train.texts), len(data.test.texts)) == (50, 20)
    levels = data.taxonomy.level_sizes
    assert len(levels) == 2
    assert all(
        any(label < levels[0] for label in ids) and any(label >= levels[0] for label in ids)
        for ids in data.train.labels
    )
    again = speed_data.read_data(arguments, 50, 20)
    assert again.train == data.train
