"""`hitin evaluate`."""

import json
from typing import Annotated

import typer

from hitin.commands import options
from hitin.commands.runtimes import Runtime, RuntimeName
from hitin.console import busy, errors_as_json, file_progress, print_tables, say
from hitin.names import unescaped


def evaluate(
    model: options.ModelFolder,
    documents: Annotated[
        list[str], typer.Argument(metavar="DOCUMENTS", help="Files of labelled documents, scored together.")
    ],
    report: Annotated[
        str | None,
        typer.Option(
            "--report", metavar="FILE.html", help="Write a page with all there is to see; JSON and CSV beside it."
        ),
    ] = None,
    threshold: options.Threshold = None,
    policy: options.Policy = None,
    k: options.K = None,
    stop: options.Stop = None,
    uncalibrated: options.Uncalibrated = False,
    baseline: Annotated[
        list[str] | None,
        typer.Option("--baseline", metavar="MODEL", help="Another model to score beside this one; may be given again."),
    ] = None,
    no_baseline: Annotated[
        bool, typer.Option("--no-baseline", help="Leave out the baselines that were trained with the model.")
    ] = False,
    best: Annotated[
        options.BestBy | None,
        typer.Option(help="The weights of the epoch with the best micro-F1 or macro-F1, in place of the model's."),
    ] = None,
    device: options.Device = options.DeviceName.auto,
    runtime: Runtime = RuntimeName.auto,
    separator: options.Separator = None,
    label_delimiter: options.LabelDelimiter = "|",
    text_key: options.TextKey = None,
    label_key: options.LabelKey = None,
    encoding: options.Encoding = None,
    as_json: options.AsJson = False,
) -> None:
    """Score a model on labelled documents: over all, by level, along paths; each score with its 95 % interval.

    Precision and recall are over all decisions, as micro-F1 is; macro-F1 is the mean over labels, where a label that
    no document has counts zero. Hierarchical scores add the ancestors of what was given. Baselines that were trained
    with the model (hitin train --baseline linear) stand beside it, on the same documents.

    Examples:

        hitin evaluate model test.jsonl
        hitin evaluate model test.jsonl --report report.html
        hitin evaluate model test.csv --policy consistent --threshold 0.3
        hitin evaluate model test.jsonl --policy raw --uncalibrated
        hitin evaluate model test.jsonl --baseline other-model --json > scores.json
        hitin evaluate model test.jsonl --runtime onnx-int8
    """
    with errors_as_json(as_json):
        with busy("loading the model"):
            from hitin.commands import scoring
            from hitin.labelled import Reading
            from hitin.loading import Deciding, load_classifier
            from hitin.report import report_files

            if report is not None:
                report_files(report, documents)
            deciding = Deciding(policy.value if policy else None, threshold, k, stop, uncalibrated)
            classifier = load_classifier(
                model, deciding, device=device.value, best=best.value if best else None, runtime=runtime.value
            )
            others = scoring.load_baselines(model, baseline or (), device=device.value, own=not no_baseline)
            for other in others.values():
                other.decisions_ = deciding.changed(other.decisions_)
        reading = Reading(
            separator=unescaped(separator),
            delimiter=unescaped(label_delimiter),
            encoding=encoding,
            text_key=text_key,
            label_key=label_key,
        )
        with file_progress() as progress:
            found = scoring.evaluate_files(
                classifier, documents, reading, progress, baselines=others, wants_report=report is not None
            )
    if as_json:
        typer.echo(json.dumps({"model": model, **found.to_json()}, indent=2))
    else:
        print_tables(*scoring.score_tables(found, model))
    if report is not None:  # last: a disk without room for it loses no scores
        written = found.write_report(report, model, documents)
        say(f"the report is in {', '.join(map(str, written))}")
