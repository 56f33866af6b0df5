"""How far a training run has come, and what came of it."""

import json
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from hitin.batches import Examples
from hitin.tensor_files import checksum
from hitin.training.checkpoint import frozen_weights

if TYPE_CHECKING:
    from hitin.neural import NeuralModel
    from hitin.settings import Run

SELECT = "select"
SCORES_OF_EPOCHS = {"micro_f1": "micro-F1", "macro_f1": "macro-F1", "val_loss": "loss"}
"""On validation documents: their names in records, and in words."""
BESTS = (SELECT, "micro", "macro")
"""The scores by which an epoch can be the best: the one of the settings, micro-F1 and macro-F1."""


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
    """The number of the best epoch, from 1, by each of `BESTS`."""
    loss_sum: float = 0.0
    """Of the epoch under way, over its documents."""
    line_sum: float = 0.0
    """The same since the last line of the log."""
    line_documents: int = 0
    seconds: float = 0.0
    log_size: int = 0
    processes: int = 0
    """That trained up to here."""
    scaler: dict[str, Any] = field(default_factory=dict)

    def add_loss(self, loss: float, documents: int) -> None:
        self.loss_sum += loss
        self.line_sum += loss
        self.line_documents += documents

    def finish_epoch(self, record: dict[str, float]) -> None:
        self.epochs.append(record)
        self.epoch, self.batch, self.loss_sum = self.epoch + 1, 0, 0.0

    def new_bests(self, select: str) -> list[str]:
        """The scores that the last epoch is the first or only one to reach; it is noted as their best."""
        found = []
        for name in BESTS:
            scores = [selection_score(record, select if name == SELECT else name) for record in self.epochs]
            if name not in self.best or scores[-1] > scores[self.best[name] - 1]:
                self.best[name] = len(self.epochs)
                found.append(name)
        return found

    def stale(self) -> int:
        """Epochs since the best one."""
        return self.epoch - self.best[SELECT] if SELECT in self.best else 0


@dataclass(frozen=True)
class History:
    """What came of a run. It is kept with the model."""

    epochs: list[dict[str, float]]
    best: dict[str, int]
    """The number of the epoch, from 1, that was best by `select`, `micro` and `macro`."""
    seconds: float
    """Of training, validation not counted."""
    documents: dict[str, int]
    """How many there were: `train` and `validation`."""
    label_counts: list[int] = field(default_factory=list)
    """How many training documents each label has."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "History":
        return cls(**json.loads(text))

    @property
    def chosen(self) -> dict[str, float]:
        """The epoch whose model was kept: the best, or without validation documents the last."""
        return self.epochs[self.best.get(SELECT, len(self.epochs)) - 1]


def selection_score(record: dict[str, float], by: str) -> tuple[float, float]:
    """What makes an epoch better than another: its F1; where that is equal, as in first epochs, its loss."""
    score = record["micro_f1"] + record["macro_f1"] if by == "sum" else record[f"{by}_f1"]
    return score, -record["val_loss"]


def fingerprint(model: "NeuralModel", train: Examples, val: Examples | None) -> str:
    """Equal for runs that must end with equal weights; of several processes or one, but for rounding."""
    digest = blake2b(digest_size=16)
    digest.update(_settings_of_weights(model.run).encode())
    digest.update("\0".join(model.taxonomy.labels).encode())
    digest.update(model.taxonomy.edges.tobytes())
    frozen = {name: weight.cpu() for name, weight in frozen_weights(model.network).items()}
    digest.update(checksum(frozen, {}).encode())
    for examples in (train, val):
        digest.update(examples.fingerprint().encode() if examples is not None else b"none")
    return digest.hexdigest()


def _settings_of_weights(run: "Run") -> str:
    """The sections of a run that the weights depend on."""
    plain = run.with_training(checkpoint_seconds=0.0, tensorboard=False, shard=False)
    return json.dumps({name: values for name, values in plain.to_dict().items() if name != "decisions"})
