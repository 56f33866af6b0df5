"""What training minimises: the loss of a batch."""

from functools import partial

import torch
from torch import Tensor, nn

from hitin.batches import Batch
from hitin.losses import LossSettings, classification_loss, recursive_regularisation
from hitin.methods.interface import Seen
from hitin.network import Network


class Objective(nn.Module):
    """From a batch to its loss (Eq. 15), with what the method adds.

    It is what `accelerate` may wrap and change, so that the network itself stays as it is.
    """

    def __init__(self, network: Network, settings: LossSettings, edges: Tensor, weights: Tensor | None) -> None:
        """`edges` (m, 2) are those of the taxonomy, `weights` (|Y|,) those of positives."""
        super().__init__()
        self.network = network
        self.settings, self.edges, self.weights = settings, edges, weights

    def forward(self, batch: Batch, step: int) -> Tensor:
        network, settings = self.network, self.settings
        text, logits = network(batch)
        classification = partial(
            classification_loss, targets=batch.targets, settings=settings, positive_weights=self.weights
        )
        parts = [*network.method.losses(Seen(network.encoder, batch, text, logits, step, classification)).values()]
        if not network.method.replaces_loss:
            parts.append(classification(logits))
        if settings.regularisation:
            weight = network.method.label_weights()
            penalty = recursive_regularisation(weight, self.edges, form=settings.regularisation_form)
            parts.append(settings.regularisation * penalty)
        return torch.stack([part.float() for part in parts]).sum()
