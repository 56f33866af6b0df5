"""The linear baseline: TF-IDF and a linear support vector machine for each label, with scikit-learn.

A label's margin is w x + b, with x the weights of a text's words. Each label is learnt by itself, from all documents;
what is known of the hierarchy is that a document's labels include their ancestors.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hitin.damage import telling
from hitin.encoders.tfidf import Tfidf, TfidfSettings
from hitin.errors import InputError, counted
from hitin.extras import need
from hitin.inputs import Documents, chunks
from hitin.methods.margins import Margins, fit_margins
from hitin.metrics import Counts, macro_f1, micro_f1
from hitin.model import Model, documents_at_once
from hitin.taxonomy import Taxonomy
from hitin.tokens import Ragged
from hitin.training.checkpoint import CHECKPOINT
from hitin.training.interrupts import Interrupts
from hitin.training.kept_weights import keep_only, remove_bests
from hitin.training.log import LOG
from hitin.training.progress import History
from hitin.watcher import Watcher

if TYPE_CHECKING:
    from hitin.settings import Run

VOCABULARY = "vocabulary.txt"
_AT_ONCE = 1024  # documents


@dataclass(frozen=True)
class LinearModel(Model):
    """The words, and what each of them says for and against each label."""

    tfidf: Tfidf
    margins: Margins
    taxonomy: Taxonomy
    run: "Run"

    FILES: ClassVar = (VOCABULARY,)

    @classmethod
    def check_needs(cls, run: "Run") -> None:  # noqa: ARG003
        need("sklearn", extra="linear", purpose=_TRAINING)

    @classmethod
    def trained(
        cls,
        taxonomy: Taxonomy,
        run: "Run",
        given: Documents,
        held: Documents | None,
        *,
        folder: Path,
        device: str,  # noqa: ARG003
        resume: bool,
        resumable: bool,  # noqa: ARG003
        watcher: Watcher,
    ) -> tuple[Self, History]:
        """On the CPU, in one go: where it is interrupted, it leaves nothing behind."""
        _check_folder(folder, resume)
        started = time.monotonic()
        with Interrupts() as interrupts:
            model = cls.fitted(taxonomy, run, given, watcher, interrupts)
            seconds = time.monotonic() - started
            scores = {} if held is None else model._scores(held, watcher, interrupts)
        _clear(folder)
        record = {"epoch": 1, **scores, "seconds": round(seconds, 3)}
        sizes = {"train": len(given.texts), "validation": 0 if held is None else len(held.texts)}
        return model, History([record], {}, seconds, sizes)

    @classmethod
    def fitted(cls, taxonomy: Taxonomy, run: "Run", given: Documents, watcher: Watcher, interrupts: Interrupts) -> Self:
        """Learnt from documents, with no folder to keep it in."""
        with watcher.counting("reading", len(given.texts)) as advance:
            tfidf, rows = Tfidf.learnt(_words(run), _told(given.texts, advance, interrupts), _TRAINING)
        words = counted(rows.shape[1], "word or run of words", "words and runs of words")
        watcher.note(f"{words}, {counted(len(taxonomy), 'label')}")
        with watcher.counting("fitting", len(taxonomy), "labels") as advance:

            def told(labels: int) -> None:
                advance(labels)
                interrupts.check()

            labels = Ragged.of(given.labels)
            margins, unsettled = fit_margins(rows, labels, len(taxonomy), run.method, told)
        if unsettled:
            some = counted(unsettled, "label was", "labels were")
            watcher.note(f"{some} not learnt to the last digit; a lower cost is easier to learn")
        return cls(tfidf, margins, taxonomy, run)

    def _scores(self, held: Documents, watcher: Watcher, interrupts: Interrupts) -> dict[str, float]:
        """F1 of the labels whose margin is above 0."""
        counts, width = Counts.zero(len(self.taxonomy)), len(self.taxonomy)
        with watcher.counting("validating", len(held.texts)) as advance:
            for some in chunks(zip(*held, strict=True), documents_at_once(self.taxonomy, _AT_ONCE)):
                texts, labels = zip(*some, strict=True)
                truth = Ragged.of(labels).indicators(np.arange(len(some)), width) > 0
                counts += Counts.of(self.logits(texts) > 0, truth)
                advance(len(some))
                interrupts.check()
        return {"micro_f1": micro_f1(counts), "macro_f1": macro_f1(counts)}

    def logits(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(documents, |Y|)"""
        logits = np.empty((len(texts), len(self.taxonomy)), dtype=np.float32)
        size = documents_at_once(self.taxonomy, _AT_ONCE)
        for start in range(0, len(texts), size):
            logits[start : start + size] = self.margins.of(self.tfidf.rows(texts[start : start + size]))
        return logits

    def to(self, device: torch.device) -> None:
        """It computes on the CPU."""

    def tensors(self) -> Mapping[str, Tensor]:
        idf = torch.from_numpy(self.tfidf.idf)
        return {"idf": idf} | {name: torch.from_numpy(array) for name, array in self.margins.arrays().items()}

    def texts(self) -> dict[str, str]:
        return {VOCABULARY: "".join(f"{term}\n" for term in self.tfidf.terms)}

    @classmethod
    def restored(cls, taxonomy: Taxonomy, run: "Run", tensors: Mapping[str, Tensor], files: Mapping[str, Path]) -> Self:
        need("sklearn", extra="linear", purpose=_USE)
        arrays = {name: tensor.numpy() for name, tensor in tensors.items()}
        with telling(files[VOCABULARY]):
            terms = files[VOCABULARY].read_text(encoding="utf-8").split("\n")[:-1]
            if len(terms) != len(arrays["idf"]) or len(set(terms)) != len(terms):
                raise ValueError("its words are not those of the weights")
        tfidf = Tfidf.restored(_words(run), terms, arrays.pop("idf"), _USE)
        return cls(tfidf, Margins.from_arrays(arrays, labels=len(taxonomy), words=len(terms)), taxonomy, run)


_TRAINING = "The method linear"
_USE = "A linear model, to be used as well as to be trained,"


def _words(run: "Run") -> TfidfSettings:
    assert isinstance(run.encoder, TfidfSettings)
    return run.encoder


def _told(texts: Iterable[str], advance: Any, interrupts: Interrupts) -> Iterator[str]:
    """The texts one by one; they can be interrupted."""
    for text in texts:
        yield text
        advance(1)
        interrupts.check()


def _check_folder(folder: Path, resume: bool) -> None:
    """The state of a long training is not thrown away for a short one."""
    if resume and (folder / CHECKPOINT).is_file():
        raise InputError(
            "the folder holds an unfinished training of another method",
            kind="other-run",
            file=str(folder),
            remedy="Repeat the command that began it, choose another folder, or begin anew with --resume never.",
        )


def _clear(folder: Path) -> None:
    """Of what an earlier training of a network kept there, nothing is true of this model."""
    for name in (CHECKPOINT, LOG):
        (folder / name).unlink(missing_ok=True)
    keep_only(folder, ())
    remove_bests(folder)
