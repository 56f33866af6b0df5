"""Every method in every way of training: on frozen encoders and on kin of BERT, in mixed precision, with any loss, in
two processes."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from hitin import HierarchicalTextClassifier
from hitin.batches import Batch
from hitin.losses import LossSettings, classification_loss, positive_weights
from hitin.methods import METHODS, NeuralMethod
from hitin.methods.flat import Flat, FlatSettings
from hitin.methods.interface import Seen
from hitin.network import Network
from hitin.training import loop
from tests.test_methods import NEURAL, built, loss_of, options_of
from tests.test_transformer import KINDS, tiny
from tests.training_harness import TAXONOMY, classifier, documents, tiny_bert, train_together, weights


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_bert(tmp_path_factory.mktemp("bert") / "tiny")


def trained(name: str, bert: str, **options: Any) -> HierarchicalTextClassifier:
    """A method after a short training on a transformer."""
    chosen = options_of(name, bert, on_bert=True) | options
    return HierarchicalTextClassifier(TAXONOMY, device="cpu", **chosen).fit(*documents(24))


# Frozen encoders.


@pytest.mark.parametrize("name", NEURAL)
def test_every_method_learns_on_an_encoder_that_stays_as_it_is(
    name: str, bert: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_tokens, forward = set(), Network.forward

    def noted(network: Network, batch: Batch) -> Any:
        if network.training:
            has_tokens.add(batch.vectors is None)
            assert not network.encoder.training
        return forward(network, batch)

    monkeypatch.setattr(Network, "forward", noted)
    found = trained(name, bert, freeze=True)
    sees = NEURAL[name].module.sight(found.model_.run.method)
    assert has_tokens == {sees != "document"}
    start, now = weights(trained(name, bert, freeze=True, learning_rate=0)), weights(found)
    changed = {key for key in now if not torch.equal(now[key], start[key])}
    assert changed
    assert not [key for key in changed if key.startswith("encoder.")]
    found.save(tmp_path)
    again = HierarchicalTextClassifier.load(tmp_path, device="cpu")
    np.testing.assert_allclose(again.predict_proba(["bark"]), found.predict_proba(["bark"]), atol=1e-6)


# Kin of BERT.


@pytest.mark.parametrize("kind", KINDS)
def test_hgclr_learns_on_kin_of_bert(kind: str, tmp_path: Path) -> None:
    tiny(tmp_path, kind)
    options = {"encoder": str(tmp_path), "heads": 2, "attention_heads": 2, "max_length": 16}
    start, found = (weights(trained("hgclr", "", **options, learning_rate=rate)) for rate in (0, 0.01))
    same = [key for key in found if torch.equal(found[key], start[key])]
    assert not [key for key in same if ".auxiliary." in key or ".classifier." in key]
    assert all(weight.isfinite().all() for weight in found.values() if weight.is_floating_point())


# Precisions and losses.


@pytest.mark.parametrize("on_bert", [False, True])
@pytest.mark.parametrize("name", NEURAL)
def test_a_loss_in_mixed_precision_is_near_that_in_full_precision(name: str, on_bert: bool, bert: str) -> None:
    losses = []
    for is_mixed in (False, True):
        model, batch = built(name, bert, on_bert=on_bert)
        torch.manual_seed(1)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_mixed):
            loss = loss_of(model, batch)
        torch.autograd.backward(loss)
        assert all(weight.grad.isfinite().all() for weight in model.network.parameters() if weight.grad is not None)
        losses.append(loss.detach())
    assert losses[1].dtype == torch.float32
    torch.testing.assert_close(losses[1], losses[0], rtol=0.02, atol=0)


@pytest.mark.parametrize("name", NEURAL)
def test_every_method_trains_in_mixed_precision(name: str, bert: str) -> None:
    full, mixed = (
        trained(name, bert, precision=precision, epochs=1, learning_rate=1e-3).history_.epochs[0]["loss"]
        for precision in ("fp32", "bf16")
    )
    assert mixed == pytest.approx(full, rel=0.02)


class Asking(Flat):
    """A method that asks what the loss of its logits is."""

    asked: tuple[Tensor, Tensor, Tensor]

    def losses(self, seen: Seen) -> dict[str, Tensor]:
        Asking.asked = seen.logits.detach(), seen.targets, seen.classification(seen.logits).detach()
        return {}


def test_a_method_can_ask_for_the_loss_that_the_run_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(METHODS, "flat", NeuralMethod(FlatSettings, Asking))
    fitted = classifier(method="flat", loss="focal", positive_weights="balanced").fit(*documents(40))
    logits, targets, asked = Asking.asked
    own = [TAXONOMY.closure([TAXONOMY.index(name) for name in names]) for names in documents(40)[1]]
    counts = [sum(label in numbers for numbers in own) for label in range(len(TAXONOMY))]
    wanted = classification_loss(
        logits, targets, LossSettings(loss="focal"), positive_weights=positive_weights(counts, 40)
    )
    torch.testing.assert_close(asked, wanted)
    assert not torch.isclose(asked, classification_loss(logits, targets))
    assert fitted.model_.run.loss.loss == "focal"


# Two processes.

TOGETHER = ("hgclr", "htcinfomax", "himatch")


def train_and_keep(folder: Path, bert: str) -> None:
    """Train each method as one of several processes, and keep the weights that this process ended with."""
    ended: list[Tensor] = []

    def kept(tensors: Iterable[Tensor]) -> None:
        ended[:] = [tensor.detach().clone() for tensor in tensors]

    vars(loop)["share"] = kept  # in place of what makes all processes equal in the end
    for name in TOGETHER:
        trained(name, bert, epochs=2, batch_size=5)
        torch.save(ended, folder / f"{name}-{os.environ['RANK']}.pt")


@pytest.mark.slow
def test_two_processes_have_equal_weights_all_along(bert: str, tmp_path: Path) -> None:
    assert train_together(tmp_path, module="tests.test_method_ways", bert=bert) == {0}
    for name in TOGETHER:
        first, second = (torch.load(tmp_path / f"{name}-{rank}.pt") for rank in range(2))
        assert len(first) == len(second) > 10
        assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True)), name


if __name__ == "__main__":
    train_and_keep(Path(sys.argv[1]), **json.loads(sys.argv[2]))
