"""The network of a neural model, a text encoder under a method; and what it makes of documents, batch by batch."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from hitin.batches import Batch, Examples, Rows, by_length
from hitin.encoders.bag import Bag
from hitin.encoders.interface import Encoded, TextEncoder, encoded
from hitin.memory import release_freed_memory
from hitin.methods.interface import AUXILIARY, Method
from hitin.model import Advance
from hitin.side_by_side import side_by_side

T = TypeVar("T")

EVALUATION_BATCH = 256
TOKENS_AT_ONCE = 64 * 1024  # in a batch of long documents that are only scored
# On a core, a document costs MiniLM 92 ms in batches of 65,536 tokens, 62 ms of 4,096 and 58 ms of 1,024; TextRCNN
# 6.8 ms, 5.1 ms and 7.8 ms.
CPU_TOKENS_AT_ONCE = 4 * 1024
_CELLS_AT_ONCE = 1 << 24  # numbers of one layer of a method, of a batch that is only scored
_BATCHES_AHEAD = 20  # of a GPU, between waits for what it made


class Network(nn.Module):
    """What is trained."""

    def __init__(self, encoder: TextEncoder, method: Method) -> None:
        super().__init__()
        self.encoder = encoder
        self.method = method

    def forward(self, batch: Batch) -> tuple[Encoded, Tensor]:
        return self.method.score(self.encoder, batch)

    def features(self, batch: Batch) -> Tensor:
        """(B, d): what the last layer of a linear method is laid on."""
        return self.method.features(encoded(self.encoder, batch))

    def fill(self, tensors: Mapping[str, Tensor]) -> None:
        """Take weights; of what only training needs, those that have a place here."""
        has_auxiliary = self.method.auxiliary is not None
        self.load_state_dict(dict(tensors) if has_auxiliary else for_use(tensors))


def for_use(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those of the weights that are needed once training is over."""
    return {name: tensor for name, tensor in tensors.items() if not name.startswith(f"method.{AUXILIARY}.")}


def batches_to_score(network: Network, examples: Examples, device: torch.device) -> list[Rows]:
    """The rows of each batch for scoring: fewer documents where a method makes much of each, of very many labels."""
    documents = max(1, min(EVALUATION_BATCH, _CELLS_AT_ONCE // max(network.method.cells_of_document(), 1)))
    return scoring_batches(examples, tokens_at_once(network.encoder, examples, device), documents)


def scoring_batches(examples: Examples, tokens: int = TOKENS_AT_ONCE, documents: int = EVALUATION_BATCH) -> list[Rows]:
    """The rows of each batch for scoring: fewer documents where they are long.

    Alike in size, for they are computed side by side: of 64 documents in batches of up to 20, the last would have 4.
    """
    batches: list[Rows] = []
    for rows in by_length(examples.tokens.lengths, documents):
        longest = int(examples.tokens.lengths[rows[0]])
        size = max(1, tokens // max(longest, 1))
        batches += np.array_split(rows, -(-len(rows) // size))
    return batches


def tokens_at_once(encoder: TextEncoder, examples: Examples, device: torch.device) -> int:
    """How many tokens a batch for scoring has at most: on a CPU few enough for its caches, where tokens are read one
    by one."""
    is_read = examples.vectors is None and not isinstance(encoder, Bag)
    return CPU_TOKENS_AT_ONCE if device.type == "cpu" and is_read else TOKENS_AT_ONCE


def logits_of(network: Network, examples: Examples, advance: Advance | None = None) -> NDArray[np.float32]:
    """(documents, |Y|), in the order of the documents."""
    return _made(network, examples, examples.label_count, lambda batch: network(batch)[1], advance).numpy()


def vectors_of(network: Network, examples: Examples, advance: Advance | None = None) -> Tensor:
    """(documents, d): what the encoder makes of each document, without dropout; for an encoder that is frozen."""
    return _made(
        network, examples, network.encoder.width, lambda batch: encoded(network.encoder, batch).vector, advance
    )


def _made(
    network: Network, examples: Examples, width: int, make: Callable[[Batch], Tensor], advance: Advance | None
) -> Tensor:
    """(documents, width): what is made of each document."""
    fetched = _Fetched(len(examples), width)
    with closing(made_of_documents(network, examples, make, advance)) as batches:
        for rows, made in batches:
            fetched.take(rows, made.float())
    fetched.wait()
    return fetched.table


def made_of_documents(
    network: Network, examples: Examples, make: Callable[[Batch], T], advance: Advance | None = None
) -> Generator[tuple[Rows, T]]:
    """The rows of each batch with what is made of it, without dropout and gradients. Close it: until then it is so."""
    device = next(network.parameters()).device
    batches = batches_to_score(network, examples, device)
    was_training = network.training
    network.eval()
    try:
        with closing(made_of_batches(torch.no_grad()(make), examples, batches, device)) as each:
            for rows, made in each:
                yield rows, made
                release_freed_memory()
                if advance:
                    advance(len(rows))
    finally:
        network.train(was_training)


def made_of_batches(
    make: Callable[[Batch], T], examples: Examples, batches: Sequence[Rows], device: torch.device
) -> Generator[tuple[Rows, T]]:
    """The rows of each batch with what is made of it, in order; on a CPU several at once, in threads."""

    def made(rows: Rows) -> T:
        return make(on_device(examples.batch(rows), device))

    if device.type == "cpu":
        return side_by_side(made, batches)
    return ((rows, made(rows)) for rows in batches)


class _Fetched:
    """What a network makes of each document, brought from its device."""

    def __init__(self, documents: int, width: int) -> None:
        self.table = torch.empty(documents, width, dtype=torch.float32)
        self._coming: list[tuple[Tensor, Tensor]] = []
        self._device = torch.device("cpu")

    def take(self, rows: Rows, made: Tensor) -> None:
        """A GPU is not waited for but now and then: it goes on with the next batch."""
        places = torch.from_numpy(rows)
        if made.device.type != "cuda":
            self.table[places] = made.cpu()
            return
        self._device = made.device
        self._coming.append((places, made.to("cpu", non_blocking=True)))
        if len(self._coming) == _BATCHES_AHEAD:
            self.wait()

    def wait(self) -> None:
        """Until everything is there."""
        if self._coming:
            torch.cuda.synchronize(self._device)  # which need not be the one that is usual
        for places, made in self._coming:
            self.table[places] = made
        self._coming.clear()


def on_device(batch: Batch, device: torch.device) -> Batch:
    """There without waiting for it, where it is a GPU."""
    return (batch.pinned() if device.type == "cuda" else batch).to(device)
