"""Documents scored by their best labels alone: the policy `top-k` without a table of documents by labels."""

from contextlib import closing
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hitin.batches import Batch, Examples
from hitin.decisions import Decisions
from hitin.decisions.best import BestLabels, Found, decided_best
from hitin.evaluation import checked
from hitin.label_blocks import Blocks, LastLayer
from hitin.model import Advance
from hitin.network import Network, made_of_documents
from hitin.taxonomy import Taxonomy


def best_of_documents(
    network: Network, examples: Examples, decisions: Decisions, taxonomy: Taxonomy, advance: Advance | None = None
) -> list[Found]:
    """What `top-k` decides of each document, in their order. The method of the network is linear."""
    found: list[Found | None] = [None] * len(examples)
    make = partial(_best_of_batch, network, decisions, taxonomy)
    with closing(made_of_documents(network, examples, make, advance)) as batches:
        for rows, made in batches:
            for row, one in zip(rows.tolist(), made, strict=True):
                found[row] = one
    return [one for one in found if one is not None]


def _best_of_batch(network: Network, decisions: Decisions, taxonomy: Taxonomy, batch: Batch) -> list[Found]:
    features, layer = network.features(batch), network.method.last_layer()
    best = BestLabels(len(batch), decisions.k, decisions.calibration, taxonomy)
    for block in Blocks(features, layer):
        best.add(block.places.start, checked(block.logits.float().cpu().numpy()))
    closures = [taxonomy.closure(labels) for labels in best.labels.tolist()]
    logits = _logits_at(features, layer, closures)
    return [decided_best(labels, values, decisions, taxonomy) for labels, values in zip(closures, logits, strict=True)]


def _logits_at(features: Tensor, layer: LastLayer, labels: list[tuple[int, ...]]) -> list[NDArray[np.float32]]:
    """Of some labels of each document."""
    sizes = [len(each) for each in labels]
    numbers = torch.tensor([label for each in labels for label in each], device=features.device)
    rows = torch.repeat_interleave(torch.arange(len(labels)), torch.tensor(sizes)).to(features.device)
    logits = (features[rows] * layer.weight[numbers]).sum(dim=1) + layer.bias[numbers]
    return np.split(logits.float().cpu().numpy(), np.cumsum(sizes)[:-1])
