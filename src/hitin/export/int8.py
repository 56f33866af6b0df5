"""Weights of a transformer in 8 bits: a smaller file, and several times as quick on a CPU."""

import logging
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hitin.encoders.transformer import TransformerSettings
from hitin.errors import InputError, first_line, printable
from hitin.extras import need
from hitin.settings import Run

_PARTS = {"textrcnn": "the GRU and the convolutions of textrcnn", "bag": "the bag's sums of vectors"}


def check_int8(run: Run) -> None:
    """Refuse text encoders that have no part that int8 makes quicker."""
    if not isinstance(run.encoder, TransformerSettings):
        part = _PARTS.get(run.encoder_name, f"the text encoder {run.encoder_name}")
        raise InputError(
            f"int8 is for transformers: it does not support {part}",
            kind="no-int8",
            remedy="Leave out --int8.",
        )


def quantise(path: Path, parts: Sequence[str]) -> None:
    """Give the weights of these nodes 8 bits, those of a product a scale for each column; what they are multiplied with
    is rounded as it comes. The file is overwritten.

    The structure encoder and the classifier stay as they are: they take little time, and logits come from them. One
    scale for all columns would cost a point of F1, measured with MiniLM on abstracts; a scale each costs nothing.
    """
    onnx = need("onnx", extra="onnx", purpose="The export to ONNX")
    quantization: Any = need("onnxruntime.quantization", extra="onnx", purpose="int8")
    if not parts:
        raise _not_quantised("no weights of the text encoder were found in the graph")
    beside = path.with_name(f"{path.name}.data")  # of a graph that is too large with its weights
    was_disabled = logging.root.manager.disable
    logging.disable(logging.WARNING)  # it advises to prepare the graph, which the exporter has done
    try:
        graph = onnx.load(str(path))
        del graph.graph.value_info[:]  # the exporter's, some of which contradict what the library infers
        _unshare(graph.graph)
        is_large = beside.exists()
        beside.unlink(missing_ok=True)  # its weights are read
        quantization.quantize_dynamic(
            graph,
            str(path),
            per_channel=True,
            use_external_data_format=is_large,
            weight_type=quantization.QuantType.QInt8,
            op_types_to_quantize=["MatMul", "Gather"],
            nodes_to_quantize=list(parts),
            extra_options={"MatMulConstBOnly": True},
        )
    except OSError:
        raise
    except Exception as error:  # whatever the library raises
        raise _not_quantised(printable(first_line(error))) from error
    finally:
        logging.disable(was_disabled)


def _unshare(graph: Any) -> None:
    """Give each `Gemm` weights of its own: the library turns every one into a `MatMul` and transposes its weights in
    place, so that of two with the same weights one would get them the wrong way round."""
    uses = Counter(name for node in graph.node for name in node.input)
    weights = {each.name: each for each in graph.initializer}
    for node in graph.node:
        if node.op_type == "Gemm" and node.input[1] in weights and uses[node.input[1]] > 1:
            own = graph.initializer.add()
            own.CopyFrom(weights[node.input[1]])
            node.input[1] = own.name = f"{node.name}.weight"


def _not_quantised(reason: str) -> InputError:
    return InputError(
        f"the network could not be given weights of 8 bits ({reason})",
        kind="no-int8",
        remedy="Leave out --int8.",
    )
