"""`OnnxModel`: from documents to logits by onnxruntime. Nothing of torch takes part in it."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
import torch
from numpy.typing import NDArray

from hitin.batches import Examples
from hitin.damage import telling
from hitin.encoders import AnyTokenizer, EncoderSettings, numbers_of, read_tokenizer
from hitin.encoders.tfidf import TfidfSettings
from hitin.errors import InputError, shown
from hitin.export.folder import GRAPH, read_export
from hitin.export.graph import IDS, LENGTHS, LOGITS
from hitin.extras import need
from hitin.model import Advance, Model
from hitin.model_folder import RUN, TAXONOMY
from hitin.network import CPU_TOKENS_AT_ONCE, scoring_batches
from hitin.neural import TOKENIZER
from hitin.processor import cores
from hitin.settings import Run
from hitin.taxonomy import Taxonomy
from hitin.tokens import Ragged

_PURPOSE = "A model exported to ONNX"
_CUDA = "CUDAExecutionProvider"


@dataclass
class OnnxModel(Model):
    """The graph of an exported model in a session of onnxruntime, with what it takes to use it."""

    graph: Path
    session: Any
    tokenizer: AnyTokenizer
    taxonomy: Taxonomy
    run: Run
    int8: bool = False
    made_from: str = ""
    """The fingerprint of the model that was exported."""

    @classmethod
    def load(cls, folder: Path, device: str = "cpu") -> Self:
        """The model of an exported folder, or an error that says what is wrong with it."""
        cls.check_needs()
        export = read_export(folder)
        with telling(folder / RUN):
            run = Run.of(preset=folder / RUN)
        with telling(folder / TAXONOMY):
            taxonomy = Taxonomy.read(folder / TAXONOMY)
        with telling(folder / TOKENIZER):
            tokenizer = read_tokenizer(_encoder(run), folder / TOKENIZER)
        session = open_session(folder / GRAPH, len(taxonomy), device)
        model = cls(folder / GRAPH, session, tokenizer, taxonomy, run, export.int8, export.model)
        with telling(folder / GRAPH):
            if not np.isfinite(model.logits(["", "a few words"])).all():
                raise ValueError("it computes what are no numbers")
        return model

    @classmethod
    def check_needs(cls, run: Run | None = None) -> None:  # noqa: ARG003
        need("onnxruntime", extra="onnx", purpose=_PURPOSE)

    def logits(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """(documents, |Y|)"""
        return self.prepared_logits(self.prepared(texts))

    def prepared(self, texts: Sequence[str]) -> Examples:
        tokens = numbers_of(self.tokenizer, texts, _encoder(self.run).max_length)
        return Examples(tokens, Ragged.of([()] * len(texts)), len(self.taxonomy))

    def prepared_logits(self, prepared: Examples, advance: Advance | None = None) -> NDArray[np.float32]:
        logits = np.empty((len(prepared), len(self.taxonomy)), dtype=np.float32)
        for rows in self._batches(prepared):
            with telling(self.graph):  # which may fail for some documents and not for others
                logits[rows] = run_session(self.session, prepared.tokens, rows)
            if advance:
                advance(len(rows))
        return logits

    def _batches(self, prepared: Examples) -> Iterable[NDArray[np.int64]]:
        """Rows that are run together. With 8 bits no two: what weights are multiplied with is rounded by one scale for
        all that is run, so that a document's labels would depend on the others."""
        if self.int8:
            return np.arange(len(prepared))[:, None]
        return scoring_batches(prepared, CPU_TOKENS_AT_ONCE)

    def __getstate__(self) -> dict[str, Any]:
        """For another process: a session cannot be sent there, so that it is opened again."""
        return self.__dict__ | {"graph": self.graph.absolute(), "session": self._place()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.session = open_session(self.graph, len(self.taxonomy), state["session"])

    def _place(self) -> str:
        return "cuda" if self.session.get_providers()[0] == _CUDA else "cpu"

    def to(self, device: torch.device) -> None:
        self.session = open_session(self.graph, len(self.taxonomy), str(device))

    # What makes no sense for a graph that is ready.

    @classmethod
    def trained(cls, *_: Any, **__: Any) -> NoReturn:
        _refuse("trained")

    def tensors(self) -> NoReturn:
        _refuse("saved")

    def texts(self) -> NoReturn:
        _refuse("saved")

    @classmethod
    def restored(cls, *_: Any, **__: Any) -> NoReturn:
        _refuse("restored")


def open_session(graph: Path, labels: int, device: str) -> Any:
    """A session on all cores, or on a GPU."""
    onnxruntime = need("onnxruntime", extra="onnx", purpose=_PURPOSE)
    providers = _providers(device, onnxruntime.get_available_providers())
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = _threads()
    options.log_severity_level = 4  # what goes wrong is raised, too
    # Threads that have nothing to do sleep. With two cores and a service to run, spinning took 2.0 ms of them for a
    # short text, sleeping 1.2 ms.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    with telling(graph):
        session = onnxruntime.InferenceSession(str(graph), options, providers=providers)
        shapes = [each.name for each in session.get_inputs()], [each.name for each in session.get_outputs()]
        if shapes != ([IDS, LENGTHS], [LOGITS]) or session.get_outputs()[0].shape[1] != labels:
            raise ValueError("it is the graph of another model")
    if len(providers) > 1 and session.get_providers()[0] != _CUDA:  # the library goes on without a word
        raise _no_device(device, "its libraries for CUDA do not load")
    return session


def run_session(session: Any, tokens: Ragged, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """(rows, |Y|): the logits of some documents."""
    found: NDArray[np.float32]
    (found,) = session.run([LOGITS], {IDS: tokens.padded(rows), LENGTHS: tokens.lengths[rows]})
    return found


def _threads() -> int:
    """All cores that this process may use, unless the environment says fewer."""
    wished = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores(), int(wished)) if wished.isdigit() and int(wished) else cores()


def _providers(device: str, available: Sequence[str]) -> list[Any]:
    kind, _, number = device.partition(":")
    if kind not in ("auto", "cpu", "cuda") or not (number or "0").isdigit():
        raise _no_device(device, "it knows cpu and cuda")
    if kind == "cpu" or (kind == "auto" and _CUDA not in available):
        return ["CPUExecutionProvider"]
    if _CUDA not in available:
        raise _no_device(device, "the package onnxruntime computes on the CPU; onnxruntime-gpu on both")
    return [(_CUDA, {"device_id": int(number)}) if number else _CUDA, "CPUExecutionProvider"]


def _no_device(device: str, reason: str) -> InputError:
    return InputError(
        f"onnxruntime cannot compute on {shown(device)} here: {reason}",
        kind="bad-option",
        remedy="Choose --device cpu; or --runtime torch, with the folder of the model.",
    )


def _encoder(run: Run) -> EncoderSettings:
    if isinstance(run.encoder, TfidfSettings):
        raise InputError("a linear model has no graph", kind="damaged-model")
    return run.encoder


def _refuse(done: str) -> NoReturn:
    raise InputError(
        f"an exported model cannot be {done}",
        kind="exported",
        remedy="Copy its folder, or take the model that it was made from.",
    )
