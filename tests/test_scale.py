"""Time and memory at size, in processes of their own through the benchmark script; small here, full when slow."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import coding_tree as trees  # this and the next two are in benchmarks/
import reading
from hitin.coding_tree import Graph, coding_tree
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
    assert found["processor_seconds"] < seconds
    assert found["megabytes"] < megabytes
    assert found["entropy"] < found["flat_entropy"]


@pytest.mark.slow
def test_a_star_takes_no_longer_than_a_random_tree() -> None:
    for vertices in (1_000, 10_000, 100_000):
        star, other = (
            measured(trees.__file__, shape, vertices, 2, "plain")["processor_seconds"] for shape in ("star", "random")
        )
        assert star < other


def hubs(count: int) -> Graph:
    """Two vertices that share all others."""
    return Graph(count, [(hub, i) for i in range(2, count) for hub in (0, 1)])


def wheel(count: int) -> Graph:
    return Graph(count, [(0, i) for i in range(1, count)] + [(i, i % (count - 1) + 1) for i in range(1, count)])


def weighted_star(count: int) -> Graph:
    return Graph(count, [(0, i) for i in range(1, count)], [1 + i % 3 for i in range(1, count)])


def all_different_star(count: int) -> Graph:
    return Graph(count, [(0, i) for i in range(1, count)], [1 + i / count for i in range(1, count)])


def grid(count: int) -> Graph:
    side = int(count**0.5)
    beside = [(i, i + 1) for i in range(side * side) if (i + 1) % side]
    return Graph(side * side, beside + [(i, i + side) for i in range(side * side - side)])


@pytest.mark.parametrize("shape", [hubs, wheel, weighted_star, all_different_star, grid])
@pytest.mark.parametrize(("vertices", "seconds"), [(6_000, 3), pytest.param(40_000, 20, marks=pytest.mark.slow)])
def test_no_graph_with_hubs_or_weights_takes_quadratic_time(
    shape: Callable[[int], Graph], vertices: int, seconds: float
) -> None:
    graph = shape(vertices)
    for height in (2, 3):
        start = time.process_time()
        tree = coding_tree(graph, height, compiled=False)
        assert time.process_time() - start < seconds
        assert tree.entropy < tree.flat_entropy


@pytest.mark.parametrize("height", [8, 100])
def test_a_tall_tree_takes_no_longer_than_a_person_waits(height: int) -> None:
    graph = Graph(200, [(i, (i * j + 1) % 200) for i in range(200) for j in (2, 3, 5)])
    start = time.process_time()
    assert coding_tree(graph, height, compiled=False).height == height
    assert time.process_time() - start < 15
