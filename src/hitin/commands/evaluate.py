"""`hitin evaluate`."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from hitin.commands import options
from hitin.commands.console import busy, errors_as_json, file_progress, print_tables
from hitin.errors import printable


def evaluate(
    model: options.ModelFolder,
    documents: Annotated[
        list[str], typer.Argument(metavar="DOCUMENTS", help="Files of labelled documents, scored together.")
    ],
    threshold: options.Threshold = None,
    policy: options.Policy = None,
    best: Annotated[
        options.BestBy | None,
        typer.Option(help="The weights of the epoch with the best micro-F1 or macro-F1, in place of the model's."),
    ] = None,
    device: options.Device = options.DeviceName.auto,
    text_key: options.TextKey = None,
    label_key: options.LabelKey = None,
    encoding: options.Encoding = None,
    as_json: options.AsJson = False,
) -> None:
    """Score a model on labelled documents: F1, precision and recall, over all and by level.

    Precision and recall are over all decisions, as micro-F1 is; macro-F1 is the mean over labels, where a label that
    no document has counts zero.

    Examples:

        hitin evaluate model test.jsonl
        hitin evaluate model test.csv --threshold 0.3
        hitin evaluate model test.jsonl --policy raw --json > scores.json
    """
    with errors_as_json(as_json):
        with busy("loading the model"):
            from hitin.commands.labelled import Reading
            from hitin.commands.models import load_classifier
            from hitin.commands.scoring import evaluate_files, score_tables

            classifier = load_classifier(
                model,
                device=device.value,
                policy=policy.value if policy else None,
                threshold=threshold,
                best=best.value if best else None,
            )
        reading = Reading(encoding=encoding, text_key=text_key, label_key=label_key)
        with file_progress() as progress:
            scores = evaluate_files(classifier, documents, reading, progress)
    if as_json:
        typer.echo(
            json.dumps({"model": model, "decisions": asdict(classifier.decisions_), **scores.to_json()}, indent=2)
        )
    else:
        print_tables(*score_tables(scores, classifier.decisions_, printable(model, most=400)))
