"""The network of a neural model, a text encoder under a method; and what it makes of documents, batch by batch."""

from collections.abc import Callable, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hitin.batches import Batch, Examples, by_length
from hitin.encoders.interface import Encoded, TextEncoder, encoded
from hitin.methods.interface import AUXILIARY, Method
from hitin.model import Advance

EVALUATION_BATCH = 256
_TOKENS_AT_ONCE = 64 * 1024  # in a batch of long documents that are only scored


class Network(nn.Module):
    """What is trained."""

    def __init__(self, encoder: TextEncoder, method: Method) -> None:
        super().__init__()
        self.encoder = encoder
        self.method = method

    def forward(self, batch: Batch) -> tuple[Encoded, Tensor]:
        return self.method.score(self.encoder, batch)

    def fill(self, tensors: Mapping[str, Tensor]) -> None:
        """Take weights; of what only training needs, those that have a place here."""
        has_auxiliary = self.method.auxiliary is not None
        self.load_state_dict(dict(tensors) if has_auxiliary else for_use(tensors))


def for_use(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those of the weights that are needed once training is over."""
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(f"method.{AUXILIARY}.")}


def scoring_batches(examples: Examples) -> list[NDArray[np.int64]]:
    """The rows of each batch for scoring: fewer documents where they are long."""
    batches = []
    for rows in by_length(examples.tokens.lengths, EVALUATION_BATCH):
        longest = int(examples.tokens.lengths[rows[0]])
        size = max(1, _TOKENS_AT_ONCE // max(longest, 1))
        batches += [rows[start : start + size] for start in range(0, len(rows), size)]
    return batches


def logits_of(network: Network, examples: Examples, advance: Advance | None = None) -> NDArray[np.float32]:
    """(documents, |Y|), in the order of the documents."""
    return _made(network, examples, examples.label_count, lambda batch: network(batch)[1], advance).numpy()


def vectors_of(network: Network, examples: Examples, advance: Advance | None = None) -> Tensor:
    """(documents, d): what the encoder makes of each document, without dropout; for an encoder that is frozen."""
    return _made(
        network, examples, network.encoder.width, lambda batch: encoded(network.encoder, batch).vector, advance
    )


@torch.no_grad()
def _made(
    network: Network, examples: Examples, width: int, make: Callable[[Batch], Tensor], advance: Advance | None
) -> Tensor:
    """(documents, width): what is made of each document without dropout, batch by batch."""
    device = next(network.parameters()).device
    made = torch.empty(len(examples), width, dtype=torch.float32)
    was_training = network.training
    network.eval()
    try:
        for rows in scoring_batches(examples):
            made[torch.from_numpy(rows)] = make(examples.batch(rows).to(device)).float().cpu()
            if advance:
                advance(len(rows))
    finally:
        network.train(was_training)
    return made
