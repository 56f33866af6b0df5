"""Many clients at once: every answer is the one that the library gives, and the server's memory does not grow."""

from pathlib import Path

import numpy as np
import pytest

from hitin.loading import load_classifier
from load import Load, Server, under_load
from serving import Held, bodies, compared
from tests.serving import LATE, Served, serving

TEXTS = [
    LATE,
    "refund",
    "I cannot log in, the password is refused",
    "",
    "¿Dónde está mi pedido? 😀",
    "invoice " * 300,
] + [f"order {number} has a broken screen" for number in range(60)]


def loaded(served: Served, model: Path, runtime: str, *, clients: int, seconds: float) -> Load:
    """What became of the requests, each compared with the model without a service."""
    check = compared(load_classifier(str(model), device="cpu", runtime=runtime), TEXTS)
    return under_load(served.address, bodies(TEXTS), clients=clients, seconds=seconds, check=check)


@pytest.mark.parametrize(
    ("clients", "seconds"), [(8, 3), pytest.param(64, 60, marks=pytest.mark.slow)], ids=["small", "full"]
)
@pytest.mark.parametrize("runtime", ["torch", "onnx"])
def test_every_answer_under_load_is_that_of_the_library(
    runtime: str, clients: int, seconds: float, exported_tickets: Path, tmp_path: Path
) -> None:
    with serving(tmp_path, [exported_tickets], "--runtime", runtime) as served:
        found = loaded(served, exported_tickets, runtime, clients=clients, seconds=seconds)
        batches = served.get("/metrics").text
    assert found.is_clean, (found.statuses, found.wrong, found.lost)
    assert len(found.milliseconds) > 20 * seconds
    assert "hitin" in batches


def grown(served: Served, model: Path, *, clients: int, warm_up: float, seconds: float) -> float:
    """The part by which the server's memory grows under load, from the first tenth of the time to the last."""
    loaded(served, model, "torch", clients=clients, seconds=warm_up)
    held = Held(Server(served.address, served.process, served.errors), every=min(1.0, seconds / 100))
    found = loaded(served, model, "torch", clients=clients, seconds=seconds)
    first, *_, last = np.array_split(np.array(held.stop()), 10)
    assert found.is_clean, (found.statuses, found.wrong, found.lost)
    return float(last.mean() / first.mean() - 1)


@pytest.mark.parametrize(
    ("warm_up", "seconds"), [(3, 6), pytest.param(60, 600, marks=[pytest.mark.slow, pytest.mark.timeout(900)])],
    ids=["small", "full"],
)  # fmt: skip
def test_memory_does_not_grow_under_load(warm_up: float, seconds: float, tickets: Path, tmp_path: Path) -> None:
    with serving(tmp_path, [tickets]) as served:
        assert grown(served, tickets, clients=8, warm_up=warm_up, seconds=seconds) < 0.05
