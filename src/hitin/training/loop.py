"""Training: one loop on `accelerate`, which a kill may interrupt anywhere and which goes on as if nothing had been.

All chance comes from the seed and the number of the batch, so a run needs no other memory than its weights, the
state of the optimiser and how far it has come.
"""

import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from accelerate import Accelerator
from torch import Tensor

from hitin.batches import Epochs, Examples, Rows, multiple_for
from hitin.chance import own_chance
from hitin.devices import accelerated, is_main_process, share
from hitin.errors import counted
from hitin.network import vectors_of
from hitin.training.agreement import check_same
from hitin.training.checkpoint import CHECKPOINT as CHECKPOINT
from hitin.training.checkpoint import load_weights, save_checkpoint, trained_weights
from hitin.training.feeding import Feed
from hitin.training.interrupts import Interrupts
from hitin.training.kept_weights import keep_only, load_epoch, name_bests, remove_bests, save_epoch
from hitin.training.log import EVERY, TrainingLog
from hitin.training.progress import SELECT, History, Progress, fingerprint
from hitin.training.resuming import resumed
from hitin.training.runaway import run_away
from hitin.training.sharding import own_part
from hitin.training.steps import Steps
from hitin.training.validation import validation_scores
from hitin.watcher import Watcher
from hitin.writing import remove_leftovers

if TYPE_CHECKING:
    from hitin.neural import NeuralModel

_READ_EVERY = 10  # steps between looks at the loss, for each of which a GPU is waited for


def train(
    model: "NeuralModel",
    train: Examples,
    val: Examples | None,
    *,
    folder: Path,
    device: str = "auto",
    resume: bool = True,
    resumable: bool = True,
    watcher: Watcher | None = None,
) -> History:
    """Train a model in place; it ends with the weights of its best epoch.

    `folder` takes the checkpoint, the log and the best weights. If it holds the checkpoint of the same run, training
    goes on from there (`resume`); without `resumable`, none is written.
    """
    settings = model.run.training
    with accelerated(device, settings) as accelerator, own_chance(device=accelerator.device):
        is_main = is_main_process()
        with Interrupts() as interrupts, TrainingLog(folder, tensorboard=settings.tensorboard, writes=is_main) as log:
            told = watcher if watcher and is_main else Watcher()
            trainer = _Trainer(model, train, val, folder, accelerator, interrupts, log, told, resumable)
            trainer.begin(resume)
            return trainer.run()


def finish(folder: Path) -> None:
    """Remove what was only needed to go on, once the model is saved."""
    (folder / CHECKPOINT).unlink(missing_ok=True)
    keep_only(folder, ())


