"""From a network to `model.onnx`: token numbers and lengths in, logits out."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hitin.batches import Batch
from hitin.encoders.transformer import Transformer
from hitin.errors import HitinError, InputError, first_line, printable
from hitin.export.recurrent import WholeGRU, translations
from hitin.extras import need
from hitin.network import Network

IDS, LENGTHS, LOGITS = "ids", "lengths", "logits"
"""The names of the inputs (B, L) and (B,), both of 64-bit whole numbers, and of the output (B, |Y|)."""

LARGEST_FILE = 1_500_000_000
"""Weights of more bytes stand in a file beside the graph: a file of ONNX has at most 2 GB."""
_MANY = 1 << 20  # numbers of a table, from which on it is worth while to make it smaller
_ENCODER = "network.encoder"
_SCOPES = "pkg.torch.onnx.name_scopes"  # where the exporter notes the module that a node comes from
_LOGGERS = ("torch.onnx", "onnxscript", "onnx_ir", "torch.export", "torch._dynamo")


class Scoring(nn.Module):
    """What is exported."""

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, lengths: Tensor) -> Tensor:
        batch = Batch(ids, lengths, ids.new_zeros((ids.shape[0], 0)), None)
        return self.network.method.score(self.network.encoder, batch)[1]


def need_exporter() -> None:
    """Tell what has to be installed, before long work."""
    for module in ("onnx", "onnxscript", "onnxruntime"):
        need(module, extra="onnx", purpose="The export to ONNX")


def export_graph(network: Network, path: Path) -> list[str]:
    """Write the graph; answers the names of the nodes of the text encoder that int8 can make cheaper.

    The network is changed: it computes by operations that other runtimes know.
    """
    _make_plain(network)
    try:
        with _quiet(), torch.no_grad(), WholeGRU():
            program = _program(Scoring(network).eval())
            names = _heavy_nodes(program.model.graph)
            _strip(program.model)
            program.save(str(path), external_data=_size(network) > LARGEST_FILE)
    except (OSError, HitinError):  # no room on the disk; a library that is missing
        raise
    except Exception as error:  # whatever torch and its exporter raise
        raise _not_exported(error) from error
    return names


def _program(scoring: Scoring) -> Any:
    """For any number of documents of any length: the example has three, of different lengths."""
    anything = torch.export.Dim.DYNAMIC
    example = torch.ones(3, 5, dtype=torch.int64), torch.tensor([5, 4, 3])
    return torch.onnx.export(
        scoring,
        example,
        None,
        dynamo=True,
        input_names=[IDS, LENGTHS],
        output_names=[LOGITS],
        dynamic_shapes=({0: anything, 1: anything}, {0: anything}),
        custom_translation_table=translations(),
        verbose=False,
    )


def _make_plain(network: Network) -> None:
    network.eval()
    network.encoder.for_export()
    if isinstance(network.encoder, Transformer):
        # The fewest nodes and, measured, as quick in onnxruntime as what torch has for itself.
        choose = getattr(network.encoder.model, "set_attn_implementation", None)
        if choose is not None:
            choose("eager")


def _heavy_nodes(graph: Any) -> list[str]:
    """The products with the weights of the text encoder, and where it looks up the vectors of its many tokens."""
    inside = [node for node in graph if f"'{_ENCODER}" in node.metadata_props.get(_SCOPES, "")]
    products = [node for node in inside if node.op_type == "MatMul" and node.inputs[1].is_initializer()]
    tables = [node for node in inside if node.op_type == "Gather" and node.inputs[0].is_initializer()]
    return [node.name for node in (*products, *(each for each in tables if each.inputs[0].const_value.size > _MANY))]


def _strip(model: Any) -> None:
    """Without what the exporter notes of this machine: its folders, and lines of code."""
    for holder in (model, model.graph, *model.functions.values()):
        holder.metadata_props.clear()
    model.doc_string = None
    for node in model.graph.all_nodes():
        node.metadata_props.clear()
        node.doc_string = None
        for value in node.outputs:
            value.metadata_props.clear()
    for value in (*model.graph.inputs, *model.graph.initializers.values()):
        value.metadata_props.clear()


def _size(network: Network) -> int:
    """Of the weights, in bytes."""
    tensors = (*network.parameters(), *network.buffers())
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch and the exporter say about themselves."""
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _not_exported(error: Exception) -> InputError:
    reason = first_line(error.__cause__ or error)  # the exporter begins with advice on torch
    return InputError(
        f"torch {torch.__version__} could not export this network ({printable(reason)})",
        kind="not-exportable",
        remedy="A newer torch may: the export was tried with 2.13. Or use the model as it is, with hitin predict.",
    )
