"""The other side of `training_speed.py` for TextRCNN: the plain PyTorch loop that one would write.

Documents in random order, padded to the longest of a batch, packed for cuDNN's GRU; or the same with batches of about
equal length, so that what these give can be told from the rest. The GRU runs in full precision, as it does in `hitin`.
"""

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from hitin.encoders.textrcnn import TextRCNNSettings
from hitin.methods.interface import prior_logits
from hitin.settings import TrainingSettings

POOL = 50  # batches whose documents are sorted by length together
DROPOUT = 0.2


class PlainTextRCNN(nn.Module):
    """Word vectors, a GRU both ways, convolutions, the maximum over time, a linear map."""

    def __init__(self, vocabulary: int, labels: int, sizes: TextRCNNSettings) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, sizes.embedding, padding_idx=0)
        self.gru = nn.GRU(sizes.embedding, sizes.hidden, sizes.layers, batch_first=True, bidirectional=True)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(2 * sizes.hidden, sizes.filters, kernel, padding=kernel // 2) for kernel in sizes.kernels
        )
        self.word_dropout, self.token_dropout = nn.Dropout(sizes.embedding_dropout), nn.Dropout(sizes.token_dropout)
        self.dropout = nn.Dropout(DROPOUT)
        self.classifier = nn.Linear(sizes.filters * len(sizes.kernels), labels)

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        words = self.word_dropout(self.embedding(ids))
        with torch.autocast(ids.device.type, enabled=False):
            packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
            tokens, _ = pad_packed_sequence(self.gru(packed)[0], batch_first=True)
        by_time = self.token_dropout(tokens).transpose(1, 2)  # (B, 2h, L)
        vectors = [torch.relu(convolution(by_time)).amax(dim=2) for convolution in self.convolutions]
        logits: Tensor = self.classifier(self.dropout(torch.cat(vectors, dim=1)))
        return logits


class PlainLoop:
    """A model, its documents as lists of numbers, and the optimiser."""

    def __init__(
        self, rows: Sequence[Tensor], targets: Tensor, vocabulary: int, sizes: TextRCNNSettings, device: str
    ) -> None:
        self.rows, self.targets, self.device = rows, targets, torch.device(device)
        model = PlainTextRCNN(vocabulary, targets.shape[1], sizes)
        counts = targets.sum(dim=0).long().numpy()
        with torch.no_grad():
            model.classifier.bias.copy_(prior_logits(counts, len(rows)))
        self.model = model.to(self.device)

    def train(self, settings: TrainingSettings, *, by_length: bool) -> list[float]:
        """The seconds of each epoch."""
        chance = np.random.default_rng(settings.seed)
        steps = -(-len(self.rows) // settings.batch_size) * settings.epochs
        optimiser = _optimiser(self.model, settings)
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _factor(step, steps, settings.warmup))
        seconds = []
        self.model.train()
        for _ in range(settings.epochs):
            started = time.perf_counter()
            for rows in self._batches(chance, settings.batch_size, by_length=by_length):
                with self._autocast():
                    logits = self.model(*self._padded(rows))
                targets = self.targets[torch.from_numpy(rows)].to(self.device)
                torch.autograd.backward(functional.binary_cross_entropy_with_logits(logits.float(), targets))
                nn.utils.clip_grad_norm_(self.model.parameters(), settings.gradient_clip)
                optimiser.step()
                schedule.step()
                optimiser.zero_grad()
            self._wait()
            seconds.append(time.perf_counter() - started)
        return seconds

    @torch.no_grad()
    def logits(self, rows: Sequence[Tensor], batch: int = 256) -> NDArray[np.float32]:
        """(documents, |Y|)"""
        self.model.eval()
        parts = [rows[start : start + batch] for start in range(0, len(rows), batch)]
        return np.concatenate([self.model(*_padded(part, self.device)).float().cpu().numpy() for part in parts])

    def _batches(self, chance: np.random.Generator, size: int, *, by_length: bool) -> Iterator[NDArray[np.int64]]:
        order = chance.permutation(len(self.rows))
        if by_length:
            pools = np.split(order, np.arange(POOL * size, len(order), POOL * size))
            order = np.concatenate([np.array(sorted(pool, key=lambda row: len(self.rows[row]))) for pool in pools])
        batches = [order[start : start + size] for start in range(0, len(order), size)]
        yield from (batches[place] for place in chance.permutation(len(batches)))

    def _padded(self, rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        return _padded([self.rows[row] for row in rows], self.device)

    def _autocast(self) -> Any:
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.device.type == "cuda")

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def _padded(rows: Sequence[Tensor], device: torch.device) -> tuple[Tensor, Tensor]:
    """(B, L) on the device and (B,) on the CPU"""
    return pad_sequence(list(rows), batch_first=True).to(device), torch.tensor([len(row) for row in rows])


def _optimiser(model: nn.Module, settings: TrainingSettings) -> torch.optim.Optimizer:
    groups: dict[float, list[nn.Parameter]] = {}
    for parameter in model.parameters():
        groups.setdefault(settings.weight_decay if parameter.ndim > 1 else 0.0, []).append(parameter)
    described = [{"params": each, "weight_decay": decay} for decay, each in groups.items()]
    return torch.optim.AdamW(described, lr=settings.learning_rate, fused=True)


def _factor(step: int, steps: int, warmup: float) -> float:
    """A rise and a straight fall, as the schedule `linear` has them."""
    rising = max(1, round(warmup * steps))
    return (step + 1) / (rising + 1) if step < rising else max(0.0, 1 - (step - rising) / max(1, steps - rising))
