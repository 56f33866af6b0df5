"""The `hitin` command: thin verbs over the library. Heavy imports stand inside the commands."""

import io
import json
import os
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from hitin import __version__
from hitin.commands import options
from hitin.commands.compare import compare
from hitin.commands.data import data
from hitin.commands.evaluate import evaluate
from hitin.commands.explain import explain
from hitin.commands.export import export
from hitin.commands.missing import keep_words, telling_mistakes
from hitin.commands.predict import predict
from hitin.commands.serve import offer_page, serve
from hitin.commands.split import split
from hitin.commands.taxonomy import taxonomy
from hitin.commands.train import train
from hitin.commands.tune import tune
from hitin.console import CANNOT_BE_READ, INTERRUPTED, busy, errors_as_json, file_progress, print_tables, warn
from hitin.errors import HitinError, printable
from hitin.kills import unwind_on_kills
from hitin.launching import end_at_once, has_launcher
from hitin.names import unescaped

if TYPE_CHECKING:
    from hitin.doctor.facts import CheckUp


class _Group(TyperGroup):
    """Shows what a user or the machine did wrong as one short message, never as a traceback."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        keep_words(ctx, args)
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        try:
            try:
                with telling_mistakes(ctx):
                    return super().invoke(ctx)
            finally:
                if sys.stdout is not None:  # it may have been closed
                    sys.stdout.flush()  # here, where a full disk can still be told
        except HitinError as error:
            show_error(error)
            raise typer.Exit(CANNOT_BE_READ) from error
        except KeyboardInterrupt:
            typer.echo("stopped", err=True)
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:  # the reader of our output has gone, as in `hitin ... | head`
            _discard_output()
            raise typer.Exit(0) from None
        except OSError as error:
            _discard_output()
            show_error(HitinError(f"the machine would not do it: {error}"))
            raise typer.Exit(CANNOT_BE_READ) from error


def _discard_output() -> None:
    """What is left in the buffer goes nowhere, so that nothing complains at exit."""
    with suppress(OSError, AttributeError):  # it may be closed, or no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=_Group,
    name="hitin",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Hierarchical text classification on your own taxonomy.",
)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):  # a name that the terminal cannot show is escaped, not a crash
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    let_idle_threads_sleep()
    unwind_on_kills()
    try:
        app()
    except SystemExit as ending:
        if has_launcher():
            end_at_once(ending.code)
        raise


def let_idle_threads_sleep() -> None:
    """A thread of torch that has nothing to do sleeps soon. To be said before torch is imported.

    By default it spins. Measured on two cores with one other busy process, that makes a step of training 20 times
    slower (1200 ms against 130 ms); alone, to sleep costs nothing (52 ms against 51 ms).
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def show_error(error: HitinError) -> None:
    """One screen on standard error: the place, what is wrong, the remedy."""
    typer.secho("error: ", fg="red", bold=True, nl=False, err=True)
    for line in str(error).splitlines():
        typer.echo(printable(line, most=1000), err=True)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"hitin {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


@app.command()
def check(
    taxonomy: options.TaxonomyFile,
    documents: Annotated[
        list[str] | None,
        typer.Argument(help="Files of documents, training first: JSONL, CSV, TSV or Parquet, also .gz .xz .zst."),
    ] = None,
    format: options.Format = options.TaxonomyFormat.auto,
    separator: options.Separator = None,
    label_delimiter: options.LabelDelimiter = "|",
    root: options.Root = "Root",
    homonyms: options.Homonyms = options.HomonymPolicy.merge,
    text_key: options.TextKey = None,
    label_key: options.LabelKey = None,
    encoding: options.Encoding = None,
    taxonomy_encoding: options.TaxonomyEncoding = None,
    rare: Annotated[int, typer.Option(min=1, help="Labels with fewer training documents are called rare.")] = 10,
    as_json: options.AsJson = False,
) -> None:
    """Examine a taxonomy and its documents before training.

    Counts by level, labels a document, unknown labels with the nearest spelling, missing ancestors, leaks
    between splits, duplicates, rare labels, lengths, encoding trouble; each with the file and line.

    Exit code: 0 fit to train on, 1 training would be wrong, 2 something cannot be read.

    Examples:

        hitin check taxonomy.tsv
        hitin check taxonomy.tsv train.jsonl val.jsonl test.jsonl
        hitin check categories.txt articles.csv --text-key body --label-key category
        hitin check taxonomy.json train.parquet --json > report.json
    """
    from hitin import doctor
    from hitin.taxonomy.reading import encoding_beside

    with errors_as_json(as_json, taxonomy=None, splits=[]), file_progress() as progress:
        found = doctor.check(
            taxonomy,
            documents or (),
            format=format.value,
            separator=unescaped(separator),
            delimiter=unescaped(label_delimiter),
            root=root,
            homonyms=homonyms.value,
            taxonomy_encoding=taxonomy_encoding or encoding_beside(taxonomy, encoding),
            encoding=encoding,
            text_key=text_key,
            label_key=label_key,
            rare=rare,
            progress=progress,
        )
    if as_json:
        typer.echo(json.dumps(found.to_json(), indent=2))
    else:
        _show(found)
    raise typer.Exit(found.exit_code)


