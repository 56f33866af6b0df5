"""`hitin compare`."""

import json
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from hitin.commands import options
from hitin.console import INTERRUPTED, command, errors_as_json, file_progress, say, warn
from hitin.errors import counted
from hitin.kills import end_unhurried

if TYPE_CHECKING:
    from hitin.compare.comparison import Comparison
    from hitin.compare.running import Outcome

FAILED = 1


def compare(
    file: Annotated[str, typer.Argument(metavar="RUN.toml", help="The file that says what is compared.")],
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            callback=options.named,
            help="The folder of the results; otherwise it is called like the file and stands beside it.",
        ),
    ] = None,
    device: Annotated[
        list[str] | None,
        typer.Option(
            "--device",
            metavar="DEVICE",
            help="auto (every GPU, or else the CPU), cpu, cuda, cuda:1; may be given again.",
        ),
    ] = None,
    at_once: Annotated[int, typer.Option(min=1, max=64, help="Trainings at the same time on each device.")] = 1,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", metavar="TABLE/ROW", help="Train these rows only, such as 'bert/hi*'; may be given again."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List all trainings with their state; train and write nothing.")
    ] = False,
    tables_only: Annotated[
        bool,
        typer.Option(
            "--tables-only", help="Write the tables from the results that are there; documents are not needed."
        ),
    ] = False,
    keep_models: Annotated[
        bool, typer.Option("--keep-models", help="Keep the trained models beside their results.")
    ] = False,
    as_json: options.AsJson = False,
) -> None:
    """Compare methods on data sets, with several seeds: tables in Markdown, CSV and LaTeX, and a page.

    Each row of each table is trained on each data set with each seed, in a process of its own. Ctrl-C or a kill lose
    nothing: the same command goes on. Results stay in the folder: what is added to the file later is all that is
    trained then. Epochs and decisions are chosen on validation documents by one rule for all; the row linear
    (TF-IDF and support vector machines) is always there, trained once, since it draws nothing by chance.

    Exit code: 0 all is finished, 1 some trainings failed, 2 something is wrong with the file or the documents, 130
    interrupted.

    The least that a file must have (paths are relative to it; documents to validate and to test on are held out):

        [data.mine]
        taxonomy = "taxonomy.tsv"
        train = "train.jsonl"
        [tables.first]
        methods = ["flat", "hitin"]

    A file to begin with; methods are flat, hiagm-tp, hiagm-la, htcinfomax, himatch, hgclr and hitin:

        seeds = [0, 1, 2]
        [data.mine]
        taxonomy = "taxonomy.tsv"
        train = "train.jsonl"
        val = "val.jsonl"
        test = "test.jsonl"
        [tables.first]
        encoder = "textrcnn"
        methods = ["flat", "hiagm-tp", "hitin"]
        ablations = ["random-tree", "height"]
        settings = { epochs = 10 }
        [tables.first.rows.hitin]
        dropout = 0.5
        [tables.first.rows."HiTIN, mean"]
        method = "hitin"
        pooling = "mean"

    Examples:

        hitin compare run.toml
        hitin compare run.toml --out results --dry-run
        hitin compare run.toml --out results --device cuda:0 --device cuda:1
        hitin compare run.toml --out results --only "first/hitin*"
    """
    from hitin.compare.comparison import prepare
    from hitin.compare.running import Outcome

    with errors_as_json(as_json), _way_to_go_on():
        with file_progress() as progress:
            found = prepare(
                file,
                out,
                devices=device or (),
                at_once=at_once,
                patterns=only or (),
                trains=not tables_only,
                writes=not dry_run,
                progress=progress,
            )
        warn(found.warnings)
        if dry_run:
            typer.echo(_states(found, as_json))
            return
        outcome = Outcome() if tables_only else _run(found, keep_models)
        files = _write(found)
    typer.echo(_summary(found, outcome, files, as_json))
    _leave(outcome)


@contextmanager
def _way_to_go_on() -> Iterator[None]:
    """Told after Ctrl-C, wherever it comes: also to someone who did not wait until the state was saved."""
    try:
        yield
    except KeyboardInterrupt:
        end_unhurried()
        say("stopped; what was not saved is done again")
        _go_on(INTERRUPTED)


def _go_on(code: int) -> NoReturn:
    """End with the command that goes on."""
    say(f"Go on with: {command(*sys.argv[1:])}")
    raise typer.Exit(code)


def _run(found: "Comparison", keep_models: bool) -> "Outcome":
    """Train what is wanted and not there yet."""
    from hitin.compare.display import showing
    from hitin.compare.running import run_cells
    from hitin.locking import locked

    with locked(found.folder, "comparing"), showing(found.wanted, len(found.places)) as audience:
        return run_cells(
            found.plan, found.wanted, found.data_keys, found.places, keep_models=keep_models, audience=audience
        )


def _write(found: "Comparison") -> list[str]:
    """The tables of what is finished so far."""
    from hitin.compare.formats import write_results

    if not found.states()["finished"]:
        return []
    return [str(path) for path in write_results(found.plan, found.cells, found.folder)]


def _states(found: "Comparison", as_json: bool) -> str:
    """A line for each cell, in the order of the work."""
    from hitin.compare.cells import once

    cells = once(found.wanted)
    if as_json:
        told = [
            {
                "data": cell.data,
                "row": cell.row.name,
                "seed": cell.seed,
                "state": cell.state,
                "folder": str(cell.folder),
            }
            for cell in cells
        ]
        return json.dumps({"cells": told}, indent=2)
    lines = [f"{cell.state:<9}{cell.name} ({cell.row.encoder})" for cell in cells]
    counts = ", ".join(f"{count} {state}" for state, count in Counter(cell.state for cell in cells).items())
    return "\n".join([*lines, f"{counted(len(cells), 'training')}: {counts}"])


def _summary(found: "Comparison", outcome: "Outcome", files: list[str], as_json: bool) -> str:
    """What there is now."""
    states, unasked = found.states(), found.unasked()
    if as_json:
        told = {"states": states, "failures": outcome.failures, "files": files, "unasked_results": unasked}
        return json.dumps(told, indent=2)
    lines = [f"{states['finished']:,} of {counted(states.total(), 'training')} finished"]
    if unasked:
        lines.append(f"{unasked} more in the folder: results of other settings or seeds than the file asks for")
    return "\n".join([*lines, *(f"  {file}" for file in files)])


def _leave(outcome: "Outcome") -> None:
    """With the reasons of what failed and the way to go on."""
    end_unhurried()
    for name, message in outcome.failures.items():
        say(f"failed: {name}: {' '.join(message.splitlines())}")
    if outcome.is_interrupted:
        say("stopped; what was under way is saved")
    if outcome.is_interrupted or outcome.failures:
        _go_on(INTERRUPTED if outcome.is_interrupted else FAILED)
