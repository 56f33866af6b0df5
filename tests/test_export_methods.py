"""Every method, with every text encoder it goes with, computes the same in ONNX: for any number of documents, of any
length."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hitin import Taxonomy
from hitin.batches import Batch
from hitin.calibration import probabilities_of
from hitin.errors import InputError
from hitin.export.graph import IDS, LENGTHS, export_graph
from hitin.export.int8 import check_int8, quantise
from hitin.export.model import open_session
from hitin.network import Network
from hitin.neural import NeuralModel
from hitin.settings import Run
from tests.exports import BAG
from tests.test_methods import FORMS, NEURAL, ON_TRANSFORMERS_ONLY, built
from tests.test_transformer import KINDS, tiny
from tests.training_harness import TAXONOMY, TINY, documents, tiny_bert

MOST = 16  # tokens that a tiny transformer reads
DAG = Taxonomy.from_edges([("a", "c"), ("b", "c"), ("c", "d"), ("a", "d"), ("b", "e")])


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_bert(tmp_path_factory.mktemp("bert") / "tiny")


def on_bag(name: str, taxonomy: Taxonomy = TAXONOMY, **options: Any) -> NeuralModel:
    return NeuralModel.build(taxonomy, Run.of(method=name, **BAG | options), documents(40)[0])


def stirred(network: Network) -> Network:
    """With statistics as after some training: at the start, those of a batch normalisation change nothing."""
    chance = torch.Generator().manual_seed(0)
    for name, buffer in network.named_buffers():
        if name.endswith(("running_mean", "running_var")):
            buffer.copy_(torch.rand(buffer.shape, generator=chance) + 0.5)
    return network


def check(model: NeuralModel, path: Path) -> None:
    """Batches of all sizes and lengths, against what torch computed before the network was changed."""
    network, chance = stirred(model.network).eval(), np.random.default_rng(0)
    cases = []
    for documents_ in (1, 2, 7):
        for longest in (1, 2, 5, MOST):
            lengths = chance.integers(1, longest + 1, documents_)
            lengths[chance.integers(documents_)] = longest
            ids = chance.integers(0, model.tokenizer.get_vocab_size(), (documents_, longest))
            ids[np.arange(longest) >= lengths[:, None]] = 0
            batch = Batch(torch.from_numpy(ids), torch.from_numpy(lengths), torch.zeros(documents_, 0), None)
            with torch.no_grad():
                cases.append((ids, lengths, network(batch)[1].numpy()))
    export_graph(network, path)
    session = open_session(path, len(model.taxonomy), "cpu")
    for ids, lengths, expected in cases:
        (found,) = session.run(None, {IDS: ids, LENGTHS: lengths})
        np.testing.assert_allclose(found, expected, atol=1e-4)
        np.testing.assert_allclose(probabilities_of(found), probabilities_of(expected), atol=1e-5)


# One of each kind; the rest is slow.


def test_hitin_on_textrcnn_of_two_layers(tmp_path: Path, bert: str) -> None:
    check(built("hitin", bert, layers=2)[0], tmp_path / "graph.onnx")


def test_hitin_on_a_transformer_where_labels_have_several_parents(tmp_path: Path, bert: str) -> None:
    run = Run.of(method="hitin", encoder=bert, max_length=MOST, width=8)
    check(NeuralModel.build(DAG, run, []), tmp_path / "graph.onnx")


def test_a_single_label_on_a_bag(tmp_path: Path) -> None:
    check(on_bag("flat", Taxonomy.from_nested(["lonely"])), tmp_path / "graph.onnx")


def test_a_bag_that_gathers_gives_what_one_that_sums_gives() -> None:
    encoder = on_bag("flat").network.encoder.eval()
    ids, lengths = torch.tensor([[2, 3, 4], [5, 0, 0], [1, 6, 0]]), torch.tensor([3, 1, 2])
    with torch.no_grad():
        summed = encoder(ids, lengths)
        encoder.for_export()
        gathered = encoder(ids, lengths)
    torch.testing.assert_close(gathered.vector, summed.vector)
    assert torch.equal(gathered.mask, summed.mask)


def test_int8_names_the_part_that_it_does_not_support() -> None:
    with pytest.raises(InputError, match="the GRU and the convolutions of textrcnn") as caught:
        check_int8(Run.of(**TINY))
    assert caught.value.kind == "no-int8"
    check_int8(Run.of(encoder="bert-base-uncased"))


def test_int8_without_weights_to_round_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no weights of the text encoder"):
        quantise(tmp_path / "graph.onnx", [])


# All of them.


@pytest.mark.slow
@pytest.mark.parametrize("on_bert", [False, True])
@pytest.mark.parametrize(("name", "fidelity"), FORMS)
def test_every_method_on_textrcnn_and_on_a_transformer(
    name: str, fidelity: str | None, on_bert: bool, bert: str, tmp_path: Path
) -> None:
    check(built(name, bert, on_bert=on_bert, fidelity=fidelity)[0], tmp_path / "graph.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("structure", ["gcn", "tree-lstm"])
@pytest.mark.parametrize("name", ["hiagm-tp", "himatch"])
def test_methods_with_a_structure_encoder_where_labels_have_several_parents(
    name: str, structure: str, tmp_path: Path
) -> None:
    check(on_bag(name, DAG, structure=structure, width=8), tmp_path / "graph.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(NEURAL) - ON_TRANSFORMERS_ONLY - {"hiagm-la", "htcinfomax"}))
def test_every_method_that_needs_the_documents_vector_alone_on_a_bag(name: str, tmp_path: Path) -> None:
    check(on_bag(name), tmp_path / "graph.onnx")


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        *({"pooling": pooling} for pooling in ("sum", "mean", "max", "root")),
        *({"leaves": "mixed", "pooling": pooling} for pooling in ("sum", "mean", "max", "root")),
        *({"height": height} for height in (1, 3)),
        {"norm": "layer"},
        {"norm": "layer", "leaves": "mixed", "height": 3},
    ],
)
def test_hitin_in_all_its_forms(options: dict[str, Any], tmp_path: Path) -> None:
    for taxonomy in (TAXONOMY, DAG):
        check(on_bag("hitin", taxonomy, width=8, **options), tmp_path / "graph.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_kin_of_bert(kind: str, tmp_path: Path) -> None:
    tiny(tmp_path / kind, kind)
    for pooling in ("cls", "mean"):
        run = Run.of(method="flat", encoder=str(tmp_path / kind), max_length=MOST, text_pooling=pooling)
        check(NeuralModel.build(TAXONOMY, run, []), tmp_path / "graph.onnx")


@pytest.mark.slow
def test_forty_thousand_labels(tmp_path: Path) -> None:
    edges = [(f"{label % 200}", f"{label}") for label in range(200, 40_000)]
    wide = Taxonomy.from_edges(edges, labels=[f"{label}" for label in range(200)], root=None)
    check(on_bag("hitin", wide, width=16), tmp_path / "graph.onnx")
