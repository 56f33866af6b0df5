"""`hitin taxonomy`."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from hitin.commands import options
from hitin.console import command, errors_as_json, file_progress, warn
from hitin.names import unescaped

if TYPE_CHECKING:
    from hitin.files import FileProgress
    from hitin.label_paths import LabelPaths
    from hitin.labelled import Reading
    from hitin.taxonomy import Taxonomy


def taxonomy(
    documents: Annotated[
        list[str],
        typer.Argument(help="Files of documents whose labels are paths: JSONL, CSV, TSV or Parquet."),
    ],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="The taxonomy to write: .tsv, .csv or .json.")
    ] = "taxonomy.tsv",
    homonyms: Annotated[
        options.HomonymPolicy | None,
        typer.Option(
            help="The same name in two places: one label with two parents, or two, called by their paths. Usually two."
        ),
    ] = None,
    separator: options.Separator = None,
    label_delimiter: options.LabelDelimiter = "|",
    root: options.Root = "Root",
    text_key: options.TextKey = None,
    label_key: options.LabelKey = None,
    encoding: options.Encoding = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a taxonomy that is another one.")] = False,
    as_json: options.AsJson = False,
) -> None:
    """Make a taxonomy out of documents whose labels are paths, such as Device > Battery.

    For those who have documents and no file of the tree. Look at what was written, and change it as you like: a line
    has a parent and its children, with tabs in between.

    Examples:

        hitin taxonomy tickets.csv --out taxonomy.tsv
        hitin taxonomy train.jsonl test.jsonl --label-key category --separator /
        hitin taxonomy tickets.csv --separator / --label-delimiter ";"
    """
    from hitin.label_paths import LabelPaths
    from hitin.labelled import Reading
    from hitin.writing import check_not_read

    reading = Reading(
        separator=unescaped(separator),
        delimiter=unescaped(label_delimiter),
        root=root,
        encoding=encoding,
        text_key=text_key,
        label_key=label_key,
    )

    with errors_as_json(as_json):
        check_not_read(out, documents)
        paths = LabelPaths(separator=reading.separator, delimiter=reading.delimiter, root=root)
        with file_progress() as progress:
            count = _collect(paths, documents, reading, progress)
        policy = homonyms.value if homonyms else paths.policy()
        found = paths.taxonomy(policy)
        warn(_doubts(paths))
        _write(found, out, root, overwrite)
    if as_json:
        facts = {"taxonomy": out, "documents": count, "labels": len(found), "levels": list(found.level_sizes)}
        typer.echo(json.dumps(facts | {"homonyms": paths.homonyms()}, indent=2))
    else:
        typer.echo(_show(found, count, [out, *documents, *reading.options], paths.homonyms(), policy))


def _collect(paths: "LabelPaths", files: list[str], reading: "Reading", progress: "FileProgress | None") -> int:
    """Read the labels of all documents; how many documents there are."""
    from hitin.documents import documents_of
    from hitin.inputs import no_documents

    count = 0
    for document in documents_of(files, reading.keys, encoding=reading.encoding, progress=progress):
        paths.add(document.labels, document.file, document.line)
        count += 1
    if not count:
        raise no_documents(files)
    return count


def _write(found: "Taxonomy", out: str, root: str, overwrite: bool) -> None:
    """Write the taxonomy, but not over another one, which may hold a person's work."""
    from hitin.errors import InputError
    from hitin.files import is_there
    from hitin.taxonomy import Taxonomy

    if is_there(out) and not overwrite:
        try:
            is_same = Taxonomy.read(out, root=root) == found
        except InputError:
            is_same = False
        if not is_same:
            raise InputError(
                "there is another file of this name",
                kind="file-exists",
                file=out,
                remedy="Choose another name, or replace the file with --overwrite.",
            )
    found.write(out, root=root)


def _doubts(paths: "LabelPaths") -> Iterator[str]:
    """What may be another tree than was meant."""
    from hitin.errors import counted, printable, shown
    from hitin.names import PATH_SEPARATOR

    for label, names in list(paths.other_marks().items())[:1]:
        count = f"{counted(len(paths.other_marks()), 'label has', 'labels have')} another mark than the rest"
        remedy = "Where that is one name, say with --separator what stands between the names of paths."
        yield f"{count}: {shown(label)} is read as {printable(PATH_SEPARATOR.join(names))}. {remedy}"
    if run_together := paths.run_together():
        count = f"{counted(len(run_together), 'path looks', 'paths look')} like several labels"
        remedy = "Put | between the labels of a document, or name what stands there with --label-delimiter."
        yield f"{count}, such as {shown(run_together[0])}. {remedy}"


def _show(found: "Taxonomy", count: int, words: list[str], homonyms: list[str], policy: str) -> str:
    """A few lines for people; `words` are what the next command is told."""
    from hitin.errors import counted, listed, printable

    levels = ", ".join(f"{size:,} on level {level}" for level, size in enumerate(found.level_sizes, start=1))
    lines = [
        f"{printable(words[0], most=1000)}: {counted(len(found), 'label')} of {counted(count, 'document')} ({levels})"
    ]
    if homonyms:
        called = "labels are called by their paths" if policy == "separate" else "each is one label"
        lines.append(f"  in several places: {listed(homonyms, most=3)}; {called}")
    return "\n".join([*lines, "Next:", f"  {printable(command('check', *words), most=1000)}"])
