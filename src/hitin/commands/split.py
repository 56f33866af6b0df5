"""`hitin split`."""

import json
from typing import Annotated

import typer

from hitin.commands import options
from hitin.console import command, errors_as_json, file_progress


def split(
    documents: Annotated[list[str], typer.Argument(help="Files of documents: JSONL, CSV, TSV or Parquet.")],
    out: options.OutFolder,
    test: Annotated[float, typer.Option(help="The part that is put aside to score a model on.")] = 0.2,
    val: Annotated[
        float, typer.Option(help="The part that is put aside to choose by; usually `hitin train` does it by itself.")
    ] = 0.0,
    seed: Annotated[int, typer.Option(min=0, help="Another number draws other documents.")] = 0,
    text_key: options.TextKey = None,
    label_key: options.LabelKey = None,
    encoding: options.Encoding = None,
    overwrite: options.OverwriteFiles = False,
    as_json: options.AsJson = False,
) -> None:
    """Put documents aside before training, to score the model on: train.jsonl and test.jsonl out of your files.

    Drawn by chance, the same ones every time. Equal texts stay together, since scores on texts that were learnt say
    nothing. Labels are written as they stand.

    Examples:

        hitin split tickets.csv --out data
        hitin split tickets.csv --out data --test 0.3 --text-key body --label-key category
        hitin split 2023.jsonl 2024.jsonl --out data --test 0.1 --val 0.1 --seed 7
    """
    from hitin.documents import Keys
    from hitin.errors import counted, printable
    from hitin.splitting import Shares, write_splits

    with errors_as_json(as_json), file_progress() as progress:
        found = write_splits(
            documents,
            out,
            Shares(test, val, seed),
            keys=Keys(text_key, label_key),
            encoding=encoding,
            overwrite=overwrite,
            progress=progress,
        )
    if as_json:
        typer.echo(json.dumps({"documents": {str(path): count for path, count in found.items()}}, indent=2))
        return
    width = max(len(str(path)) for path in found)
    lines = [f"{path!s:<{width}}  {counted(count, 'document')}" for path, count in found.items()]
    lines += ["Next:", f"  {command('check', 'taxonomy.tsv', *map(str, found))}"]
    typer.echo("\n".join(printable(line, most=1000) for line in lines))
