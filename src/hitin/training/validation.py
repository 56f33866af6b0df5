"""How well a network does on validation documents while it is trained."""

import numpy as np
import torch
from accelerate import Accelerator

from hitin.batches import Examples
from hitin.losses import classification_loss
from hitin.metrics import Counts, macro_f1, micro_f1
from hitin.model import Advance
from hitin.network import Network, scoring_batches


@torch.inference_mode()
def validation_scores(
    network: Network, val: Examples, accelerator: Accelerator, advance: Advance | None = None
) -> dict[str, float]:
    """Loss, and F1 at a threshold of 0.5 as in the paper. Several processes share the work."""
    counts, loss = Counts.zero(val.label_count), 0.0
    network.eval()
    for rows in scoring_batches(val)[accelerator.process_index :: accelerator.num_processes]:
        batch = val.batch(rows).to(accelerator.device)
        with accelerator.autocast():
            logits = network(batch)[1]
        loss += float(classification_loss(logits, batch.targets)) * len(rows)
        counts += Counts.of((logits > 0).cpu().numpy(), (batch.targets > 0.5).cpu().numpy())
        if advance:
            advance(len(rows))
    counts, loss = _summed(counts, loss, accelerator)
    return {"val_loss": loss / len(val), "micro_f1": micro_f1(counts), "macro_f1": macro_f1(counts)}


def _summed(counts: Counts, loss: float, accelerator: Accelerator) -> tuple[Counts, float]:
    """Over all processes."""
    if accelerator.num_processes == 1:
        return counts, loss
    table = np.stack([counts.true_positives, counts.predicted, counts.actual])
    whole = accelerator.reduce(torch.from_numpy(table).to(accelerator.device), "sum").cpu().numpy()
    losses = torch.tensor(loss, dtype=torch.float64, device=accelerator.device)
    return Counts(*whole), float(accelerator.reduce(losses, "sum"))
