"""`hitin tune`."""

import json
from typing import Annotated

import typer

from hitin.commands import options
from hitin.console import busy, errors_as_json, file_progress, print_tables, say, warn
from hitin.names import unescaped


def tune(
    model: options.ModelFolder,
    documents: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DOCUMENTS",
            help="Files of labelled documents that the model was not trained on. None: the validation documents of "
            "its training, whose scores it keeps.",
        ),
    ] = None,
    policy: Annotated[
        options.TunedPolicy, typer.Option(help="The policy; auto tries all and takes the best, but never raw.")
    ] = options.TunedPolicy.auto,
    thresholds: Annotated[
        options.TunedThresholds,
        typer.Option(
            help="One threshold, one a level, one a label, or fixed where the model says 0.5; auto takes the best."
        ),
    ] = options.TunedThresholds.auto,
    tune_for: Annotated[
        options.TuneFor,
        typer.Option("--for", help="The F1 to tune for; mean is that of micro and macro."),
    ] = options.TuneFor.mean,
    precision: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="In place of F1: the most recall with this precision, above 0; 1: no wrong label."
        ),
    ] = None,
    calibration: Annotated[
        options.CalibrationKind,
        typer.Option(
            help="How logits become probabilities. With none, a label may be more probable than its parents; auto "
            "takes the better of the others."
        ),
    ] = options.CalibrationKind.auto,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the table; leave the model as it is.")] = False,
    device: options.Device = options.DeviceName.auto,
    separator: options.Separator = None,
    label_delimiter: options.LabelDelimiter = "|",
    text_key: options.TextKey = None,
    label_key: options.LabelKey = None,
    encoding: options.Encoding = None,
    as_json: options.AsJson = False,
) -> None:
    """Choose anew how a model decides: policy, thresholds and calibration. Nothing is trained.

    Training does this at its end. The table shows what each way gives on the documents: "tuned" where it was tuned on
    them, "held out" where each fifth was decided by what was tuned on the others, by which the best is chosen; with
    --precision among those that have it. The first row is as in papers: each label above 0.5, uncalibrated. The choice
    is written into decisions.json of the model.

    Examples:

        hitin tune model
        hitin tune model val.jsonl --for macro
        hitin tune model val.jsonl --precision 0.9
        hitin tune model val.jsonl --policy top-down --thresholds level --dry-run
    """
    with errors_as_json(as_json):
        with busy("loading the model"):
            from hitin.commands import tuning
            from hitin.decisions import DecisionSettings
            from hitin.display import watching
            from hitin.errors import InputError
            from hitin.labelled import Reading
            from hitin.loading import load_classifier
            from hitin.writing import check_writable

            if precision == 0:
                raise InputError("the wished precision is 0", kind="bad-option", remedy="It is above 0 and at most 1.")
            settings = DecisionSettings(
                policy=policy.value,
                thresholds=thresholds.value,
                tune_for=tune_for.value,
                wished_precision=precision or 0.0,
                calibration=calibration.value,
            )
            classifier = load_classifier(model, device=device.value)
            if not dry_run:
                check_writable(tuning.decisions_file(model))
        reading = Reading(
            separator=unescaped(separator),
            delimiter=unescaped(label_delimiter),
            encoding=encoding,
            text_key=text_key,
            label_key=label_key,
        )
        with file_progress() as progress:
            held = tuning.read_documents(classifier, documents or (), reading, progress)
        with watching() as watcher:
            tuned = tuning.tune_model(classifier, held, settings, model, watcher)
        if not dry_run:
            tuning.save_decisions(classifier, model)
    warn(tuning.warnings_of(tuned))
    if as_json:
        typer.echo(json.dumps({"model": model, "decisions": tuned.decisions.describe(), **tuned.to_json()}, indent=2))
    else:
        print_tables(*tuning.tuning_tables(tuned))
    if not dry_run:
        say(f"written to {tuning.decisions_file(model)}")
