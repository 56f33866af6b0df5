"""`hitin train`."""

import json
from contextlib import nullcontext
from typing import Annotated

import typer

from hitin.commands import options
from hitin.console import errors_as_json, file_progress, warn
from hitin.names import unescaped


def train(
    taxonomy: options.TaxonomyFile,
    documents: Annotated[
        list[str],
        typer.Argument(metavar="TRAIN", help="Files of training documents: JSONL, CSV, TSV or Parquet."),
    ],
    out: Annotated[
        str,
        typer.Option(
            "--out", "-o", metavar="MODEL", callback=options.named, help="The folder of the model; made if need be."
        ),
    ],
    val: Annotated[
        list[str] | None,
        typer.Option(help="A file of validation documents, by which the best epoch is chosen; may be given again."),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(
            help="hitin (the default); hiagm-tp, hiagm-la, htcinfomax, himatch, hgclr, of other papers; flat, which "
            "knows nothing of the hierarchy; linear, of words and no network."
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline",
            metavar="METHOD",
            help="A method to train besides on the same documents, such as linear; for evaluate.",
        ),
    ] = None,
    encoder: Annotated[
        str | None,
        typer.Option(help="textrcnn (the default); bag, for short texts; or a Hugging Face model's name or folder."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="Settings by name, such as wos-glove, or from a TOML file.")
    ] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="At most so many times over the documents.")] = None,
    batch_size: Annotated[int | None, typer.Option(min=1, help="Documents in a batch.")] = None,
    learning_rate: Annotated[float | None, typer.Option(help="The highest learning rate.")] = None,
    height: Annotated[int | None, typer.Option("--height", "-k", min=1, help="The height of the coding tree.")] = None,
    vectors: Annotated[str | None, typer.Option(help="A file of word vectors to begin with.")] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Where all chance comes from.")] = None,
    precision: Annotated[options.PrecisionName | None, typer.Option(help="The precision of the numbers.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting of a run; may be given again."),
    ] = None,
    device: options.Device = options.DeviceName.auto,
    resume: Annotated[
        options.ResumePolicy, typer.Option(help="Go on with a training that was interrupted, or begin anew.")
    ] = options.ResumePolicy.auto,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a finished model.")] = False,
    launch: Annotated[
        int,
        typer.Option(
            "--launch",
            metavar="N",
            min=1,
            help="Train in so many processes on this machine, a GPU each or a share of the cores.",
        ),
    ] = 1,
    format: options.Format = options.TaxonomyFormat.auto,
    separator: options.Separator = None,
    label_delimiter: options.LabelDelimiter = "|",
    root: options.Root = "Root",
    homonyms: options.Homonyms = options.HomonymPolicy.merge,
    text_key: options.TextKey = None,
    label_key: options.LabelKey = None,
    encoding: options.Encoding = None,
    taxonomy_encoding: options.TaxonomyEncoding = None,
    as_json: options.AsJson = False,
) -> None:
    """Train a classifier on documents and a taxonomy, which hitin taxonomy makes where labels are paths.

    Without --val a part of the documents is held out. On these the best epoch is chosen, and at the end how labels
    are chosen from scores (see hitin tune). Ctrl-C loses nothing: the same command goes on where it stopped (linear,
    which takes a minute or two, begins anew). The folder holds the model, its card (README.md) and the training's log.

    Examples:

        hitin train taxonomy.tsv train.jsonl --val val.jsonl --out model
        hitin train taxonomy.tsv train.jsonl --out model --epochs 10 --seed 1 --baseline linear
        hitin train taxonomy.tsv train.csv --out model --encoder bert-base-uncased --batch-size 16
        hitin train taxonomy.tsv train.jsonl --out model --preset my.toml --set dropout=0.2 --set select=macro
        hitin train taxonomy.tsv train.jsonl --out model --launch 2
    """
    from hitin.commands import training
    from hitin.commands.together import together
    from hitin.devices import is_main_process
    from hitin.display import watching
    from hitin.labelled import Reading, check_read_by_all, read_data
    from hitin.option_values import parse_option
    from hitin.watcher import Watcher

    if launch > 1:
        with errors_as_json(as_json):
            check_read_by_all([taxonomy, *documents, *(val or ()), *filter(None, (preset, vectors))])
            raise typer.Exit(training.launch(launch, out, device.value))

    chosen: dict[str, object] = {
        "method": method,
        "encoder": encoder,
        "preset": preset,
        "epochs": epochs,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "height": height,
        "vectors": vectors,
        "seed": seed,
        "precision": precision.value if precision else None,
    }
    reading = Reading(
        format=format.value,
        separator=unescaped(separator),
        delimiter=unescaped(label_delimiter),
        root=root,
        homonyms=homonyms.value,
        encoding=encoding,
        taxonomy_encoding=taxonomy_encoding,
        text_key=text_key,
        label_key=label_key,
    )
    with errors_as_json(as_json), together(device.value):
        speaks = is_main_process()
        chosen |= dict(map(parse_option, settings or ()))
        task = training.prepare(out, overwrite=overwrite, device=device.value, options=chosen, baselines=baseline or ())
        with file_progress(speaks) as progress:
            data = read_data(taxonomy, documents, val or (), reading, progress)
        warn(data.warnings if speaks else ())
        try:
            with watching() if speaks else nullcontext(Watcher()) as watcher:
                trained = training.train_model(task, data, resume=resume.value, watcher=watcher)
        except KeyboardInterrupt:
            training.leave(out)
    if speaks:
        typer.echo(json.dumps(trained.to_json(), indent=2) if as_json else training.show_trained(trained))
