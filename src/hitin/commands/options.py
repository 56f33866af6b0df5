"""Options that several verbs have, in the same words. Nothing heavy is imported here."""

from enum import StrEnum
from typing import Annotated

import typer


class TaxonomyFormat(StrEnum):
    auto = "auto"
    hiagm = "hiagm"
    edges = "edges"
    json = "json"
    paths = "paths"


class DocumentFormat(StrEnum):
    auto = "auto"
    text = "text"
    jsonl = "jsonl"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"


class HomonymPolicy(StrEnum):
    merge = "merge"
    separate = "separate"


class TreeMethod(StrEnum):
    optimal = "optimal"
    paper = "paper"
    random = "random"
    taxonomy = "taxonomy"


class DeviceName(StrEnum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"
    mps = "mps"


class PrecisionName(StrEnum):
    auto = "auto"
    fp32 = "fp32"
    bf16 = "bf16"
    fp16 = "fp16"


class ResumePolicy(StrEnum):
    auto = "auto"
    never = "never"


class DecisionPolicy(StrEnum):
    raw = "raw"
    consistent = "consistent"
    top_down = "top-down"
    single_path = "single-path"
    top_k = "top-k"


class TunedPolicy(StrEnum):
    auto = "auto"
    raw = "raw"
    consistent = "consistent"
    top_down = "top-down"
    single_path = "single-path"
    top_k = "top-k"


class TunedThresholds(StrEnum):
    auto = "auto"
    fixed = "fixed"
    one = "one"
    level = "level"
    label = "label"


class TuneFor(StrEnum):
    mean = "mean"
    micro = "micro"
    macro = "macro"
    hierarchical = "hierarchical"


class CalibrationKind(StrEnum):
    auto = "auto"
    none = "none"
    temperature = "temperature"
    isotonic = "isotonic"


class BestBy(StrEnum):
    select = "select"
    micro = "micro"
    macro = "macro"


TaxonomyFile = Annotated[str, typer.Argument(help="The file of labels: TSV, CSV, JSON, or a path a line.")]
Format = Annotated[TaxonomyFormat, typer.Option(help="The taxonomy's format, where it is not recognised.")]
Separator = Annotated[str | None, typer.Option(help=r"What stands between the names of a path; \t is a tab.")]
LabelDelimiter = Annotated[
    str, typer.Option(help=r"What stands between several labels of a document in one text; \n is a line end.")
]
Root = Annotated[str, typer.Option(help="The name of the artificial root, which is no label.")]
Homonyms = Annotated[
    HomonymPolicy,
    typer.Option(help="The same name under two parents, in paths and JSON with nesting or ids: one label, or two."),
]
TextKey = Annotated[str | None, typer.Option(help="The key or column of the text, if not text, token or doc_token.")]
LabelKey = Annotated[
    str | None, typer.Option(help="The key or column of the labels, if not label, labels or doc_label.")
]
Encoding = Annotated[str | None, typer.Option(help="The encoding of the documents, if not UTF-8.")]
TaxonomyEncoding = Annotated[
    str | None, typer.Option(help="The encoding of the taxonomy, if neither UTF-8 nor that of the documents.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]


def named(folder: str | None) -> str | None:
    """A folder's name, which a variable of the shell that is not set leaves empty."""
    if folder == "":
        raise typer.BadParameter("the name of the folder is empty.")
    return folder


OutFolder = Annotated[str, typer.Option("--out", "-o", callback=named, help="The folder to write to; made if need be.")]
OverwriteFiles = Annotated[bool, typer.Option("--overwrite", help="Replace files of an earlier time.")]
ModelFolder = Annotated[str, typer.Argument(metavar="MODEL", help="The folder that `hitin train` wrote.")]
Device = Annotated[DeviceName, typer.Option(help="Where to compute; auto takes a GPU if there is one.")]
Threshold = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="The probability above which a label is given, if not what was tuned."),
]
Policy = Annotated[
    DecisionPolicy | None,
    typer.Option(
        help="How labels are chosen, if not as was tuned: those above the threshold (raw); the likeliest set that "
        "holds all ancestors (consistent); from the top down; one path to a lowest label; the k most probable and "
        "their ancestors."
    ),
]
K = Annotated[int | None, typer.Option("--k", min=1, help="How many labels the policy top-k gives.")]
Stop = Annotated[
    float | None,
    typer.Option(min=0, max=1, help="Give no label less probable than this, nor what is below it: its parent instead."),
]

Uncalibrated = Annotated[
    bool,
    typer.Option(
        "--uncalibrated",
        help="Take the model's own probabilities, at 0.5 unless --threshold says otherwise: with --policy raw it is "
        "what papers do.",
    ),
]