class _Trainer:
    """The loop with all it needs at hand."""

    def __init__(
        self,
        model: "NeuralModel",
        train: Examples,
        val: Examples | None,
        folder: Path,
        accelerator: Accelerator,
        interrupts: Interrupts,
        log: TrainingLog,
        watcher: Watcher,
        resumable: bool,
    ) -> None:
        self.settings = model.run.training
        self.accelerator, self.interrupts, self.log, self.watcher = accelerator, interrupts, log, watcher
        self.folder, self.resumable = folder, resumable
        self.processes, self.is_main = accelerator.num_processes, accelerator.is_main_process
        self.progress = Progress(fingerprint(model, train, val))
        check_same(self.progress.fingerprint)
        self.model = model
        multiple = multiple_for(accelerator.device, train.tokens.lengths)
        self.train, self.val = train.in_multiples(multiple), val and val.in_multiples(multiple)
        self.epochs = Epochs(  # padding counts where tokens are bounded
            train.tokens.padded_lengths(multiple) if self.settings.batch_tokens else train.tokens.lengths,
            self.settings.batch_size,
            self.settings.batch_tokens,
            self.settings.seed,
            self.settings.epochs,
        )
        self.sight = model.network.method.sight(model.run.method)
        steps = self.epochs.steps_before(self.settings.epochs, self.settings.accumulate)
        self.steps = Steps(model, train, val, accelerator, steps, watcher.note)
        self.network = self.steps.network
        self.unread: list[tuple[Tensor, int]] = []
        self.known_loss = math.nan

    def begin(self, resume: bool) -> None:
        """Go on from the checkpoint of the same run, if there is one; or from the start."""
        path = self.folder / CHECKPOINT
        found = resumed(self.folder, self.progress, self.steps, resume=resume)
        if found:
            self._go_on(found)
        elif self.is_main:
            path.unlink(missing_ok=True)
            remove_bests(self.folder)
        if self.is_main:
            remove_leftovers(self.folder)
            keep_only(self.folder, self.progress.best.values())
        self.log.rewind(self.progress.log_size, self._batches_done())
        done = 0
        if self.progress.batch:
            done = sum(map(len, self.epochs.of(self.progress.epoch)[: self.progress.batch]))
        self.watcher.begin(self.settings.epochs, len(self.train), self.progress.epoch, done)

    def _go_on(self, found: Progress) -> None:
        if self.accelerator.scaler is not None and found.scaler:
            self.accelerator.scaler.load_state_dict(found.scaler)
        done = f"{counted(found.epoch, 'epoch')} and {counted(found.batch, 'batch', 'batches')}"
        self.watcher.note(f"going on after {done}")
        if found.processes != self.processes:
            said = f"{found.processes} before, {self.processes} now"
            self.watcher.note(f"another number of processes, {said}: dropout has other chances, and sums are rounded")
        self.progress = found

    def run(self) -> History:
        progress = self.progress
        self.saved = time.monotonic()
        if not self._is_done() and self._reads_once():
            self.watcher.note("reading the documents once with the frozen encoder")
            self.train, self.val = self._with_vectors(self.train), self.val and self._with_vectors(self.val)
        while not self._is_done():
            self._epoch()
            self._finish_epoch()
        self._take_best()
        documents = {"train": len(self.train), "validation": 0 if self.val is None else len(self.val)}
        return History(progress.epochs, progress.best, progress.seconds, documents)

    def _is_done(self) -> bool:
        return self.progress.epoch >= self.settings.epochs or 0 < self.settings.patience <= self.progress.stale()

    def _reads_once(self) -> bool:
        """Whether the encoder is frozen and the method looks at nothing but its vectors."""
        learns = any(parameter.requires_grad for parameter in self.network.encoder.parameters())
        return not learns and self.sight == "document" and not self.steps.is_sharded

    def _with_vectors(self, examples: Examples) -> Examples:
        with self.watcher.counting("encoding", len(examples)) as advance:

            def told(documents: int) -> None:
                advance(documents)
                self.interrupts.check()

            return examples.with_vectors(vectors_of(self.network, examples, told))

    def _epoch(self) -> None:
        """The batches that are left of an epoch."""
        progress = self.progress
        batches = self.epochs.of(progress.epoch)
        groups = [
            batches[start : start + self.settings.accumulate]
            for start in range(progress.batch, len(batches), self.settings.accumulate)
        ]
        wanted = [rows for group in groups for rows, _ in self.steps.own(group)]
        self.network.train()
        with Feed(self.train, wanted, self.accelerator.device) as feed:
            for group in groups:
                self._step(group, feed)
                if progress.batch < len(batches):
                    self._pause(self.accelerator.device.type == "cpu" or self._steps_done() % _READ_EVERY == 0)
        self._read_losses()

    def _step(self, group: list[Rows], feed: Feed) -> None:
        progress, step, started = self.progress, self._steps_done(), time.monotonic()
        documents = sum(map(len, group))
        self.unread.append((self.steps.take(step, self._batches_done(), feed, group), documents))
        progress.batch += len(group)
        self._tell(step, documents)
        progress.seconds += time.monotonic() - started

    def _batches_done(self) -> int:
        return self.epochs.batches_before(self.progress.epoch) + self.progress.batch

    def _steps_done(self) -> int:
        before: int = self.epochs.steps_before(self.progress.epoch, self.settings.accumulate)
        return before + math.ceil(self.progress.batch / self.settings.accumulate)

    def _tell(self, step: int, documents: int) -> None:
        """The watcher and the log, at the same steps whether or not the run was interrupted."""
        progress = self.progress
        if step % _READ_EVERY == 0 or math.isnan(self.known_loss):
            self._read_losses()
        if step % EVERY == 0:
            loss = progress.line_sum / progress.line_documents
            progress.line_sum, progress.line_documents = 0.0, 0
            rate = self.settings.learning_rate * self.steps.rate(step)
            self.log.step(self._batches_done(), progress.epoch + 1, loss, rate)
        self.watcher.step(documents, self.known_loss)

    def _read_losses(self) -> None:
        """Bring the losses of the last steps from the device. They are added one by one, whenever they are read."""
        if not self.unread:
            return
        losses = torch.stack([loss for loss, _ in self.unread])
        summed = (self.accelerator.reduce(losses, "sum") if self.processes > 1 else losses).tolist()
        for loss, (_, documents) in zip(summed, self.unread, strict=True):
            self.progress.add_loss(loss, documents)
        self.known_loss = sum(summed) / sum(documents for _, documents in self.unread)
        self.unread.clear()
        self._check(self.known_loss)

    def _check(self, loss: float) -> None:
        if not math.isfinite(loss):
            is_mixed = self.accelerator.mixed_precision != "no"
            raise run_away(loss, self.progress, self.model.run, is_mixed=is_mixed)

    def _finish_epoch(self) -> None:
        """Score the epoch on the validation documents and keep its weights where it is the best."""
        progress = self.progress
        share(self.network.buffers())
        self._check(math.nan if self._any(not self._is_finite()) else 0.0)
        record: dict[str, float] = {"epoch": progress.epoch + 1, "loss": progress.loss_sum / len(self.train)}
        record |= self._validate() | {"seconds": round(progress.seconds, 3)}
        self._check(record.get("val_loss", 0.0))
        progress.finish_epoch(record)
        if self.val is not None and progress.new_bests(self.settings.select):
            save_epoch(self.folder, progress.epoch, self.network, writes=self.is_main)
        self.log.epoch(self._batches_done(), record)
        self.watcher.epoch(record, is_best=progress.best.get(SELECT) == progress.epoch)
        self._save()
        if self.is_main:
            keep_only(self.folder, progress.best.values())
        self._pause(agree=True)

    def _is_finite(self) -> bool:
        """Whether all weights of this process are numbers."""
        parts = [own_part(parameter) for parameter in self.network.parameters()]
        return bool(torch.stack([part.isfinite().all() for part in parts]).all())

    def _any(self, is_so: bool) -> bool:
        """Whether it is so in any process."""
        if self.processes == 1:
            return is_so
        said = torch.tensor([is_so], device=self.accelerator.device, dtype=torch.int32)
        return bool(self.accelerator.reduce(said, "sum") > 0)

    def _validate(self) -> dict[str, float]:
        if self.val is None:
            return {}
        with self.watcher.counting("validating", len(self.val)) as advance:

            def told(documents: int) -> None:
                advance(documents)
                self._pause()

            return validation_scores(self.network, self.val, self.accelerator, told if self.processes == 1 else advance)

    def _take_best(self) -> None:
        """Give the model the weights of the best epoch, or the last."""
        network = self.model.network
        if self.steps.is_sharded:
            load_weights(network, trained_weights(self.network))
            network.to(self.accelerator.device)
        if SELECT in self.progress.best and self.is_main:
            load_epoch(self.folder, self.progress.best[SELECT], network)
            if self.resumable:
                name_bests(self.folder, self.progress, network)
        share(network.state_dict().values())
        network.zero_grad()
        network.eval()

    def _pause(self, agree: bool = False) -> None:
        """Save if it is time, and stop if someone wants to. Several processes do so together, where they `agree`."""
        wanted, due = self.interrupts.wanted, time.monotonic() - self.saved >= self.settings.checkpoint_seconds
        if self.processes > 1:
            if not agree:
                return
            said = torch.tensor([wanted, due], device=self.accelerator.device, dtype=torch.int32)
            wanted, due = (self.accelerator.reduce(said, "sum") > 0).tolist()
        if wanted or due:
            self._save()
        if wanted:
            raise KeyboardInterrupt

    def _save(self) -> None:
        if not self.resumable:
            return
        self._read_losses()
        progress = self.progress
        if self.accelerator.scaler is not None:
            progress.scaler = self.accelerator.scaler.state_dict()
        progress.log_size, progress.processes = self.log.size(), self.processes
        state = (self.network, self.steps.optimiser, asdict(progress))
        save_checkpoint(self.folder / CHECKPOINT, *state, writes=self.is_main)
        self.saved = time.monotonic()