@app.command()
def tree(
    taxonomy: options.TaxonomyFile,
    height: Annotated[int, typer.Option("--height", "-k", min=1, max=1000, help="The height K of the tree.")] = 2,
    method: Annotated[
        options.TreeMethod,
        typer.Option(help="The least entropy, the paper's Algorithm 1, at random, or the label tree itself."),
    ] = options.TreeMethod.optimal,
    out: Annotated[
        list[str] | None,
        typer.Option("--out", "-o", help="A file to write: .html, .svg, .json, .dot or .nwk; may be given again."),
    ] = None,
    with_root: Annotated[bool, typer.Option("--with-root", help="Keep the artificial root as a vertex.")] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="For the method random.")] = 0,
    format: options.Format = options.TaxonomyFormat.auto,
    separator: options.Separator = None,
    root: options.Root = "Root",
    homonyms: options.Homonyms = options.HomonymPolicy.merge,
    encoding: Annotated[str | None, typer.Option(help="The encoding of the taxonomy, if not UTF-8.")] = None,
    as_json: options.AsJson = False,
) -> None:
    """Turn a taxonomy into its coding tree: labels that belong together, in groups of groups.

    Prints the structural entropy without groups (H^1) and under the tree (H^K), in bits, the nodes of each layer
    and the time. The HTML page shows the tree beside the taxonomy, with search.

    Examples:

        hitin tree taxonomy.tsv
        hitin tree taxonomy.tsv --height 3 --out tree.html
        hitin tree taxonomy.tsv --method paper --out tree.json --out tree.svg
    """
    from hitin.coding_tree.command import build_tree, show_tree

    with errors_as_json(as_json), busy("reading and building the tree"):
        built = build_tree(
            taxonomy,
            height=height,
            method=method.value,
            out=out or (),
            with_root=with_root,
            seed=seed,
            format=format.value,
            separator=unescaped(separator),
            root=root,
            homonyms=homonyms.value,
            encoding=encoding,
        )
    warn(built.warnings)
    typer.echo(json.dumps(built.to_json(), indent=2) if as_json else show_tree(built))


app.command()(taxonomy)
app.command()(split)
app.command()(train)
app.command()(evaluate)
app.command()(predict)
app.command()(explain)
app.command()(tune)
app.command()(export)
app.command()(serve)
app.command()(compare)


@app.command()
def demo(
    out: options.OutFolder = "runs/demo",
    device: options.Device = options.DeviceName.auto,
) -> None:
    """Train HiTIN on ICD-10-CM and see what it makes of ten diagnoses in plain words.

    Takes some minutes on two cores and no network. Writes the data, the model and metrics.json (scores on the test
    documents). Ctrl-C loses nothing: the same command goes on. Needs the extra `demo`.

    Examples:

        hitin demo
        hitin demo --out runs/first
    """
    from hitin.commands.demo import demo_tables, model_folder, run_demo, show_next
    from hitin.commands.training import leave
    from hitin.display import watching

    try:
        with watching() as watcher:
            found = run_demo(out, watcher, device=device.value)
    except KeyboardInterrupt:
        leave(str(model_folder(out)))
    print_tables(*demo_tables(found))
    typer.echo(show_next(found))
    offer_page(str(found.model))


app.add_typer(data, name="data")


def _show(found: "CheckUp") -> None:
    from rich.console import Console

    from hitin.doctor.view import show

    unreadable = found.exit_code == CANNOT_BE_READ
    console = Console(highlight=False, stderr=unreadable)
    with console.capture() as capture:
        show(found, console)
    typer.echo(capture.get(), nl=False, err=unreadable)
