"""Normalisation over the documents of several processes: values and gradients are those of one that has them all."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from hitin.methods import node_norm
from hitin.methods.node_norm import Company, NodeBatchNorm, remember
from tests.training_harness import train_together

NODES, WIDTH = 4, 3
MANY = {"folded": 0, "plain": 1 << 20}


def tensors(documents: int) -> tuple[NodeBatchNorm, dict[str, Tensor], Tensor]:
    """A norm, what it normalises (a, p, c and a bias), and the gradient of what comes out; the same each time."""
    chance = torch.Generator().manual_seed(documents)

    def some(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=chance, dtype=torch.float64)

    norm = NodeBatchNorm(WIDTH).double().train()
    with torch.no_grad():
        norm.weight.copy_(some(WIDTH))
        norm.bias.copy_(some(WIDTH))
    given = {
        "scale": some(NODES), "text": some(documents, WIDTH) + 2, "offset": some(NODES, WIDTH), "shift": some(WIDTH)
    }  # fmt: skip
    return norm, given, some(documents, NODES, WIDTH)


def found(documents: int, rank: int = 0, processes: int = 1) -> dict[str, Tensor]:
    """What a process finds of its part of the documents; the gradients of what all share are still to be added up."""
    norm, given, gradient = tensors(documents)
    counts, own = rank < documents, slice(rank, None, processes) if rank < documents else slice(1)
    if processes > 1:
        norm.company = Company(documents, counts=counts)
    given["text"] = given["text"][own]
    leaves = {name: each.clone().requires_grad_() for name, each in given.items()}
    nodes = norm.folded(leaves["scale"], leaves["text"], leaves["offset"], leaves["shift"])
    torch.autograd.backward(nodes, gradient[own] if counts else torch.zeros_like(nodes))
    remember([norm])
    leaves |= {"weight": norm.weight, "bias": norm.bias}
    gradients = {f"of {name}": each.grad for name, each in leaves.items() if each.grad is not None}
    statistics = {"mean": norm.running_mean, "variance": norm.running_var}
    return {"nodes": nodes.detach(), **gradients, **statistics}


def keep_found(folder: Path, documents: int, way: str) -> None:
    node_norm._MANY = MANY[way]
    torch.distributed.init_process_group("gloo")
    rank, processes = torch.distributed.get_rank(), torch.distributed.get_world_size()
    torch.save(found(documents, rank, processes), folder / f"{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.slow
@pytest.mark.parametrize("way", MANY)
@pytest.mark.parametrize("documents", [1, 2, 5])
def test_several_processes_normalise_as_one(
    documents: int, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that have none of the documents compute along, and change nothing."""
    monkeypatch.setattr(node_norm, "_MANY", MANY[way])
    wanted = found(documents)
    options: dict[str, Any] = {"documents": documents, "way": way}
    assert train_together(tmp_path, processes=3, module="tests.test_node_norm_together", **options) == {0}
    parts = [torch.load(tmp_path / f"{rank}.pt") for rank in range(3)]
    for rank, part in enumerate(parts[:documents]):
        torch.testing.assert_close(part["nodes"], wanted["nodes"][rank::3])
        torch.testing.assert_close(part["of text"], wanted["of text"][rank::3])
    for part in parts[documents:]:
        assert not part["of text"].any()
    for part in parts:
        torch.testing.assert_close((part["mean"], part["variance"]), (wanted["mean"], wanted["variance"]))
    for name in ("of scale", "of offset", "of weight", "of bias", "of shift"):
        torch.testing.assert_close(sum(part[name] for part in parts), wanted[name], msg=name)


if __name__ == "__main__":
    keep_found(Path(sys.argv[1]), **json.loads(sys.argv[2]))
