"""Training: one loop on `accelerate`, which a kill may interrupt anywhere and which goes on as if nothing had been.

All chance comes from the seed and the number of the batch, so a run needs no other memory than its weights, the
state of the optimiser and how far it has come.
"""

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import Tensor

from hitin.batches import Batch, Examples, Rows, shuffled
from hitin.checkpoint import load_checkpoint, load_tensors, read_progress, save_checkpoint, save_tensors
from hitin.errors import HitinError, InputError
from hitin.interrupts import Interrupts
from hitin.losses import classification_loss, positive_weights, recursive_regularisation
from hitin.metrics import Counts, macro_f1, micro_f1
from hitin.model import Model, Network, scoring_batches, vectors_of
from hitin.optimisation import build_optimiser, learning_rate_factor
from hitin.settings import Run, TrainingSettings
from hitin.training_log import TrainingLog, Watcher

CHECKPOINT = "checkpoint.safetensors"
_BESTS = ("select", "micro", "macro")


@dataclass
class Progress:
    """How far a run has come. Everything in it is JSON."""

    fingerprint: str
    """Of the settings and the data: another run must not go on from here."""
    epoch: int = 0
    """Finished epochs."""
    batch: int = 0
    """Batches done of the epoch under way."""
    epochs: list[dict[str, float]] = field(default_factory=list)
    """What each epoch came to."""
    best: dict[str, int] = field(default_factory=dict)
    """The epoch with the best score, by its name: `select`, `micro`, `macro`."""
    loss_sum: float = 0.0
    """Of the epoch under way, over its documents."""
    seconds: float = 0.0
    log_size: int = 0
    scaler: dict[str, Any] = field(default_factory=dict)

    def stale(self) -> int:
        """Epochs since the best one."""
        return self.epoch - self.best["select"] if "select" in self.best else 0


@dataclass(frozen=True)
class History:
    """What came of a run."""

    epochs: list[dict[str, float]]
    best: dict[str, int]
    """The number of the epoch, from 1, that was best by `select`, `micro` and `macro`."""
    seconds: float

    @property
    def chosen(self) -> dict[str, float]:
        """The epoch whose model was kept: the best, or without validation documents the last."""
        return self.epochs[self.best.get("select", len(self.epochs)) - 1]


