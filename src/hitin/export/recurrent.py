"""A GRU that can be exported for texts of any length.

torch.export follows torch's own GRU from word to word, and so takes the length of the example for the only one. Here it
is one operation, of which only the shape is looked at, and which ONNX has as well.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from hitin.extras import need


@torch.library.custom_op("hitin::gru", mutates_args=())
def gru(words: Tensor, start: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """One layer, one way: `words` (B, L, e), `start` (1, B, h) -> (B, L, h)."""
    return torch.gru(words, start, list(weights), True, 1, 0.0, False, False, True)[0].clone()


@gru.register_fake
def _(words: Tensor, start: Tensor, weights: Sequence[Tensor]) -> Tensor:  # noqa: ARG001
    return words.new_empty(words.shape[0], words.shape[1], start.shape[2])


class WholeGRU(TorchFunctionMode):
    """While it is on, `torch.gru` is the one operation."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is torch.gru:
            words, start, weights = args[:3]
            return gru(words, start, list(weights)), start
        return func(*args, **(kwargs or {}))


def translations() -> dict[Any, Callable[..., Any]]:
    """What the exporter is to write for the operation."""
    return {torch.ops.hitin.gru.default: _to_onnx}


def _to_onnx(words: Any, start: Any, weights: Sequence[Any]) -> Any:
    """ONNX has the length first, and the gates in another order: update, reset, new."""
    op = need("onnxscript", extra="onnx", purpose="The export to ONNX").opset18
    inner, state, inner_bias, state_bias = (_reordered(op, each) for each in weights)
    bias = op.Concat(inner_bias, state_bias, axis=0)
    first = op.Constant(value_ints=[0])
    inner, state, bias = (op.Unsqueeze(each, first) for each in (inner, state, bias))
    by_time = op.Transpose(words, perm=[1, 0, 2])  # (L, B, e)
    width = weights[1].shape[1]
    found, _ = op.GRU(by_time, inner, state, bias, None, start, hidden_size=width, linear_before_reset=1)
    return op.Transpose(op.Squeeze(found, op.Constant(value_ints=[1])), perm=[1, 0, 2])


def _reordered(op: Any, weight: Any) -> Any:
    reset, update, new = op.Split(weight, axis=0, num_outputs=3)
    return op.Concat(update, reset, new, axis=0)
