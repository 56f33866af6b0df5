"""`hitin explain`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hitin.commands import options
from hitin.console import busy, errors_as_json, print_tables

if TYPE_CHECKING:
    from hitin.documents import Document
    from hitin.estimator import HierarchicalTextClassifier


def explain(
    model: options.ModelFolder,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT|FILES",
            help="A text; or files of texts: .txt (a text a line), JSONL, CSV, TSV or Parquet. None, or -: standard "
            "input. What has a blank in it and is no file is a text.",
        ),
    ] = None,
    text: Annotated[
        list[str] | None, typer.Option("--text", help="A text, whatever it looks like; again, more.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option("--label", "-l", help="A label to explain, in place of those that are given; again, more."),
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=1, metavar="N", help="Tell the N words with the greatest weights.")
    ] = None,
    deletions: Annotated[
        bool, typer.Option("--deletions", help="Try the explanations of all texts: leave words out and compare.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="What chance in --deletions begins with.")] = 0,
    threshold: options.Threshold = None,
    policy: options.Policy = None,
    k: options.K = None,
    stop: options.Stop = None,
    uncalibrated: options.Uncalibrated = False,
    format: Annotated[
        options.DocumentFormat, typer.Option(help="The format of the texts, where it is not recognised.")
    ] = options.DocumentFormat.auto,
    text_key: options.TextKey = None,
    encoding: options.Encoding = None,
    device: options.Device = options.DeviceName.auto,
    as_json: options.AsJson = False,
) -> None:
    """Show which words speak for a label, and which against it.

    The labels are those that the text is given, or the likeliest path where it is given none; --label asks for others.
    The weights of all words add up to the model's score of the label, less its score without any word; a label is as
    probable as not where the score is 0. Words are found by integrated gradients. --deletions tells how far to trust
    them: how often leaving out the top word lowers the label more than leaving out another. --json prints a line for
    each text.

    Examples:

        hitin explain model "the parcel is late"
        hitin explain model "the parcel is late" --label Delivery --top 3
        hitin explain model new.jsonl --json > reasons.jsonl
        hitin explain model test.jsonl --deletions
    """
    with errors_as_json(as_json and deletions):
        with busy("loading the model"):
            from hitin.answering import Texts
            from hitin.loading import Deciding, load_classifier

            _refuse_export(Path(model))
            deciding = Deciding(policy.value if policy else None, threshold, k, stop, uncalibrated)
            classifier = load_classifier(model, deciding, device=device.value)
        reading = Texts(classifier.taxonomy_, format.value, text_key, encoding)
        documents = _documents(reading, texts or [], text or [])
        if deletions:
            _try(classifier, documents, seed, as_json)
            return
        for document in documents:
            _show(classifier, document, label, top, as_json)


def _documents(reading: Any, given: list[str], texts: list[str]) -> "Iterator[Document]":
    """Texts that stand on the command line, and those of files or of standard input, in the order of the arguments."""
    from hitin.documents import Document

    yield from map(Document, texts)
    for each in given or ([] if texts else ["-"]):
        if any(map(str.isspace, each)) and not _is_file(each):
            yield Document(each)
        else:
            yield from _of_file(reading, each)


def _of_file(reading: Any, name: str) -> "Iterator[Document]":
    from hitin.errors import InputError

    try:
        for chunk in reading.chunks([name]):
            yield from chunk
    except InputError as error:
        if error.kind == "missing-file":
            error.remedy = f"{error.remedy} A text of one word is given with --text."
        raise


def _is_file(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):  # too long for a name, or what none can hold
        return False


def _show(
    classifier: "HierarchicalTextClassifier",
    document: "Document",
    labels: list[str] | None,
    top: int | None,
    as_json: bool,
) -> None:
    from hitin.explain import explain as explained
    from hitin.explain.view import USUAL_TOP, explanation_shown

    if as_json:
        record: dict[str, Any] = {} if document.id is None else {"id": document.id}
        found = explained(classifier, document.text, labels, most=top)
        typer.echo(json.dumps(record | {"explanations": [each.told for each in found]}))
        return
    for each in explained(classifier, document.text, labels):
        print_tables(*explanation_shown(each, document.text, top or USUAL_TOP), "")


def _try(classifier: "HierarchicalTextClassifier", documents: "Iterator[Document]", seed: int, as_json: bool) -> None:
    from hitin.explain.deletion import deletion_test
    from hitin.explain.view import deletions_table

    with busy("leaving out words"):
        found = deletion_test(classifier, (document.text for document in documents), seed=seed)
    if as_json:
        typer.echo(json.dumps(found.told, indent=2))
    else:
        print_tables(deletions_table(found))


def _refuse_export(folder: Path) -> None:
    """An exported model has no gradients. Where it lies in the folder of its model, that is named."""
    from hitin.errors import InputError
    from hitin.export.folder import is_export
    from hitin.model_folder import is_model

    if is_export(folder):
        known = f": hitin explain {folder.parent}" if is_model(folder.parent) else "."
        raise InputError(
            "an exported model cannot be explained",
            kind="no-explanation",
            file=str(folder),
            remedy=f"Name the folder of the model that it was made from{known}",
        )
