"""A real transformer on real documents: ONNX is torch to the fourth digit, and 8 bits cost next to nothing."""

import json
import lzma
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hitin import HierarchicalTextClassifier, Taxonomy
from hitin.evaluation import truth_table
from hitin.export.exporting import export_model
from hitin.metrics.counts import Counts, micro_f1

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
DOCUMENTS = 1000


def documents(path: Path, count: int) -> tuple[list[str], list[list[str]]]:
    with lzma.open(path, "rt", encoding="utf-8") as file:
        found = [json.loads(line) for line in islice(file, count)]
    return [each["text"] for each in found], [each["label"] for each in found]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """MiniLM as it is, with HiTIN trained on what it makes of abstracts."""
    from tests.conftest import SHARED

    encoder, data = SHARED / "pretrained" / "minilm-l6-fp16", SHARED / "data" / "arxiv46985"
    if not encoder.is_dir() or not data.is_dir():
        pytest.skip("the shared data is not on this machine")
    folder = tmp_path_factory.mktemp("models") / "model"
    options: dict[str, Any] = {"freeze": True, "text_pooling": "mean", "max_length": 64, "epochs": 20, "width": 300}
    fresh = HierarchicalTextClassifier(
        Taxonomy.read(data / "taxonomy.tsv"), encoder=str(encoder), device="cpu", **options
    )
    fresh.fit(*documents(data / "train.jsonl.xz", 2000), documents(data / "val.jsonl.xz", 500), out=folder)
    export_model(folder)
    export_model(folder, int8=True)
    return folder


def load(folder: Path) -> HierarchicalTextClassifier:
    return HierarchicalTextClassifier.load(folder, device="cpu")


def test_a_thousand_documents_get_the_same_labels_and_8_bits_lose_less_than_half_a_point(
    model: Path, shared: Path
) -> None:
    texts, names = documents(shared / "arxiv46985" / "test.jsonl.xz", DOCUMENTS)
    by_torch, by_onnx, small = (load(folder).scored(texts) for folder in (model, model / "onnx", model / "onnx-int8"))
    assert np.abs(by_onnx.probabilities - by_torch.probabilities).max() < 1e-4
    assert np.array_equal(by_onnx.given, by_torch.given)
    taxonomy = load(model).taxonomy_
    truth = truth_table([taxonomy.closure([taxonomy.index(name) for name in each]) for each in names], taxonomy)
    full, rounded = (micro_f1(Counts.of(each.given, truth)) for each in (by_torch, small))
    assert full > 0.4  # it has learnt something that could be lost
    assert rounded > full - 0.005


def test_8_bits_take_less_than_half_of_torchs_time_for_one_document(model: Path) -> None:
    by_torch, small = (load(folder).model_ for folder in (model, model / "onnx-int8"))
    text = "a study of the spectra of random graphs and of the eigenvalues of their adjacency matrices " * 6
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        assert 2 * _seconds(lambda: small.logits([text])) < _seconds(lambda: by_torch.logits([text]))
    finally:
        torch.set_num_threads(threads)


def _seconds(work: Callable[[], object]) -> float:
    """Of the processor, the least of many tries: other processes run beside."""
    tries = []
    for _ in range(30):
        start = time.process_time()
        work()
        tries.append(time.process_time() - start)
    return min(tries)


def test_the_export_of_8_bits_is_small(model: Path) -> None:
    whole, small = ((model / name / "model.onnx").stat().st_size for name in ("onnx", "onnx-int8"))
    assert small < whole / 3
