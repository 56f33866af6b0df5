"""`hitin data`: data sets written as a taxonomy and documents, in the paper's splits where it has them."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

from hitin.commands.console import busy

if TYPE_CHECKING:
    from hitin.datasets.files import DataFiles
    from hitin.datasets.table1 import PaperSet

data = typer.Typer(no_args_is_help=True, help="Write a data set: its taxonomy and its documents.")

DIFFERS = 1
"""The exit code of `--check` where a count is not the paper's."""

Check = Annotated[
    bool, typer.Option("--check", help="Compare with the paper's Table 1; exit code 1 where a count differs.")
]


@data.command()
def icd10(
    out: Annotated[str, typer.Option("--out", "-o", help="The folder to write to; made if need be.")] = "runs/icd10",
    characters: Annotated[
        int,
        typer.Option(
            "--characters",
            min=3,
            max=7,
            help="Labels are codes of up to so many characters: 3 are categories, 6 the codes of diagnoses, 7 all.",
        ),
    ] = 3,
) -> None:
    """Write ICD-10-CM: a diagnosis in words to its chapter > block > category, or down to its code.

    Writes taxonomy.tsv, train.jsonl (the descriptions of the codes), val.jsonl and test.jsonl (other wordings of
    the same diagnoses). Needs the extra `demo`, and no network.

    Examples:

        hitin data icd10
        hitin data icd10 --out diagnoses
        hitin data icd10 --out codes --characters 6
    """
    from hitin.datasets.icd10 import show_icd10, write_icd10

    with busy("writing ICD-10-CM"):
        written = write_icd10(out, characters)
    typer.echo(show_icd10(written))


def report(
    title: str, files: "DataFiles", *, paper: "PaperSet | None" = None, check: bool = False, as_json: bool = False
) -> None:
    """Say what was written; with `check`, whether it is what the paper describes, by the exit code too."""
    from hitin.datasets.files import show_files
    from hitin.datasets.table1 import compare_with_paper, show_comparison

    rows = compare_with_paper(paper, files) if check and paper else ()
    if as_json:
        table = {"table_1": [row.to_json() for row in rows]} if rows else {}
        typer.echo(json.dumps({**files.to_json(), **table}, indent=2))
    else:
        typer.echo(show_files(title, files))
        if paper and rows:
            typer.echo(f"\n{show_comparison(paper, rows)}")
    if not all(row.agrees for row in rows):
        raise typer.Exit(DIFFERS)
