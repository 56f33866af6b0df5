"""One step of training: the loss of some batches, its gradient, and the optimiser."""

import math
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from hitin.batches import Batch, Examples, Rows
from hitin.chance import seed_chance
from hitin.losses import LossSettings, classification_loss, positive_weights, recursive_regularisation
from hitin.methods.interface import Seen
from hitin.network import Network
from hitin.training.optimisation import build_optimiser, learning_rate_factor

if TYPE_CHECKING:
    from hitin.neural import NeuralModel


class Steps:
    """The steps of a run of so many of them."""

    def __init__(
        self, model: "NeuralModel", train: Examples, val: Examples | None, accelerator: Accelerator, steps: int
    ) -> None:
        self.settings = model.run.training
        self.accelerator, self.device = accelerator, accelerator.device
        self.network = model.network
        self.network.method.prepare(model.facts(train, val))
        counts = train.label_counts()
        if self.settings.prior_start:
            self.network.method.start(counts, len(train))
        self.network.to(self.device)
        self.optimiser = build_optimiser(self.network, self.settings)
        self.rate = learning_rate_factor(self.settings, steps)
        weights = None
        if model.run.loss.positive_weights != "none":
            weights = positive_weights(counts, len(train), model.run.loss.positive_weights).to(self.device)
        edges = torch.from_numpy(np.array(model.taxonomy.edges)).to(self.device)
        self.objective = accelerator.prepare(_Objective(self.network, model.run.loss, edges, weights))
        self.stepper = accelerator.prepare(self.optimiser)

    def take(self, step: int, batch: int, train: Examples, group: list[Rows]) -> Tensor:
        """Learn from some batches, the first of which has the number `batch`; the sum of the losses over documents.

        Each of several processes takes its part of the batches, and answers with its part of the sum. Where there
        are too few, a process computes along, so that all keep pace, but what it finds does not count.
        """
        rank, processes = self.accelerator.process_index, self.accelerator.num_processes
        seed_chance(_seed_of(self.settings.seed, batch + rank), self.device)
        documents, total = sum(map(len, group)), torch.zeros((), device=self.device)
        places = range(rank, math.ceil(len(group) / processes) * processes, processes)
        for place in places:
            rows, counting = (group[place], len(group[place])) if place < len(group) else (group[0], 0)
            with nullcontext() if place == places[-1] else self.accelerator.no_sync(self.objective):
                loss = self.objective(train.batch(rows).to(self.device), step)
                # the gradient becomes the mean over processes
                self.accelerator.backward(loss * (counting / documents * processes))
            total += loss.detach() * counting
        self._move(step)
        return total

    def _move(self, step: int) -> None:
        """Change the weights by what their gradients say."""
        for parameters in self.optimiser.param_groups:
            parameters["lr"] = parameters["full_rate"] * self.rate(step)
        if self.settings.gradient_clip:
            self.accelerator.clip_grad_norm_(self.network.parameters(), self.settings.gradient_clip)
        self.stepper.step()
        self.stepper.zero_grad()


class _Objective(nn.Module):
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


def _seed_of(seed: int, batch: int) -> int:
    """A seed for the dropout of each batch."""
    return int(np.random.SeedSequence((seed, batch)).generate_state(1, np.uint64)[0] >> 1)
