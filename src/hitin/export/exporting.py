"""From the folder of a model to the folder of its export, tried before it counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hitin.calibration import probabilities_of
from hitin.decisions import Decisions
from hitin.encoders.tfidf import TfidfSettings
from hitin.errors import InputError
from hitin.export.card import export_card
from hitin.export.folder import GRAPH, LABELS, Export, check_place, replacing_folder, seal, usual_folder
from hitin.export.graph import export_graph, need_exporter
from hitin.export.int8 import check_int8, quantise
from hitin.export.labels import labels_json
from hitin.export.model import open_session, run_session
from hitin.model import Model
from hitin.model_folder import CARD, DECISIONS, RUN, TAXONOMY, fingerprint_of, load_model
from hitin.neural import TOKENIZER, NeuralModel
from hitin.writing import write_text

TOLERANCE = 1e-4
"""The most that a probability may differ from torch's."""
_SAMPLES = 24  # texts on which both are tried
_OFF = (0.25, 0.1)  # how far logits of 8 bits may be off: a part of their deviation, and so much besides


@dataclass(frozen=True)
class Exported:
    """What was written where."""

    folder: Path
    export: Export
    size: int
    """Of the graph with its weights, in bytes."""


def export_model(folder: str | Path, out: str | Path | None = None, *, int8: bool = False) -> Exported:
    """Write the model of a folder as a folder of ONNX: `onnx` or `onnx-int8` in the model's own, unless `out` is given.

    Before it counts, the graph has to give what torch gives, document by document and, with 32 bits, together.
    """
    source = Path(folder)
    target = Path(out) if out is not None else usual_folder(source, int8=int8)
    need_exporter()
    fingerprint = fingerprint_of(source)  # first: what takes the model's place meanwhile was not exported
    loaded, decisions, _ = load_model(source)
    model = _network_of(loaded)
    if int8:
        check_int8(model.run)
    check_place(target)
    with replacing_folder(target) as part:
        difference = _write_graph(model, part / GRAPH, int8=int8)
        _write_rest(model, decisions, part, int8=int8)
        export = seal(part, model=fingerprint, int8=int8, largest_difference=difference)
        size = sum(path.stat().st_size for path in part.glob(f"{GRAPH}*"))
    return Exported(target, export, size)


def _network_of(model: Model) -> NeuralModel:
    if not isinstance(model, NeuralModel):
        raise InputError(
            f"the method {model.run.method_name} has no network that could be exported",
            kind="not-exportable",
            remedy="It is words with their weights and needs no torch to be quick: use it as it is, with hitin predict;"
            " or train a network, such as --method hitin.",
        )
    return model


def _write_graph(model: NeuralModel, path: Path, *, int8: bool) -> float:
    """Answers the largest difference from torch, of a probability."""
    texts = _samples(model)
    expected = model.logits(texts)  # before the network is changed for the export
    parts = export_graph(model.network, path)
    difference = _largest(_tried(model, path, texts), expected)
    if not difference <= TOLERANCE:  # nor is what is no number
        raise _other_numbers(f"a probability differs from torch's by {difference:.2g}")
    if not int8:
        return difference
    quantise(path, parts)
    found = _tried(model, path, texts, together=False)
    if not _is_near(found, expected):
        raise _other_numbers("with weights of 8 bits, its logits have little to do with torch's")
    return _largest(found, expected)


def _write_rest(model: NeuralModel, decisions: Decisions, folder: Path, *, int8: bool) -> None:
    model.taxonomy.write(folder / TAXONOMY)
    texts = {
        TOKENIZER: model.tokenizer.to_str(),
        RUN: model.run.to_toml(),
        DECISIONS: decisions.to_json(),
        LABELS: labels_json(model.taxonomy, decisions, model.tokenizer, _max_length(model)),
        CARD: export_card(model.taxonomy, model.run, decisions, int8=int8),
    }
    for name, text in texts.items():
        write_text(folder / name, [text])


def _samples(model: NeuralModel) -> list[str]:
    """Texts of every length: nothing, names of labels, and all of them in a row, which is cut off."""
    names = model.taxonomy.labels[:: max(1, len(model.taxonomy) // _SAMPLES)][:_SAMPLES]
    everything = " ".join(names)
    return ["", *names, everything, " ".join([everything] * (_max_length(model) // len(names) + 1))]


def _max_length(model: NeuralModel) -> int:
    assert not isinstance(model.run.encoder, TfidfSettings)
    return model.run.encoder.max_length


def _tried(model: NeuralModel, path: Path, texts: Sequence[str], *, together: bool = True) -> NDArray[np.float32]:
    """(1 or 2, texts, |Y|): the logits of documents that are alone, and that are together where they may be."""
    session = open_session(path, len(model.taxonomy), "cpu")
    tokens = model.tokens(texts)
    found = [np.concatenate([run_session(session, tokens, np.array([row])) for row in range(len(texts))])]
    if together:
        found.append(run_session(session, tokens, np.arange(len(texts))))
    return np.stack(found)


def _largest(found: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    """The largest difference of any probability."""
    return float(np.abs(probabilities_of(found) - probabilities_of(expected)).max())


def _is_near(found: NDArray[np.float32], expected: NDArray[np.float32]) -> bool:
    """Whether logits are off by little beside how much they differ among themselves: what rounding does, and what a
    mistake in the graph does not."""
    off = np.sqrt(np.square(found - expected, dtype=np.float64).mean())
    return bool(off <= _OFF[0] * expected.std() + _OFF[1])


def _other_numbers(reason: str) -> InputError:
    return InputError(
        f"the exported network is not the same: {reason}",
        kind="not-exportable",
        remedy="Nothing was written. Use the model as it is; other versions of torch and onnxruntime may do it.",
    )
