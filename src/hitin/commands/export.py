"""`hitin export`."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from hitin.commands import options
from hitin.console import busy, errors_as_json, say


class Target(StrEnum):
    onnx = "onnx"


def export(
    model: options.ModelFolder,
    to: Annotated[Target, typer.Option("--to", help="The form to write.")] = Target.onnx,
    int8: Annotated[
        bool, typer.Option("--int8", help="Give the weights of a transformer 8 bits: small, and quick on a CPU.")
    ] = False,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FOLDER", help="Where to write, if not MODEL/onnx or MODEL/onnx-int8."),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Write a model for programs without torch: text encoder and structure encoder in one ONNX file.

    The folder has all that is needed beside: the tokenizer, the labels, how they are chosen, a card. Before it counts
    it is tried: onnxruntime has to give what torch gives. hitin predict and evaluate take the folder like a model, or
    the model with --runtime onnx. Needs the extra `onnx`.

    Examples:

        hitin export model --to onnx
        hitin export model --to onnx --int8
        hitin export model --to onnx --out for-the-server
        hitin predict model new.jsonl --runtime onnx
    """
    with errors_as_json(as_json), busy(f"exporting to {to.value}, and trying it"):
        from hitin.export.exporting import export_model

        found = export_model(model, out, int8=int8)
    if as_json:
        told = {"model": model, "folder": str(found.folder), "bytes": found.size, **found.export.to_json()}
        typer.echo(json.dumps(told, indent=2))
        return
    typer.echo(str(found.folder))
    difference = f"probabilities differ from torch's by at most {found.export.largest_difference:.1g}"
    say(f"{found.size / 1e6:,.1f} MB; {difference} on the texts that were tried")
