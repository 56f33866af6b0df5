"""What training minimises: the loss of a batch."""

from functools import partial

import torch
from torch import Tensor, nn

from hitin.batches import Batch
from hitin.encoders.interface import Encoded
from hitin.label_blocks import Positives, chosen_by_chance, loss_in_blocks
from hitin.losses import LossSettings, classification_loss, disagreement, recursive_regularisation
from hitin.methods.interface import Seen
from hitin.network import Network


class Objective(nn.Module):
    """From a batch to its loss (Eq. 15), with what the method adds.

    It is what `accelerate` may wrap and change, so that the network itself stays as it is.
    """

    def __init__(
        self,
        network: Network,
        settings: LossSettings,
        edges: Tensor,
        weights: Tensor | None,
        *,
        reads_in_turn: bool = False,
    ) -> None:
        """`edges` (m, 2) are those of the taxonomy, `weights` (|Y|,) those of positives.

        Two readings are made in one go, which a GPU likes, unless `reads_in_turn`: for a norm over several processes,
        which counts the documents of each, and for a CPU, which gains nothing by it.
        """
        super().__init__()
        self.reads_in_turn = reads_in_turn
        self.network = network
        self.settings, self.edges, self.weights = settings, edges, weights

    def forward(self, batch: Batch, step: int) -> Tensor:
        settings = self.settings
        parts = self._of_table(batch, step) if batch.pairs is None else [self._in_blocks(batch, batch.pairs)]
        if settings.regularisation:
            weight = self.network.method.label_weights()
            penalty = recursive_regularisation(weight, self.edges, form=settings.regularisation_form)
            parts.append(settings.regularisation * penalty)
        return torch.stack([part.float() for part in parts]).sum()

    def _of_table(self, batch: Batch, step: int) -> list[Tensor]:
        """From the logits of all labels."""
        method, consistency = self.network.method, self.settings.consistency
        text, *readings = self._read_twice(batch) if consistency else self.network(batch)
        classification = partial(
            classification_loss, targets=batch.aims, settings=self.settings, positive_weights=self.weights
        )
        seen = Seen(self.network.encoder, batch, text, readings[0], step, classification)
        parts = [*method.losses(seen).values()]
        if consistency:
            parts.append(consistency * disagreement(*readings))
        if not method.replaces_loss:
            parts += [classification(each) / len(readings) for each in readings]
        return parts

    def _read_twice(self, batch: Batch) -> tuple[Encoded, Tensor, Tensor]:
        """What is seen of the first reading, and the logits of both. One document alone is not read in one go: it would
        be normalised by its own likeness."""
        if self.reads_in_turn or len(batch) == 1:
            text, first = self.network(batch)
            return text, first, self.network(batch)[1]
        text, logits = self.network(batch.twice())
        first, second = logits.split(len(batch))
        return Encoded(*(each[: len(batch)] for each in text)), first, second

    def _in_blocks(self, batch: Batch, pairs: Tensor) -> Tensor:
        """Some labels at a time, each document read once. Which of them count comes from the chance of the batch."""
        positives, method, settings = Positives(*pairs), self.network.method, self.settings
        features, layer = self.network.features(batch), method.last_layer()
        chosen = None
        if settings.negatives:
            chosen = chosen_by_chance(positives.labels, len(layer.weight), settings.negatives)
        return loss_in_blocks(features, layer, positives, settings, positive_weights=self.weights, chosen=chosen)
