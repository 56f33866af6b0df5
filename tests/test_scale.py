"""Time and memory at size, in processes of their own through the benchmark script; small here, full when slow."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

SCRIPT = REPOSITORY / "benchmarks" / "reading.py"
_spec = importlib.util.spec_from_file_location("reading", SCRIPT)
assert _spec
assert _spec.loader
reading = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reading)


def measured(job: str, path: Path) -> tuple[float, float]:
    done = subprocess.run([sys.executable, SCRIPT, "--measure", job, path], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    return found["seconds"], found["megabytes"]


@pytest.mark.parametrize(
    ("labels", "seconds", "megabytes"), [(100_000, 3, 150), pytest.param(1_000_000, 15, 1024, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("shape", ["tree", "paths", "chain", "star"])
def test_taxonomies_of_any_shape_are_read_in_bounded_time_and_memory(
    shape: str, labels: int, seconds: float, megabytes: float, tmp_path: Path
) -> None:
    path = tmp_path / "taxonomy.tsv"
    getattr(reading, shape)(path, labels)
    took, used = measured("taxonomy", path)
    assert took < seconds
    assert used < megabytes


@pytest.mark.parametrize(
    ("documents", "megabytes"), [(100_000, 60), pytest.param(1_000_000, 500, marks=pytest.mark.slow)]
)
def test_documents_stream_through_the_doctor_in_bounded_memory(
    documents: int, megabytes: float, tmp_path: Path
) -> None:
    path = tmp_path / "documents.jsonl"
    reading.short_documents(path, documents)
    _, used = measured("documents", path)
    assert used < megabytes
