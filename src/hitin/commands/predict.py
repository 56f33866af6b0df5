"""`hitin predict`."""

import sys
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from hitin.commands import bulk, options
from hitin.commands.runtimes import Runtime, RuntimeName
from hitin.console import busy, file_progress, person_watches, say


def predict(
    model: options.ModelFolder,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILES",
            help="Files of texts: .txt (a text a line), JSONL, CSV, TSV or Parquet; or folders of them. None, or -: "
            "standard input.",
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", help="A file to write instead of standard output; for folders, a folder."),
    ] = None,
    top: Annotated[int, typer.Option("--top", min=0, metavar="K", help="Tell the K most probable labels besides.")] = 0,
    all_scores: Annotated[
        bool, typer.Option("--all-scores", help="Tell the probabilities of all labels, not only of those given.")
    ] = False,
    with_text: Annotated[bool, typer.Option("--with-text", help="Repeat the text in the answer.")] = False,
    deepest: Annotated[
        bool, typer.Option("--deepest", help="Give only the deepest label of each path, not its ancestors.")
    ] = False,
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
    runtime: Runtime = RuntimeName.auto,
    engine: bulk.Engine = None,
    address: bulk.Address = None,
    workers: bulk.Workers = None,
    to: bulk.To = bulk.AnswerFormatName.auto,
    overwrite: bulk.Overwrite = False,
) -> None:
    """Give texts their labels: a line of JSON for each, in the order of the input.

    Standard input is a text a line, or JSON lines if the first one begins with {. Each answer has the labels from the
    top down, the paths to the deepest of them, and their probabilities; and the id of a document that has one. How
    labels are chosen was tuned at the end of training; --stop 0.5 ends each path above the first label less probable.

    Every file of a folder becomes a file of answers in the folder --out. The same command again does only what is not
    finished. Exit code: 0 all answered, 1 some files of a folder were wrong, 2 something concerns all.

    Examples:

        echo "the parcel is late" | hitin predict model
        hitin predict model new.jsonl --top 3 > labels.jsonl
        hitin predict model new.csv --text-key body --out labels.jsonl.gz
        hitin predict model new.jsonl --policy single-path --stop 0.5 --deepest
        hitin predict model new.jsonl --policy consistent --threshold 0.3
        hitin predict model new.jsonl --runtime onnx-int8
        hitin predict model documents/ --out answers/
        hitin predict model documents/ --out answers/ --engine ray --workers 4
    """
    wanted = files or ["-"]
    with busy("loading the model"):
        from hitin.loading import Deciding, load_classifier
    deciding = Deciding(policy.value if policy else None, threshold, k, stop, uncalibrated)
    if engine is not None or any(Path(file).is_dir() for file in wanted):
        from hitin.bulk import Request

        request = Request(
            model,
            deciding,
            top,
            all_scores,
            with_text,
            deepest,
            format.value,
            text_key,
            encoding,
            to.value,
            runtime.value,
            device.value,
        )
        bulk.predict_folders(request, wanted, out, engine, address, workers, overwrite)
        return
    bulk.refuse_options(address, workers, to, overwrite)
    with busy("loading the model"):
        from hitin.answering import Texts, answer_lines, check_answers_file
        from hitin.answers import Answers
        from hitin.writing import write_text

        if out is not None:
            check_answers_file(out, wanted)
        classifier = load_classifier(model, deciding, device=device.value, runtime=runtime.value)
    if "-" in wanted and sys.stdin is not None and sys.stdin.isatty() and person_watches():
        say("Write a text a line; Ctrl-D ends.")
    texts = Texts(classifier.taxonomy_, format.value, text_key, encoding)
    answers = Answers(classifier, top, all_scores, with_text, deepest)
    answers_scroll = out is None and sys.stdout is not None and sys.stdout.isatty()
    with file_progress(not answers_scroll) as progress:
        shown_in = "utf-8" if out is not None else getattr(sys.stdout, "encoding", None) or "utf-8"
        with closing(answer_lines(texts.chunks(wanted, progress), answers, shown_in)) as told:
            if out is not None:
                write_text(out, told)
                return
            for lines in told:
                typer.echo(lines, nl=False)  # which flushes
