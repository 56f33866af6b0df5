"""What computes a model on the command line. Nothing heavy is imported here."""

from enum import StrEnum
from typing import Annotated

import typer


class RuntimeName(StrEnum):
    auto = "auto"
    torch = "torch"
    onnx = "onnx"
    onnx_int8 = "onnx-int8"


Runtime = Annotated[
    RuntimeName,
    typer.Option(
        help="What computes: torch; or onnx or onnx-int8, what hitin export has written into the model's folder. auto "
        "is torch for a model and ONNX for an exported one."
    ),
]
