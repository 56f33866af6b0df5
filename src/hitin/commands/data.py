"""`hitin data`: data sets written as a taxonomy and documents, in the paper's splits where it has them."""

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from hitin.commands import options
from hitin.console import busy, errors_as_json, file_progress, say, warn
from hitin.errors import counted

if TYPE_CHECKING:
    from hitin.datasets.files import DataFiles
    from hitin.datasets.table1 import Comparison, PaperSet

data = typer.Typer(no_args_is_help=True, help="Write a data set: its taxonomy and its documents.")

DIFFERS = 1
"""The exit code of `--check` where a count is not the paper's."""

Check = Annotated[
    bool, typer.Option("--check", help="Compare with the paper's Table 1; exit code 1 where a count differs.")
]


@data.command()
def icd10(
    out: options.OutFolder = "runs/icd10",
    overwrite: options.OverwriteFiles = False,
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
    from hitin.datasets.files import check_folder_of_data
    from hitin.datasets.icd10 import show_icd10, write_icd10

    with busy("writing ICD-10-CM"):
        check_folder_of_data(out, overwrite=overwrite)
        written = write_icd10(out, characters)
    typer.echo(show_icd10(written))


@data.command()
def wos(
    path: Annotated[
        str,
        typer.Argument(
            metavar="PATH", help="The unpacked distribution, its zip, its Data.xlsx, or that as text in columns."
        ),
    ],
    out: options.OutFolder = "runs/wos",
    overwrite: options.OverwriteFiles = False,
    check: Check = False,
    encoding: Annotated[
        str | None, typer.Option("--encoding", help="Of text in columns, if neither UTF-8 nor UTF-16.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Write WOS-46985: the abstract of a paper to its domain > area, in the paper's splits.

    Download "Web of Science Dataset" (WOS-46985) of Kowsari and others, and unpack it. Taken is Meta-data/Data.xlsx
    (extra `data`), or Data.txt, which is the same saved as text with tabs in between. Names of areas that share a code
    are merged into the more frequent one.

    Exit code: 0 written, 1 written, but `--check` finds a count that is not the paper's, 2 something cannot be read.

    Examples:

        hitin data wos WebOfScience --out wos --check
        hitin data wos WebOfScience/Meta-data/Data.xlsx --out wos
        hitin data wos Data.txt --out wos --check --json
    """
    from hitin.datasets.files import check_folder_of_data
    from hitin.datasets.wos import compare_with_wos, write_wos
    from hitin.datasets.wos import wos as read_wos

    with errors_as_json(as_json), busy("reading WOS"):
        check_folder_of_data(out, overwrite=overwrite)
        found = read_wos(path, encoding=encoding)
        written = write_wos(out, found)
    for note in found.notes:
        say(f"note: {note}")
    warn(found.warnings)
    report(
        "WOS-46985: the abstract of a paper to its domain > area",
        written,
        paper="wos" if check else None,
        further=compare_with_wos(found),
        is_doubtful=bool(found.warnings),
        notes=(*found.notes, *found.warnings),
        as_json=as_json,
    )


@data.command()
def rcv1(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="The folder of Reuters' discs, or of the token files of LYRL2004.")
    ],
    out: options.OutFolder = "runs/rcv1",
    overwrite: options.OverwriteFiles = False,
    ids: Annotated[
        str | None,
        typer.Option("--ids", metavar="FILE", help="The numbers of the stories for training, if not in PATH."),
    ] = None,
    check: Check = False,
    as_json: options.AsJson = False,
) -> None:
    """Write RCV1-v2: a story of Reuters to its topics, in the paper's splits.

    PATH holds, in it or in folders below, the stories: rcv1.tar.xz, the zips of the days (19960820.zip ...), the
    `*newsML.xml` in them, or the five token files `lyrl2004_tokens_*.dat`. And of the appendices of LYRL2004
    rcv1.topics.hier.orig, rcv1-v2.topics.qrels (without, the topics are those in the XML), and for the XML
    lyrl2004_tokens_train.dat or rcv1v2-ids.dat, which tell the stories for training. All of them may be .gz.

    Exit code: 0 written, 1 written, but `--check` finds a count that is not the paper's, 2 something cannot be read.

    Examples:

        hitin data rcv1 reuters --out rcv1 --check
        hitin data rcv1 reuters --ids training.txt --out rcv1
        hitin data rcv1 lyrl2004 --out rcv1-tokens --check --json
    """
    from hitin.datasets.files import check_folder_of_data
    from hitin.datasets.rcv1 import write_rcv1

    notes: list[str] = []
    with errors_as_json(as_json, notes=notes), file_progress() as advance:
        check_folder_of_data(out, overwrite=overwrite)
        written = write_rcv1(path, out, ids=ids, advance=advance, note=_noting(notes))
    title = "RCV1-v2: a story of Reuters to its topics"
    report(title, written, paper="rcv1" if check else None, notes=notes, as_json=as_json)


@data.command()
def nyt(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The folder of LDC2008T19, which has `data` in it.")],
    ids: Annotated[
        str | None,
        typer.Option(
            "--ids", metavar="FOLDER", help="The folder of three lists of articles: train, val and test. Needed."
        ),
    ] = None,
    out: options.OutFolder = "runs/nyt",
    overwrite: options.OverwriteFiles = False,
    labels: Annotated[
        str | None,
        typer.Option(
            "--labels",
            metavar="FILE",
            help="The labels, such as Top/News/Sports; without, the 166 that most training articles have.",
        ),
    ] = None,
    check: Check = False,
    as_json: options.AsJson = False,
) -> None:
    """Write NYTimes: an article to the sections it stood in on the Web, in splits that are listed.

    PATH is the New York Times Annotated Corpus of the LDC, its months packed (data/1987/01.tgz) or not. The lists
    name an article a line, as a path or a file's name (1987/01/25/0008401.xml); they are not part of the archive, nor
    is the paper's list of labels.

    Exit code: 0 written, 1 written, but `--check` finds a count that is not the paper's, 2 something cannot be read.

    Examples:

        hitin data nyt nyt_corpus --ids lists --labels nyt.taxonomy --out nyt --check
        hitin data nyt nyt_corpus --ids lists --out nyt
    """
    from hitin.datasets.files import check_folder_of_data
    from hitin.datasets.nyt import write_nyt

    notes: list[str] = []
    with errors_as_json(as_json, notes=notes), file_progress() as advance:
        check_folder_of_data(out, overwrite=overwrite)
        written = write_nyt(path, ids, out, labels=labels, advance=advance, note=_noting(notes))
    title = "NYTimes: an article to the sections it stood in on the Web"
    report(title, written, paper="nyt" if check else None, notes=notes, as_json=as_json)


def _noting(notes: list[str]) -> Callable[[str], None]:
    """Says what a person should know, and keeps it for the JSON."""

    def note(text: str) -> None:
        notes.append(text)
        say(f"note: {text}")

    return note


@data.command()
def arxiv(
    dump: Annotated[
        str, typer.Argument(metavar="DUMP", help="arxiv-metadata-oai-snapshot.json; also its .zip .gz .bz2 .xz .zst.")
    ],
    out: options.OutFolder = "runs/arxiv",
    overwrite: options.OverwriteFiles = False,
    single: Annotated[
        bool, typer.Option("--single", help="Only papers of one category; otherwise all, with every cross-list.")
    ] = False,
    documents: Annotated[
        int, typer.Option("--documents", min=0, help="How many papers, chosen by a hash of their ids; 0 for all.")
    ] = 46_985,
    least: Annotated[
        int, typer.Option("--least", min=1, help="Categories that fewer of the chosen papers have are left out.")
    ] = 20,
    as_json: options.AsJson = False,
) -> None:
    """Write arXiv: title and abstract of a paper to its categories, from a snapshot of arXiv's metadata.

    The snapshot is free (CC0), a paper a line; the zip of Kaggle need not be unpacked. With `--single` labels are
    archive > category, otherwise group > category, in physics group > archive > category. 64 % are for training, 16 %
    for validation, 20 % for test.

    Examples:

        hitin data arxiv arxiv-metadata-oai-snapshot.json --out arxiv
        hitin data arxiv archive.zip --single --out arxiv-single
        hitin data arxiv arxiv-metadata-oai-snapshot.json --documents 0 --least 100 --out arxiv-all
    """
    from hitin.datasets.arxiv import ArxivSettings, write_arxiv
    from hitin.datasets.files import check_folder_of_data

    settings = ArxivSettings(single, documents, least)
    with errors_as_json(as_json), file_progress() as progress:
        check_folder_of_data(out, overwrite=overwrite)
        written = write_arxiv(out, dump, settings, progress)
    found = sum(written.documents)
    notes = [f"{counted(found, 'paper')} may be chosen, where {documents:,} were asked for"] * (found < documents)
    warn(notes)
    report(f"arXiv: a paper to its {'category' if single else 'categories'}", written, notes=notes, as_json=as_json)


def report(
    title: str,
    files: "DataFiles",
    *,
    paper: "PaperSet | None" = None,
    further: "tuple[Comparison, ...]" = (),
    notes: Iterable[str] = (),
    is_doubtful: bool = False,
    as_json: bool = False,
) -> None:
    """Say what was written; and whether it is what the paper describes, by the exit code too, where it is named.

    `further` is what else is known of the set, beside what was found. `notes` were said before; JSON has them, too.
    """
    from hitin.datasets.files import show_files
    from hitin.datasets.table1 import compare_with_paper, show_comparison

    rows = (*compare_with_paper(paper, files), *further) if paper else ()
    if as_json:
        checked = {"check": [row.to_json() for row in rows]} if rows else {}
        typer.echo(json.dumps({**files.to_json(), "notes": [*notes], **checked}, indent=2))
    else:
        typer.echo(show_files(title, files))
        if paper:
            typer.echo(f"\n{show_comparison(paper, rows, is_doubtful=is_doubtful)}")
    if not all(row.agrees for row in rows):
        raise typer.Exit(DIFFERS)
