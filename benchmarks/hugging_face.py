"""The other side of `training_speed.py`: a flat model, fine-tuned by `transformers.Trainer`.

As a user who knows it would set it up: documents tokenised beforehand, batches of about equal length, padding to the
longest of a batch, workers and pinned memory on a GPU, the fused optimiser; neither evaluation nor checkpoints.
"""

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from hitin.inputs import Documents
from hitin.methods.interface import prior_logits

DROPOUT = 0.2
library: Any = transformers


@dataclass(frozen=True)
class Plan:
    """What both sides share."""

    encoder: Path
    device: str
    epochs: int
    batch: int
    max_length: int
    rate: float
    encoder_rate: float
    decay: float
    warmup: float
    clip: float
    seed: int
    workers: int

    @property
    def on_gpu(self) -> bool:
        return self.device.startswith("cuda")


class FlatModel(nn.Module):
    """The mean of the tokens' vectors under one linear map, as in the method `flat`."""

    def __init__(self, encoder: Path, label_counts: NDArray[np.int64], documents: int) -> None:
        super().__init__()
        self.encoder = transformers.AutoModel.from_pretrained(encoder).float()
        self.encoder.pooler = None
        self.dropout = nn.Dropout(DROPOUT)
        self.classifier = nn.Linear(self.encoder.config.hidden_size, len(label_counts))
        with torch.no_grad():
            self.classifier.bias.copy_(prior_logits(label_counts, documents))

    def forward(self, input_ids: Tensor, attention_mask: Tensor, labels: Tensor) -> dict[str, Tensor]:
        tokens = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state  # (B, L, d)
        weights = attention_mask[:, :, None].to(tokens.dtype)
        logits = self.classifier(self.dropout((tokens * weights).sum(dim=1) / weights.sum(dim=1)))  # (B, |Y|)
        return {"loss": functional.binary_cross_entropy_with_logits(logits.float(), labels), "logits": logits}


class Clock(transformers.TrainerCallback):
    """When training began and when each epoch ended."""

    def __init__(self, device: str) -> None:
        self.device, self.stamps = torch.device(device), list[float]()

    def _stamp(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        self.stamps.append(time.perf_counter())

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        self._stamp()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ARG002
        self._stamp()


def trained(plan: Plan, train: Documents, test: Documents, labels: int) -> dict[str, Any]:
    """Seconds of tokenising and of each epoch, and the logits of test documents."""
    library.logging.set_verbosity_error()
    library.logging.disable_progress_bar()
    transformers.set_seed(plan.seed)
    fast = Tokenizer.from_file(str(plan.encoder / "tokenizer.json"))
    tokenizer = library.PreTrainedTokenizerFast(tokenizer_object=fast, pad_token="[PAD]")
    started = time.perf_counter()
    rows = features(tokenizer, train, labels, plan.max_length)
    tokenising = time.perf_counter() - started
    counts = np.bincount([label for ids in train.labels for label in ids], minlength=labels)
    clock = Clock(plan.device)
    with tempfile.TemporaryDirectory() as folder:
        trainer = library.Trainer(
            model=(model := FlatModel(plan.encoder, counts, len(rows))),
            args=settings(plan, len(rows), folder),
            train_dataset=rows,
            data_collator=transformers.DataCollatorWithPadding(
                tokenizer, pad_to_multiple_of=8 if plan.on_gpu else None
            ),
            optimizers=(optimiser(model, plan), None),
            callbacks=[clock],
        )
        trainer.train()
        trainer.args.train_sampling_strategy = "random"  # which it would group, and so shuffle, test documents by, too
        logits = trainer.predict(features(tokenizer, test, labels, plan.max_length)).predictions
    return {"tokenising": tokenising, "epochs": np.diff(clock.stamps).tolist(), "logits": logits}


def features(tokenizer: Any, documents: Documents, labels: int, max_length: int) -> list[dict[str, Any]]:
    ids = tokenizer(documents.texts, truncation=True, max_length=max_length, return_token_type_ids=False)["input_ids"]
    return [
        {"input_ids": row, "attention_mask": [1] * len(row), "labels": indicator(own, labels)}
        for row, own in zip(ids, documents.labels, strict=True)
    ]


def indicator(own: tuple[int, ...], labels: int) -> NDArray[np.float32]:
    row = np.zeros(labels, dtype=np.float32)
    row[list(own)] = 1
    return row


def settings(plan: Plan, documents: int, folder: str) -> Any:
    steps = -(-documents // plan.batch) * plan.epochs
    return transformers.TrainingArguments(
        output_dir=folder,
        num_train_epochs=plan.epochs,
        per_device_train_batch_size=plan.batch,
        per_device_eval_batch_size=4 * plan.batch,
        lr_scheduler_type="linear",
        warmup_steps=max(1, round(plan.warmup * steps)),
        max_grad_norm=plan.clip,
        bf16=plan.on_gpu,
        use_cpu=not plan.on_gpu,
        seed=plan.seed,
        train_sampling_strategy="group_by_length",
        dataloader_num_workers=plan.workers,
        dataloader_pin_memory=plan.on_gpu,
        dataloader_persistent_workers=plan.workers > 0,
        eval_strategy="no",
        save_strategy="no",
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )


def optimiser(model: FlatModel, plan: Plan) -> torch.optim.Optimizer:
    """Fused AdamW with the same learning rates and decays."""
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        rate = plan.encoder_rate if name.startswith("encoder.") else plan.rate
        groups.setdefault((rate, plan.decay if parameter.ndim > 1 else 0.0), []).append(parameter)
    described = [{"params": each, "lr": rate, "weight_decay": decay} for (rate, decay), each in groups.items()]
    return torch.optim.AdamW(described, fused=True)
