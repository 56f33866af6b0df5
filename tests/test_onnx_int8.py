"""Weights of 8 bits: near what 32 bits give, also where nodes share weights; and what is said where they are not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from hitin import HierarchicalTextClassifier
from hitin.errors import InputError
from hitin.export import exporting, int8
from hitin.export.exporting import export_model
from hitin.export.folder import GRAPH, WEIGHTS
from hitin.export.graph import export_graph
from hitin.export.model import OnnxModel
from hitin.network import Network
from tests.conftest import Run
from tests.exports import trained_on_bert
from tests.training_harness import documents, tiny_bert

TEXTS = documents(60, seed=8)[0]


class Kept(NamedTuple):
    """A model with its export of 8 bits, and the graph before it was rounded, which takes seconds to make."""

    model: Path
    graph: bytes
    parts: list[str]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Kept:
    """HiTIN, whose first layer uses its weights twice. Turned round they change little where layers are normalised."""
    folder = tmp_path_factory.mktemp("models")
    given = {"method": "hitin", "norm": "batch", "dropout": 0.2, "epochs": 6, "consistency": 0}
    trained_on_bert(tiny_bert(folder / "bert"), **given).save(folder / "model")
    made: list[tuple[bytes, list[str]]] = []

    def noted(network: Network, path: Path) -> list[str]:
        parts = export_graph(network, path)
        made.append((path.read_bytes(), parts))
        return parts

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting, "export_graph", noted)
        export_model(folder / "model", int8=True)
    return Kept(folder / "model", *made[0])


@pytest.fixture
def model(kept: Kept) -> Path:
    return kept.model


def logits(folder: Path) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return HierarchicalTextClassifier.load(folder, device="cpu").model_.logits(TEXTS)


def test_weights_of_8_bits_give_about_what_32_bits_give(model: Path) -> None:
    exact, rounded = logits(model), logits(model / "onnx-int8")
    off = np.abs(rounded - exact)
    assert off.max() > 0  # they are rounded
    assert off.mean() < 0.1 * exact.std()


def test_labels_of_a_document_do_not_depend_on_the_others_that_are_asked_for(model: Path) -> None:
    """They are rounded by one scale for all that is run."""
    loaded = HierarchicalTextClassifier.load(model / "onnx-int8", device="cpu").model_
    alone = np.concatenate([loaded.logits([text]) for text in TEXTS])
    told: list[int] = []
    assert np.array_equal(loaded.prepared_logits(loaded.prepared(TEXTS), told.append), alone)
    assert sum(told) == len(TEXTS)
    assert loaded.logits([]).shape == (0, alone.shape[1])


def test_the_weights_of_the_text_encoder_have_8_bits_and_the_others_do_not(model: Path) -> None:
    onnx = pytest.importorskip("onnx")
    graph = onnx.load(str(model / "onnx-int8" / GRAPH)).graph
    products = [node for node in graph.node if node.op_type == "MatMulInteger"]
    assert len(products) == 2 * 6  # of two layers: queries, keys, values, output, and two of the feed-forward part
    small = {each.name for each in graph.initializer if each.data_type == onnx.TensorProto.INT8}
    assert {node.input[1] for node in products} <= small
    assert not [name for name in small if "method" in name]


def test_predict_runs_the_export_of_8_bits(model: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS))
    by_name, by_folder = (
        run("predict", *arguments, tmp_path / "texts.txt", "--runtime", "onnx-int8")
        for arguments in ((model,), (model / "onnx-int8",))
    )
    assert by_name.exit_code == 0, by_name.stderr
    assert by_name.stdout == by_folder.stdout
    assert len(by_name.stdout.splitlines()) == len(TEXTS)
    told = json.loads((model / "onnx-int8" / "export.json").read_text())
    assert told["int8"] is True
    loaded = HierarchicalTextClassifier.load(model / "onnx-int8").model_
    assert isinstance(loaded, OnnxModel)
    assert loaded.int8
    refused = run("predict", model / "onnx-int8", tmp_path / "texts.txt", "--runtime", "onnx")
    assert refused.exit_code == 2


@pytest.fixture
def kept_graph(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graph is not made anew."""

    def copied(_: Network, path: Path) -> list[str]:
        path.write_bytes(kept.graph)
        return kept.parts

    monkeypatch.setattr(exporting, "export_graph", copied)


def shared(_: object) -> None:
    """Leave weights to several nodes, of which the library turns one round."""


def broken(_: object) -> None:
    raise RuntimeError("no such kernel\nmuch more")


@pytest.mark.usefixtures("kept_graph")
@pytest.mark.parametrize(
    ("spoil", "problem", "kind"),
    [(shared, "have little to do with torch's", "not-exportable"), (broken, "no such kernel", "no-int8")],
)
def test_a_graph_of_8_bits_that_came_out_wrong_is_refused(
    spoil: Callable[[object], None],
    problem: str,
    kind: str,
    model: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(int8, "_unshare", spoil)
    with pytest.raises(InputError, match=problem) as caught:
        export_model(model, tmp_path / "out", int8=True)
    assert caught.value.kind == kind
    assert not (tmp_path / "out").exists()


def test_nodes_get_weights_of_their_own() -> None:
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    weight = onnx.numpy_helper.from_array(np.arange(4, dtype=np.float32).reshape(2, 2), "shared")
    values = [helper.make_tensor_value_info(name, 1, [2, 2]) for name in ("x", "y")]
    nodes = [
        helper.make_node("Gemm", ["x", "shared"], ["a"], name="one", transB=1),
        helper.make_node("Gemm", ["a", "shared"], ["y"], name="two", transB=1),
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [weight])
    int8._unshare(graph)
    assert [node.input[1] for node in graph.node] == ["one.weight", "two.weight"]
    for each in graph.initializer:
        assert np.array_equal(onnx.numpy_helper.to_array(each), [[0, 1], [2, 3]])


@pytest.mark.slow
def test_weights_that_are_too_many_for_one_file_stand_beside_it_also_with_8_bits(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hitin.export.graph.LARGEST_FILE", 0)
    out = export_model(model, tmp_path / "out", int8=True)
    assert set(out.export.files) >= {GRAPH, WEIGHTS}
    np.testing.assert_allclose(logits(out.folder), logits(model / "onnx-int8"), atol=1e-5)
