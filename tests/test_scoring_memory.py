"""`hitin predict` on very many documents holds little memory: in a process of its own, which tells the most it held."""

import json
import os
import subprocess
import sys
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest

from hitin import HierarchicalTextClassifier
from hitin.documents import read_documents
from hitin.memory import most_held
from tests.conftest import REPOSITORY

TICKETS = REPOSITORY / "examples" / "tickets"
PREDICT = """
import atexit, runpy, sys
from pathlib import Path
from hitin.memory import most_held
atexit.register(lambda: Path(sys.argv[-1] + ".memory").write_text(str(most_held())))
runpy.run_module("hitin", run_name="__main__", alter_sys=True)
"""
MEGABYTE = 1_000_000

pytestmark = pytest.mark.skipif(most_held() is None, reason="the most memory that was held is not told here")


def trained(folder: Path, documents: int = 40, **options: Any) -> Path:
    """A model that has hardly learnt, which costs as much to use."""
    some = list(islice(read_documents(TICKETS / "train.jsonl"), documents))
    classifier = HierarchicalTextClassifier(TICKETS / "taxonomy.tsv", epochs=1, batch_size=8, validation=0, **options)
    classifier.fit([each.text for each in some], [each.labels for each in some], out=folder)
    return folder


def words_file(path: Path, documents: int, words: int) -> Path:
    """Documents of words by chance, of different lengths."""
    chance = np.random.default_rng(0)
    known = sorted({word for each in read_documents(TICKETS / "train.jsonl") for word in each.text.split()})
    with path.open("w", encoding="utf-8") as file:
        for number in range(documents):
            text = " ".join(chance.choice(known, int(chance.integers(1, 2 * words))))
            file.write(json.dumps({"id": number, "text": text}) + "\n")
    return path


def megabytes_held(model: Path, documents: Path, out: Path, **environment: str) -> float:
    """By a prediction of all documents, whose answers are counted."""
    threads = {"OMP_NUM_THREADS": "4"}  # so many batches at once, whose memory is held at once
    command = [sys.executable, "-c", PREDICT, "predict", str(model), str(documents), "--out", str(out)]
    subprocess.run(command, check=True, env=os.environ | threads | environment)
    with documents.open(encoding="utf-8") as asked, out.open(encoding="utf-8") as answered:
        for question, answer in zip(asked, answered, strict=True):
            assert str(json.loads(question)["id"]) == json.loads(answer)["id"]
    return int(Path(f"{out}.memory").read_text()) / MEGABYTE


def test_memory_does_not_grow_with_the_documents(tmp_path: Path) -> None:
    model = trained(tmp_path / "model", hidden=8, embedding=16, filters=8, width=8, min_count=1)
    few, many = (
        megabytes_held(model, words_file(tmp_path / f"{count}.jsonl", count, 10), tmp_path / f"{count}.out")
        for count in (5_000, 20_000)
    )
    assert many < few + 40


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_documents_are_scored_in_two_gigabytes(tmp_path: Path) -> None:
    """TextRCNN as it comes."""
    model = trained(tmp_path / "model", min_count=1)
    assert megabytes_held(model, words_file(tmp_path / "many.jsonl", 100_000, 40), tmp_path / "out") < 2000


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_transformer_holds_no_more_for_more_documents(tmp_path: Path, shared: Path) -> None:
    """A hundred thousand would take hours on two cores: what three rounds of documents hold is what one round holds.

    In the median: the most that is held is by chance, as gaps between tensors are, and one and the same prediction
    differs by 0.1 GB.
    """
    encoder = shared.parent / "pretrained" / "minilm-l6-fp16"
    model = trained(tmp_path / "model", encoder=str(encoder), freeze=True, max_length=128)
    files = [words_file(tmp_path / f"{count}.jsonl", count, 30) for count in (2_100, 6_300)]
    few, many = (median(megabytes_held(model, file, file.with_suffix(".out")) for _ in range(3)) for file in files)
    assert many < min(2000, few + 100)
    no_gaps = {"MALLOC_MMAP_THRESHOLD_": str(4 * 2**20)}  # larger tensors go back to the system at once
    least, most = (megabytes_held(model, file, file.with_suffix(".out"), **no_gaps) for file in files)
    assert most < least + 60
    assert many < most + 400  # 500 and more, if freed memory were not given back
