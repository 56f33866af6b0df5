"""One step of training: the loss of some batches, its gradient, and the optimiser."""

import math
from contextlib import nullcontext
from typing import TYPE_CHECKING

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from hitin.batches import Batch, Examples, Rows
from hitin.chance import seed_chance
from hitin.encoders.interface import Encoded
from hitin.losses import classification_loss, positive_weights, recursive_regularisation
from hitin.network import Network
from hitin.training.optimisation import build_optimiser, learning_rate_factor

if TYPE_CHECKING:
    from hitin.neural import NeuralModel


class Steps:
    """The steps of a run of so many of them."""

    def __init__(self, model: "NeuralModel", train: Examples, accelerator: Accelerator, steps: int) -> None:
        self.settings, self.loss_settings = model.run.training, model.run.loss
        self.accelerator, self.device = accelerator, accelerator.device
        self.network = model.network
        counts = train.label_counts()
        if self.settings.prior_start:
            self.network.method.start(counts, len(train))
        self.edges = torch.from_numpy(np.array(model.taxonomy.edges)).to(self.device)
        self.weights: Tensor | None = None
        if self.loss_settings.positive_weights != "none":
            self.weights = positive_weights(counts, len(train), self.loss_settings.positive_weights).to(self.device)
        self.optimiser = build_optimiser(self.network, self.settings)
        self.rate = learning_rate_factor(self.settings, steps)
        self.parallel = accelerator.prepare(_Apart(self.network))
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
            with nullcontext() if place == places[-1] else self.accelerator.no_sync(self.parallel):
                loss = self._loss(train.batch(rows).to(self.device))
                # the gradient becomes the mean over processes
                self.accelerator.backward(loss * (counting / documents * processes))
            total += loss.detach() * counting
        self._move(step)
        return total

    def _loss(self, batch: Batch) -> Tensor:
        """Eq. 15, and what the method adds."""
        settings = self.loss_settings
        with self.accelerator.autocast():
            text, logits = self.parallel(batch)
            loss = classification_loss(logits, batch.targets, settings, positive_weights=self.weights)
            for extra in self.network.method.losses(text, logits, batch.targets).values():
                loss = loss + extra
        if settings.regularisation:
            weight = self.network.method.label_weights()
            penalty = recursive_regularisation(weight, self.edges, form=settings.regularisation_form)
            loss = loss + settings.regularisation * penalty
        return loss

    def _move(self, step: int) -> None:
        """Change the weights by what their gradients say."""
        for parameters in self.optimiser.param_groups:
            parameters["lr"] = parameters["full_rate"] * self.rate(step)
        if self.settings.gradient_clip:
            self.accelerator.clip_grad_norm_(self.network.parameters(), self.settings.gradient_clip)
        self.stepper.step()
        self.stepper.zero_grad()


class _Apart(nn.Module):
    """What `accelerate` may wrap and change, so that the network itself stays as it is."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, batch: Batch) -> tuple[Encoded, Tensor]:
        found: tuple[Encoded, Tensor] = self.network(batch)
        return found


def _seed_of(seed: int, batch: int) -> int:
    """A seed for the dropout of each batch."""
    return int(np.random.SeedSequence((seed, batch)).generate_state(1, np.uint64)[0] >> 1)
