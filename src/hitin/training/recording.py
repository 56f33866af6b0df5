"""Passes over a batch, recorded as CUDA graphs: a GPU is told once what to do, not by a thousand launches each time.

A small transformer keeps a GPU busy for a fourth of the time that launching its kernels one by one takes.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from hitin.batches import Batch
from hitin.errors import first_line

Objective = Callable[[Batch, int], Tensor]
_SHAPES = 256  # that are kept


@dataclass(frozen=True)
class _Recording:
    """What is replayed: it reads `batch` and leaves its loss in `loss`."""

    graph: Any
    batch: Batch
    loss: Tensor


class Recorder:
    """Forward and backward passes by the shape of the batch; the gradients are added to those of the parameters.

    A shape is recorded when it comes for the second time: the first pass, as usual, makes ready what libraries
    prepare for it. All recordings use the same memory, one after the other.
    """

    def __init__(self, objective: Objective, parameters: Iterable[nn.Parameter], note: Callable[[str], None]) -> None:
        self.objective, self.note = objective, note
        self.parameters = [parameter for parameter in parameters if parameter.requires_grad]
        self.gradients = [torch.zeros_like(parameter) for parameter in self.parameters]  # one place for all recordings
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            parameter.grad = gradient
        self.device = self.parameters[0].device
        self.weight = torch.ones((), device=self.device)
        self.recordings: dict[object, _Recording] = {}
        self.seen: set[object] = set()
        self.memory: Any = None
        self.is_on = True

    def replayed(self, batch: Batch, step: int, weight: float) -> Tensor | None:
        """The loss of a batch, its gradient added with this weight; nothing where it has to be computed as usual."""
        if batch.pairs is not None:  # as many as there are labels: no two batches are of a shape
            return None
        recording = self.recordings.get(batch.shape) or self._recorded(batch, step)
        if recording is None:
            return None
        recording.batch.fill(batch)
        self.weight.fill_(weight)
        recording.graph.replay()
        return recording.loss

    def _recorded(self, batch: Batch, step: int) -> _Recording | None:
        if not self.is_on or len(self.recordings) == _SHAPES or not self._has_room():
            return None
        if batch.shape not in self.seen:
            self.seen.add(batch.shape)
            return None
        try:
            recording = self._record(batch.like(self.device), step)
        except RuntimeError as error:  # too little memory among them
            self.is_on = False
            self.recordings.clear()  # which would go on with the random numbers of before
            self._forget_capture()
            self.note(f"warning: steps are not recorded any further ({first_line(error)}); training goes on, slower")
            return None
        self.recordings[batch.shape] = recording
        return recording

    def _forget_capture(self) -> None:
        """A capture that broke off leaves the random numbers waiting for its end."""
        chance = torch.cuda.default_generators[self.device.index or 0]
        chance.graphsafe_set_state(torch.Generator(self.device).graphsafe_get_state())

    def _has_room(self) -> bool:
        """A recording keeps for itself what a pass takes for a while."""
        free, _ = torch.cuda.mem_get_info(self.device)
        unused = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return bool(self.recordings) or free + unused > torch.cuda.max_memory_allocated(self.device)

    def _record(self, batch: Batch, step: int) -> _Recording:
        graph = torch.cuda.CUDAGraph()
        # other threads make batches meanwhile, which must not count as a part of it
        with torch.cuda.graph(graph, pool=self.memory, capture_error_mode="thread_local"):
            loss = self.objective(batch, step)
            found = torch.autograd.grad(loss * self.weight, self.parameters, allow_unused=True)
            known = [place for place, gradient in enumerate(found) if gradient is not None]
            torch._foreach_add_([self.gradients[place] for place in known], [found[place] for place in known])
        self.memory = self.memory or graph.pool()
        return _Recording(graph, batch, loss.detach())