def train(
    model: Model,
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
    with _own_chance(), Interrupts() as interrupts:
        trainer = _Trainer(model, train, val, folder, device, watcher or Watcher(), resumable)
        if resume:
            trainer.restore()
        return trainer.run(interrupts)


class _Trainer:
    """The loop with all it needs at hand."""

    def __init__(
        self,
        model: Model,
        train: Examples,
        val: Examples | None,
        folder: Path,
        device: str,
        watcher: Watcher,
        resumable: bool,
    ) -> None:
        self.settings: TrainingSettings = model.run.training
        self.loss_settings = model.run.loss
        self.accelerator = build_accelerator(device, self.settings)
        self.folder, self.watcher, self.resumable = folder, watcher, resumable
        self.progress = Progress(fingerprint(model.run, train, val))
        counts = train.label_counts()
        if self.settings.prior_start:
            model.network.method.start(counts / max(len(train), 1))
        self.network = model.network.to(self.accelerator.device)
        self.train, self.val = self._prepared(train), None if val is None else self._prepared(val)
        self.edges = torch.from_numpy(np.array(model.taxonomy.edges)).to(self.accelerator.device)
        self.weights: Tensor | None = None
        if self.loss_settings.positive_weights != "none":
            weights = positive_weights(counts, len(train), self.loss_settings.positive_weights)
            self.weights = weights.to(self.accelerator.device)
        self.batches_an_epoch = math.ceil(len(train) / self.settings.batch_size)
        steps = math.ceil(self.batches_an_epoch / self.settings.accumulate) * self.settings.epochs
        self.optimiser = build_optimiser(self.network, self.settings)
        self.schedule = learning_rate_factor(self.settings, steps)
        self.prepared = self.accelerator.prepare(self.network)
        self.stepper = self.accelerator.prepare(self.optimiser)
        self.log = TrainingLog(folder, tensorboard=self.settings.tensorboard)

    def _prepared(self, examples: Examples) -> Examples:
        """With the vectors of a frozen encoder, made once, if the method looks at nothing else."""
        encoder_is_frozen = not any(parameter.requires_grad for parameter in self.network.encoder.parameters())
        if not encoder_is_frozen or self.network.method.uses_tokens:
            return examples
        self.watcher.note("reading the documents once with the frozen encoder")
        with self.watcher.counting("encoding", len(examples)) as advance:
            return examples.with_vectors(vectors_of(self.network, examples, advance))

    def restore(self) -> None:
        """Go on from the checkpoint of the same run, if there is one."""
        path = self.folder / CHECKPOINT
        if not path.is_file():
            return
        found = Progress(**read_progress(path))
        if found.fingerprint != self.progress.fingerprint:
            raise InputError(
                "the folder holds an unfinished training with other settings or other documents",
                kind="other-run",
                file=str(self.folder),
                remedy="Repeat the command that began it, choose another folder, or begin anew with --resume never.",
            )
        load_checkpoint(path, self.network, self.optimiser)
        if self.accelerator.scaler is not None and found.scaler:
            self.accelerator.scaler.load_state_dict(found.scaler)
        self.progress = found
        self.watcher.note(f"going on after {found.epoch} epochs and {found.batch} batches")

    def run(self, interrupts: Interrupts) -> History:
        progress = self.progress
        self.watcher.begin(self.settings.epochs, len(self.train), progress.epoch, self._documents_done())
        self.log.rewind(progress.log_size)
        self.saved = time.monotonic()
        while progress.epoch < self.settings.epochs and not self._is_done():
            self._epoch(interrupts)
            self._finish_epoch()
            self._save()
            if interrupts.wanted:
                raise KeyboardInterrupt
        self.log.close()
        self._take_best()
        return History(progress.epochs, progress.best, progress.seconds)

    def _is_done(self) -> bool:
        return 0 < self.settings.patience <= self.progress.stale()

    def _documents_done(self) -> int:
        return min(self.progress.batch * self.settings.batch_size, len(self.train))

    def _epoch(self, interrupts: Interrupts) -> None:
        """The batches that are left of an epoch."""
        progress, settings = self.progress, self.settings
        batches = shuffled(self.train.tokens.lengths, settings.batch_size, settings.seed, progress.epoch)
        started = time.monotonic()
        for group in _groups(batches, progress.batch, settings.accumulate):
            loss, documents = self._step(group)
            progress.loss_sum += loss
            progress.batch += len(group)
            progress.seconds += time.monotonic() - started
            started = time.monotonic()
            self.watcher.step(documents, loss / documents)
            self.log.step(self._global_batch(), progress.epoch + 1, loss / documents, self._rate())
            if progress.batch < len(batches) and (interrupts.wanted or self._checkpoint_is_due()):
                self._save()
                if interrupts.wanted:
                    raise KeyboardInterrupt
                started = time.monotonic()

    def _step(self, group: list[Rows]) -> tuple[float, int]:
        """One step of the optimiser; the sum of the losses over the documents, and their number."""
        torch.manual_seed(_seed_of(self.settings.seed, self._global_batch()))
        self.network.train()
        self._set_rates()
        documents = sum(map(len, group))
        total = torch.zeros((), device=self.accelerator.device)
        for number, rows in enumerate(group, start=1):
            batch = self.train.batch(rows).to(self.accelerator.device)
            last = number == len(group)
            with nullcontext() if last else self.accelerator.no_sync(self.prepared):
                loss = self._loss(batch)
                self.accelerator.backward(loss * (len(rows) / documents))
            total += loss.detach() * len(rows)
        if self.settings.gradient_clip:
            self.accelerator.clip_grad_norm_(self.network.parameters(), self.settings.gradient_clip)
        self.stepper.step()
        self.stepper.zero_grad()
        found = float(total)
        if not math.isfinite(found) and self.accelerator.scaler is None:
            raise HitinError(
                f"the loss is {found} in epoch {self.progress.epoch + 1}, batch {self.progress.batch + 1}: the "
                "training has run away.\nLower the learning rate (learning_rate, encoder_learning_rate)"
                + ("." if self.settings.precision == "fp32" else ", or set precision=fp32.")
            )
        return found, documents

    def _loss(self, batch: Batch) -> Tensor:
        """Eq. 15, and what the method adds."""
        settings = self.loss_settings
        with self.accelerator.autocast():
            text, logits = self.prepared(batch)
            loss = classification_loss(logits, batch.targets, settings, positive_weights=self.weights)
            for extra in self.network.method.losses(text, logits, batch.targets).values():
                loss = loss + extra
        if settings.regularisation:
            weight = self.network.method.label_weights()
            penalty = recursive_regularisation(weight, self.edges, form=settings.regularisation_form)
            loss = loss + settings.regularisation * penalty
        return loss

    def _global_batch(self) -> int:
        return self.progress.epoch * self.batches_an_epoch + self.progress.batch

    def _set_rates(self) -> None:
        steps = self.progress.epoch * math.ceil(self.batches_an_epoch / self.settings.accumulate)
        factor = self.schedule(steps + self.progress.batch // self.settings.accumulate)
        for group in self.optimiser.param_groups:
            group["lr"] = group["full_rate"] * factor

    def _rate(self) -> float:
        return float(self.optimiser.param_groups[0]["lr"])

    def _finish_epoch(self) -> None:
        """Score the epoch on the validation documents and keep its weights where it is the best."""
        progress = self.progress
        record: dict[str, float] = {"epoch": progress.epoch + 1, "loss": progress.loss_sum / len(self.train)}
        if self.val is not None:
            with self.watcher.counting("validating", len(self.val)) as advance:
                record |= validation_scores(self.network, self.val, self.accelerator, advance)
        progress.epoch, progress.batch, progress.loss_sum = progress.epoch + 1, 0, 0.0
        progress.epochs.append(record)
        if self.val is not None:
            self._keep_bests()
        record["seconds"] = round(progress.seconds, 3)
        self.log.epoch(self._global_batch(), record)
        self.watcher.epoch(record, is_best=progress.best.get("select") == progress.epoch)

    def _keep_bests(self) -> None:
        """Write the weights for each score that this epoch is the best by."""
        progress = self.progress
        for name in _BESTS:
            scores = [
                selection_score(record, self.settings.select if name == "select" else name)
                for record in progress.epochs
            ]
            if name not in progress.best or scores[-1] > scores[progress.best[name] - 1]:
                progress.best[name] = progress.epoch
                save_tensors(best_path(self.folder, name), self.network.state_dict())

    def _take_best(self) -> None:
        if "select" in self.progress.best:
            self.network.load_state_dict(load_tensors(best_path(self.folder, "select"))[0])
        self.network.eval()

    def _checkpoint_is_due(self) -> bool:
        return self.resumable and time.monotonic() - self.saved > self.settings.checkpoint_seconds

    def _save(self) -> None:
        if not self.resumable:
            return
        if self.accelerator.scaler is not None:
            self.progress.scaler = self.accelerator.scaler.state_dict()
        self.progress.log_size = self.log.flush()
        save_checkpoint(self.folder / CHECKPOINT, self.network, self.optimiser, asdict(self.progress))
        self.saved = time.monotonic()


def best_path(folder: Path, name: str) -> Path:
    """Where the weights of the best epoch by `select`, `micro` or `macro` are."""
    return folder / f"best-{name}.safetensors"


def selection_score(record: dict[str, float], by: str) -> float:
    return record["micro_f1"] + record["macro_f1"] if by == "sum" else record[f"{by}_f1"]


@torch.inference_mode()
def validation_scores(
    network: Network, val: Examples, accelerator: Accelerator, advance: Any = None
) -> dict[str, float]:
    """Loss, and F1 at a threshold of 0.5 as in the paper."""
    counts, loss = Counts.zero(val.label_count), 0.0
    network.eval()
    for rows in scoring_batches(val):
        batch = val.batch(rows).to(accelerator.device)
        with accelerator.autocast():
            logits = network(batch)[1]
        loss += float(classification_loss(logits, batch.targets)) * len(rows)
        counts += Counts.of((logits > 0).cpu().numpy(), (batch.targets > 0.5).cpu().numpy())
        if advance:
            advance(len(rows))
    return {"val_loss": loss / len(val), "micro_f1": micro_f1(counts), "macro_f1": macro_f1(counts)}


def build_accelerator(device: str, settings: TrainingSettings) -> Accelerator:
    """The device and the precision."""
    if device not in ("auto", "cpu") and not _has(device):
        raise InputError(
            f"there is no device {device} here",
            kind="bad-option",
            remedy="Choose cpu, or auto, which takes what is there.",
        )
    if AcceleratorState._shared_state and not torch.distributed.is_initialized():
        AcceleratorState._reset_state(reset_partial_state=True)  # of an earlier training in this process
    on_cpu = device == "cpu" or not (torch.cuda.is_available() or torch.backends.mps.is_available())
    precision = {"fp32": "no", "auto": "no"}.get(settings.precision, settings.precision)
    if settings.precision == "auto" and not on_cpu and torch.cuda.is_available() and torch.cuda.is_bf16_supported():
        precision = "bf16"
    if precision == "fp16" and on_cpu:
        raise InputError("fp16 needs a GPU", kind="bad-option", remedy="Set precision to bf16 or fp32.")
    return Accelerator(cpu=on_cpu, mixed_precision=precision)


def _has(device: str) -> bool:
    if device.startswith("cuda"):
        return torch.cuda.is_available()
    return device == "mps" and torch.backends.mps.is_available()


def fingerprint(run: Run, train: Examples, val: Examples | None) -> str:
    """Equal for runs that must end with equal weights."""
    settings = run.with_training(checkpoint_seconds=0.0, tensorboard=False).to_toml()
    data = [train.fingerprint(), val.fingerprint() if val is not None else "none"]
    return blake2b("\n".join([settings, *data]).encode(), digest_size=16).hexdigest()


def _groups(batches: list[Rows], start: int, size: int) -> Iterator[list[Rows]]:
    for first in range(start, len(batches), size):
        yield batches[first : first + size]


def _seed_of(seed: int, batch: int) -> int:
    """A seed for the dropout of each batch."""
    return int(np.random.SeedSequence((seed, batch)).generate_state(1, np.uint64)[0] >> 1)


@contextmanager
def _own_chance() -> Iterator[None]:
    """The caller's random numbers go on afterwards as if nothing had been."""
    with torch.random.fork_rng():
        yield
