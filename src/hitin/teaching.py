"""What linear models think of the training documents that they have not seen, for a network to learn from besides.

Words and pairs of words tell a linear model much that a small transformer overlooks. The documents are dealt into
parts; each part is judged by TF-IDF and support vector machines (the method `linear`) that learnt from the others.
What is to be learnt of a document is then partly its labels, partly that judgement. The trained model is a network
like any other: the teacher is not part of it.
"""

from dataclasses import asdict

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from hitin.batches import Judgements
from hitin.calibration import fit_calibration
from hitin.devices import alone, is_main_process, share_tensors
from hitin.errors import InputError
from hitin.extras import need
from hitin.inputs import Documents, fingerprint
from hitin.methods.linear import LinearModel
from hitin.settings import Run
from hitin.taxonomy import Taxonomy
from hitin.token_cache import Judged, TokenCache, judged_of, tensors_of
from hitin.tokens import Ragged
from hitin.training.interrupts import Interrupts
from hitin.watcher import Watcher

PARTS = 5
LEAST = 0.005  # a probability below it is taken for none
MOST = 64  # labels of a document that are remembered


def check_teacher() -> None:
    """Whether what it needs is installed."""
    need("sklearn", extra="linear", purpose="A linear teacher (linear_teacher)")


def judgements(taxonomy: Taxonomy, given: Documents, share: float, cache: TokenCache, watcher: Watcher) -> Judgements:
    """Of every training document, whatever the seed; computed by one process, or taken from the cache."""
    tensors: dict[str, Tensor] = {}
    if is_main_process():
        with alone():
            tensors = tensors_of(_kept(taxonomy, given, cache, watcher))
    return Judgements(*judged_of(share_tensors(tensors), len(given.texts), len(taxonomy)), share)


def _kept(taxonomy: Taxonomy, given: Documents, cache: TokenCache, watcher: Watcher) -> Judged:
    def said() -> object:
        run = Run.of(method="linear")
        return [PARTS, LEAST, MOST, asdict(run.encoder), asdict(run.method), fingerprint(taxonomy, [given])]

    return cache.judgements(said, given.texts, len(taxonomy), lambda: judged(taxonomy, given, watcher))


def judged(taxonomy: Taxonomy, given: Documents, watcher: Watcher) -> Judged:
    """Each part of the documents by a model that learnt from the others."""
    documents, run = len(given.texts), Run.of(method="linear")
    parts = np.random.default_rng(0).permutation(documents) % PARTS
    labels: list[NDArray[np.int32]] = [np.empty(0, np.int32)] * documents
    probabilities: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * documents
    with Interrupts() as interrupts:
        for part in np.unique(parts):
            watcher.note(f"linear models judge the training documents, part {part + 1} of {parts.max() + 1}")
            held, others = np.flatnonzero(parts == part), np.flatnonzero(parts != part)
            model = _taught(taxonomy, run, given.take(others.tolist()), watcher, interrupts)
            table = _probabilities(model, taxonomy, given.take(held.tolist()))
            for document, row in zip(held, table, strict=True):
                best = np.sort(np.argsort(-row, kind="stable")[:MOST])
                best = best[row[best] >= LEAST].astype(np.int32)
                labels[document], probabilities[document] = best, row[best]
            interrupts.check()
    return Ragged.of(labels), np.concatenate(probabilities)


def _taught(taxonomy: Taxonomy, run: Run, given: Documents, watcher: Watcher, interrupts: Interrupts) -> LinearModel:
    try:
        return LinearModel.fitted(taxonomy, run, given, watcher, interrupts)
    except InputError as error:
        if error.kind == "no-words":
            error.remedy = "Leave out linear_teacher: it needs words that at least two documents have."
        raise


def _probabilities(model: LinearModel, taxonomy: Taxonomy, held: Documents) -> NDArray[np.float32]:
    """(documents, |Y|): margins made probabilities by how often they prove right, level by level."""
    logits = model.logits(held.texts)
    truth = Ragged.of(held.labels).indicators(np.arange(len(held.texts)), len(taxonomy)) > 0
    return fit_calibration("isotonic", logits, truth, taxonomy).probabilities(logits, taxonomy)
