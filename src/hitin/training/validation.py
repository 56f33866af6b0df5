"""How well a network does on validation documents while it is trained."""

from collections.abc import Callable, Generator
from contextlib import closing
from functools import partial

import torch
from accelerate import Accelerator
from torch import Tensor

from hitin.batches import Batch, Examples, Rows
from hitin.label_blocks import Positives, judged_in_blocks
from hitin.losses import classification_loss
from hitin.metrics import Counts, macro_f1, micro_f1
from hitin.model import Advance
from hitin.network import Network, batches_to_score, made_of_batches, on_device
from hitin.training.sharding import is_sharded, reshard

_WAIT_EVERY = 20  # batches, so that progress tells what a GPU has done


@torch.no_grad()
def validation_scores(
    network: Network, val: Examples, accelerator: Accelerator, advance: Advance | None = None
) -> dict[str, float]:
    """Loss, and F1 at a threshold of 0.5 as in the paper. Several processes share the work.

    All is added up on the device and brought over at the end: a GPU is not waited for batch by batch.
    """
    device = accelerator.device
    table = torch.zeros(3, val.label_count, dtype=torch.int64, device=device)
    losses: list[Tensor] = []
    network.eval()
    batches = batches_to_score(network, val, device)
    own = batches[accelerator.process_index :: accelerator.num_processes]
    with closing(_made(network, accelerator, val, own, batches)) as made:
        for number, (rows, (mean, counted)) in enumerate(made, start=1):
            if number > len(own):
                continue  # it was computed only to keep pace
            losses.append(mean)
            table += counted
            if advance:
                if device.type == "cuda" and number % _WAIT_EVERY == 0:
                    torch.cuda.synchronize(device)  # what is told to be done is done, or nearly
                advance(len(rows))
    loss = torch.tensor(_added(losses, [*map(len, own)]), dtype=torch.float64)
    reshard(network)
    if accelerator.num_processes > 1:
        table, loss = accelerator.reduce(table, "sum"), accelerator.reduce(loss.to(device), "sum")
    counts = Counts(*table.cpu().numpy())
    return {"val_loss": float(loss) / len(val), "micro_f1": micro_f1(counts), "macro_f1": macro_f1(counts)}


def _made(
    network: Network, accelerator: Accelerator, val: Examples, own: list[Rows], batches: list[Rows]
) -> Generator[tuple[Rows, tuple[Tensor, Tensor]]]:
    """What is found of each batch. A network that is shared out computes the same number of them in each process."""
    judge = partial(_judged, network, accelerator)
    if not is_sharded(network):
        return made_of_batches(torch.inference_mode()(judge), val, own, accelerator.device)
    missing = -(-len(batches) // accelerator.num_processes) - len(own)
    return _one_by_one(judge, val, [*own, *batches[:missing]], accelerator.device)


def _one_by_one(
    judge: Callable[[Batch], tuple[Tensor, Tensor]], val: Examples, batches: list[Rows], device: torch.device
) -> Generator[tuple[Rows, tuple[Tensor, Tensor]]]:
    for rows in batches:
        yield rows, torch.no_grad()(judge)(on_device(val.batch(rows), device))


def _judged(network: Network, accelerator: Accelerator, batch: Batch) -> tuple[Tensor, Tensor]:
    """The loss of a batch, the mean over its documents, and its counts."""
    with accelerator.autocast():
        if batch.pairs is not None:
            return judged_in_blocks(network.features(batch), network.method.last_layer(), Positives(*batch.pairs))
        logits = network(batch)[1]
    return classification_loss(logits, batch.targets), counts_of(logits > 0, batch.targets > 0.5)


def counts_of(given: Tensor, actual: Tensor) -> Tensor:
    """(3, |Y|): for each label how many documents were rightly given it, were given it, and have it; as `Counts`."""
    return torch.stack([each.sum(dim=0) for each in (given & actual, given, actual)])


def _added(losses: list[Tensor], sizes: list[int]) -> float:
    """The losses of all documents together, from the means of batches. A process may have had none."""
    means: list[float] = torch.stack(losses).tolist() if losses else []
    return sum((mean * size for mean, size in zip(means, sizes, strict=True)), 0.0)
