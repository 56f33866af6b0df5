"""One step of training: the loss of some batches, its gradient, and the optimiser."""

import copy
from collections.abc import Callable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

from hitin.batches import Batch, Examples, Rows
from hitin.chance import seed_chance
from hitin.errors import first_line
from hitin.losses import positive_weights
from hitin.methods.node_norm import Company, NodeBatchNorm
from hitin.training.feeding import Source
from hitin.training.objective import Objective
from hitin.training.optimisation import build_optimiser, learning_rate_factor
from hitin.training.recording import Recorder
from hitin.training.sharding import shard, synchronise

if TYPE_CHECKING:
    from hitin.neural import NeuralModel


class Steps:
    """The steps of a run of so many of them."""

    def __init__(
        self,
        model: "NeuralModel",
        train: Examples,
        val: Examples | None,
        accelerator: Accelerator,
        steps: int,
        note: Callable[[str], None] = lambda message: None,  # noqa: ARG005
    ) -> None:
        """`note` is told what a person should know."""
        self.settings, self.note = model.run.training, note
        self.accelerator, self.device = accelerator, accelerator.device
        self.network = model.network
        self.network.method.prepare(model.facts(train, val))
        counts = train.label_counts()
        if self.settings.prior_start:
            self.network.method.start(counts, len(train))
        self.is_sharded = self.settings.shard and torch.distributed.is_initialized()
        if self.is_sharded:  # the model's own network stays whole, and takes what was learnt in the end
            self.network = copy.deepcopy(self.network)
            shard(self.network, self.device)
        else:
            self.network.to(self.device)
        self.optimiser = build_optimiser(self.network, self.settings, fused=not self.is_sharded)
        self.norms = [each for each in self.network.modules() if isinstance(each, NodeBatchNorm)]
        self.rate = learning_rate_factor(self.settings, steps)
        weights = None
        if model.run.loss.positive_weights != "none":
            weights = positive_weights(counts, len(train), model.run.loss.positive_weights).to(self.device)
        edges = torch.from_numpy(np.array(model.taxonomy.edges)).to(self.device)
        in_turn = self.device.type == "cpu" or (self.settings.sync_norm and accelerator.num_processes > 1)
        objective = Objective(self.network, model.run.loss, edges, weights, reads_in_turn=in_turn)
        # what is sharded adds up its gradients itself
        self.plain = accelerator.prepare_model(objective, device_placement=False, evaluation_mode=self.is_sharded)
        self.objective: Any = torch.compile(self.plain, dynamic=True) if self.settings.compile else self.plain
        self.stepper = accelerator.prepare(self.optimiser)
        self.recorder = self._recorder()
        loss = model.run.loss
        if train.in_pairs and (loss.consistency or loss.smoothing or loss.linear_teacher):
            note("with so many labels, training goes without consistency, smoothing and a linear teacher")
        for name in ("shard", "sync_norm"):
            if getattr(self.settings, name) and accelerator.num_processes == 1:
                note(f"{name} is for several processes, and this is one")
        if self.norms and accelerator.num_processes > 1 and not self.settings.sync_norm:
            note("each process normalises by its own part of a batch; sync_norm=true lets all look at the whole")

    def own(self, group: list[Rows]) -> list[tuple[Rows, int]]:
        """What of each batch of a step falls to this process, and how many of its documents count.

        The documents of a batch are dealt out in turn, so that long ones are shared too. Where there are too few, a
        process computes along, so that all keep pace, but what it finds does not count.
        """
        rank, processes = self.accelerator.process_index, self.accelerator.num_processes
        parts = [rows[rank::processes] for rows in group]
        return [(part, len(part)) if len(part) else (rows[:1], 0) for rows, part in zip(group, parts, strict=True)]

    def take(self, step: int, batch: int, source: Source, group: list[Rows]) -> Tensor:
        """Learn from some batches, the first of which has the number `batch`; the sum of the losses over documents.

        Each of several processes takes its part of every batch, and answers with its part of the sum.
        """
        processes = self.accelerator.num_processes
        seed_chance(_seed_of(self.settings.seed, batch, self.accelerator.process_index), self.device)
        documents, total = sum(map(len, group)), torch.zeros((), device=self.device)
        own = self.own(group)
        for number, (rows, counting) in enumerate(own, start=1):
            self._introduce(len(group[number - 1]), counting)
            weight = counting / documents * processes  # the gradient becomes the mean over processes
            total += self._learn(source.batch(rows), step, weight, is_last=number == len(own)) * counting
        self._move(step)
        return total

    def _introduce(self, documents: int, counting: int) -> None:
        """Let normalisations look at the documents of all processes, where that is wanted."""
        if self.settings.sync_norm and self.accelerator.num_processes > 1:
            for norm in self.norms:
                norm.company = Company(documents, counts=counting > 0)

    def _learn(self, batch: Batch, step: int, weight: float, *, is_last: bool) -> Tensor:
        """Add the gradient of a batch, times the weight; its loss."""
        loss = self.recorder.replayed(batch, step, weight) if self.recorder else None
        if loss is not None:
            return loss
        try:
            return self._computed(batch.to(self.device), step, weight, is_last)
        except Exception as error:  # compilers fail in many ways
            if self.objective is self.plain or isinstance(error, torch.OutOfMemoryError):
                raise
            self._do_not_compile(error)
            return self._computed(batch.to(self.device), step, weight, is_last)

    def _computed(self, batch: Batch, step: int, weight: float, is_last: bool) -> Tensor:
        synchronise(self.network, is_last)
        with nullcontext() if is_last else self.accelerator.no_sync(self.objective):
            loss: Tensor = self.objective(batch, step)
            self.accelerator.backward(loss * weight)
        return loss.detach()

    def _do_not_compile(self, error: Exception) -> None:
        self.note(f"warning: the network cannot be compiled here ({first_line(error)}); training goes on without")
        self.objective = self.plain
        if self.recorder:  # with the gradient of the batches before, which stays
            self.recorder.objective = self.plain

    def _recorder(self) -> Recorder | None:
        """Where steps can be recorded: one process on an NVIDIA GPU, and a network that computes the same each time."""
        repeats = self.network.encoder.repeats and self.network.method.repeats
        is_alone = self.accelerator.num_processes == 1 and self.accelerator.scaler is None
        if not (self.settings.record and self.device.type == "cuda" and repeats and is_alone):
            return None
        return Recorder(self.objective, self.network.parameters(), self.note)

    def _move(self, step: int) -> None:
        """Change the weights by what their gradients say."""
        for parameters in self.optimiser.param_groups:
            parameters["lr"] = parameters["full_rate"] * self.rate(step)
        if self.settings.gradient_clip:
            self._clip(self.settings.gradient_clip)
        self.stepper.step()
        self.stepper.zero_grad(set_to_none=self.recorder is None)

    def _clip(self, longest: float) -> None:
        """Let the optimiser divide the gradient as it reads it: by itself that is one more way through all of it."""
        if self.is_sharded:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), longest)
            return
        if self.accelerator.scaler is not None:  # which divides by a number of its own
            self.accelerator.clip_grad_norm_(self.network.parameters(), longest)
            return
        gradients = [each.grad for each in self.network.parameters() if each.grad is not None]
        length = torch.nn.utils.get_total_norm(gradients, foreach=True if self.device.type == "cuda" else None)
        optimiser: Any = self.optimiser
        optimiser.grad_scale = ((length + 1e-6) / longest).clamp(min=1.0)


def _seed_of(seed: int, batch: int, process: int) -> int:
    """A seed for the dropout of each batch, in each process."""
    said = (seed, batch, process) if process else (seed, batch)
    return int(np.random.SeedSequence(said).generate_state(1, np.uint64)[0] >> 1)
