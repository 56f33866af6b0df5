"""Time and memory at size, in processes of their own through the benchmark script; small here, full when slow."""

from pathlib import Path

import pytest

import coding_tree as trees  # this and the next two are in benchmarks/
import reading
from measuring import measured


@pytest.mark.parametrize(
    ("labels", "seconds", "megabytes"), [(100_000, 3, 150), pytest.param(1_000_000, 15, 1024, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("shape", ["tree", "paths", "chain", "star"])
def test_taxonomies_of_any_shape_are_read_in_bounded_time_and_memory(
    shape: str, labels: int, seconds: float, megabytes: float, tmp_path: Path
) -> None:
    path = tmp_path / "taxonomy.tsv"
    getattr(reading, shape)(path, labels)
    found = measured(reading.__file__, "taxonomy", path)
    assert found["seconds"] < seconds
    assert found["megabytes"] < megabytes


@pytest.mark.parametrize(
    ("documents", "megabytes"), [(100_000, 60), pytest.param(1_000_000, 500, marks=pytest.mark.slow)]
)
def test_documents_stream_through_the_doctor_in_bounded_memory(
    documents: int, megabytes: float, tmp_path: Path
) -> None:
    path = tmp_path / "documents.jsonl"
    reading.short_documents(path, documents)
    assert measured(reading.__file__, "documents", path)["megabytes"] < megabytes


@pytest.mark.parametrize("shape", trees.SHAPES)
@pytest.mark.parametrize(
    ("vertices", "height", "way", "seconds", "megabytes"),
    [
        (10_000, 2, "plain", 0.2, 20),
        (100_000, 2, "plain", 5, 120),
        pytest.param(100_000, 2, "numba", 0.1, 60, marks=pytest.mark.slow),
        pytest.param(1_000_000, 2, "numba", 1, 500, marks=pytest.mark.slow),
        pytest.param(1_000_000, 4, "numba", 3, 500, marks=pytest.mark.slow),
    ],
)
def test_coding_trees_of_any_shape_are_built_in_bounded_time_and_memory(
    shape: str, vertices: int, height: int, way: str, seconds: float, megabytes: float
) -> None:
    found = measured(trees.__file__, shape, vertices, height, way)
    assert found["seconds"] < seconds
    assert found["megabytes"] < megabytes
    assert found["entropy"] < found["flat_entropy"]


@pytest.mark.slow
def test_a_star_takes_no_longer_than_a_random_tree() -> None:
    for vertices in (1_000, 10_000, 100_000):
        star, other = (measured(trees.__file__, shape, vertices, 2, "plain")["seconds"] for shape in ("star", "random"))
        assert star < other
