"""What `hitin predict` offers for folders, and what it says of them. Nothing heavy is imported here."""

import sys
from contextlib import redirect_stdout
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from hitin.console import say
from hitin.errors import counted

if TYPE_CHECKING:
    from hitin.bulk import Request, Scored

FAILED = 1
"""The exit code where some shards could not be read; all others are done."""


class EngineName(StrEnum):
    local = "local"
    ray = "ray"


class AnswerFormatName(StrEnum):
    auto = "auto"
    jsonl = "jsonl"
    parquet = "parquet"


Engine = Annotated[
    EngineName | None,
    typer.Option(
        "--engine",
        help="What scores a folder: this process (local), or Ray on this machine or a cluster (ray; needs the extra "
        "ray). A file is then treated as a folder with one file.",
    ),
]
Address = Annotated[
    str | None,
    typer.Option("--address", metavar="HOST:PORT", help="The Ray cluster to join, or auto; none: this machine."),
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=1, metavar="N", help="How many processes of Ray have the model.")
]
To = Annotated[
    AnswerFormatName,
    typer.Option(help="What the answers to a folder are written as; auto is Parquet for Parquet, else JSON lines."),
]
Overwrite = Annotated[
    bool,
    typer.Option("--overwrite", help="Remove the answers that are in the folder, whatever was asked, and begin anew."),
]


def refuse_options(address: str | None, workers: int | None, to: AnswerFormatName, overwrite: bool) -> None:
    """What makes no sense for a single stream of answers."""
    from hitin.option_values import bad_option

    given = {"--address": address, "--workers": workers, "--overwrite": overwrite, "--to": to != AnswerFormatName.auto}
    for name, value in given.items():
        if value:
            raise bad_option(f"{name} is for folders", "Name a folder of documents, or add --engine.")


def predict_folders(
    request: "Request",
    inputs: list[str],
    out: str | None,
    engine: EngineName | None,
    address: str | None,
    workers: int | None,
    overwrite: bool,
) -> None:
    """Score folders and say what became of them."""
    from hitin.bulk import score_folder
    from hitin.bulk.display import watching
    from hitin.bulk.ray_engine import Cluster
    from hitin.option_values import bad_option

    if out is None:
        raise bad_option("the answers to a folder make a folder", "Name it with --out.")
    on_ray = engine == EngineName.ray
    cluster = Cluster(address, workers) if on_ray or address or workers else None
    try:
        with watching() as watcher, redirect_stdout(sys.stderr):  # where Ray tells of workers that died
            scored = score_folder(
                request,
                inputs,
                out,
                engine="ray" if on_ray else "local",
                cluster=cluster,
                overwrite=overwrite,
                watcher=watcher,
            )
    except KeyboardInterrupt:
        say("what is finished stays: the same command goes on from there")
        raise
    report(scored, out)


def report(scored: "Scored", out: str) -> None:
    """What became of the shards, on standard error; the exit code tells whether some failed."""
    speed = f" ({scored.rows / scored.seconds:,.0f} a second)" if scored.rows else ""
    before = f", {counted(len(scored.before), 'file')} finished before" if scored.before else ""
    say(
        f"{out}: {counted(scored.rows, 'document')} of {counted(len(scored.finished), 'file')} answered "
        f"in {scored.seconds:,.1f} s{speed}{before}"
    )
    if not scored.failed:
        return
    for failed in scored.failed:
        for number, line in enumerate(str(failed.error).splitlines()):
            say(f"failed: {line}" if number == 0 else f"  {line}")
    say(f"{counted(len(scored.failed), 'file')} could not be scored; mended, the same command does only those")
    raise typer.Exit(FAILED)
