"""`Report`: all that a report says, as a page, as JSON and as a table of the labels."""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hitin import __version__
from hitin.cells import csv_line, whole_characters
from hitin.errors import InputError
from hitin.files import is_same
from hitin.metrics import Counts, Difference, Scores
from hitin.model_folder import MANIFEST
from hitin.pages import safe_json
from hitin.report.confusions import Confusion
from hitin.report.examples import Example
from hitin.taxonomy import Taxonomy
from hitin.writing import check_writable, replacing


@dataclass(frozen=True)
class About:
    """What was evaluated, in words for the head of the page."""

    model: str
    method: str = ""
    encoder: str = ""
    decisions: str = ""
    """A sentence: how probabilities become labels."""
    files: tuple[str, ...] = ()
    made_by: str = f"hitin {__version__}"


@dataclass(frozen=True)
class BaselineScores:
    """What another model scores on the same documents, and by how much this one is better (`metrics.differences`)."""

    name: str
    scores: Scores
    differences: Mapping[str, Difference] | None = None

    def to_json(self) -> dict[str, Any]:
        differences = {name: difference.to_json() for name, difference in (self.differences or {}).items()}
        return {"name": self.name, "scores": self.scores.to_json(), "differences": differences}


@dataclass(frozen=True)
class LabelRow:
    """How one label did. What is not known is `None`: recall and F1 without documents, precision if never given."""

    label: str
    level: int
    parents: list[str]
    documents: int
    given: int
    right: int
    precision: float | None
    recall: float | None
    f1: float | None
    training_documents: int | None


@dataclass(frozen=True, eq=False)
class Report:
    """Made by `ReportBuilder.finish`; `write` puts it into files."""

    taxonomy: Taxonomy
    about: About
    scores: Scores
    baselines: tuple[BaselineScores, ...]
    counts: Counts
    train_counts: NDArray[np.int64] | None
    reliability: Mapping[str, Any] | None
    confusions: list[Confusion]
    """The most frequent ones first."""
    confused_pairs: int
    """How many there are in all."""
    worst: list[Example]
    surprising: list[Example]

    @cached_property
    def labels(self) -> list[LabelRow]:
        """A row a label, in the order of the taxonomy."""
        names, levels = self.taxonomy.labels, self.taxonomy.levels.tolist()
        right, given, actual = (
            column.tolist() for column in (self.counts.true_positives, self.counts.predicted, self.counts.actual)
        )
        training = [None] * len(names) if self.train_counts is None else self.train_counts.tolist()
        return [
            LabelRow(
                label=names[number],
                level=levels[number],
                parents=[names[parent] for parent in self.taxonomy.parents(number)],
                documents=actual[number],
                given=given[number],
                right=right[number],
                precision=right[number] / given[number] if given[number] else None,
                recall=right[number] / actual[number] if actual[number] else None,
                f1=2 * right[number] / (given[number] + actual[number]) if actual[number] else None,
                training_documents=training[number],
            )
            for number in range(len(names))
        ]

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain values."""
        names = self.taxonomy.labels
        return {
            "about": asdict(self.about),
            "scores": self.scores.to_json(),
            "baselines": [baseline.to_json() for baseline in self.baselines],
            "labels": [asdict(row) for row in self.labels],
            "reliability": self.reliability,
            "confusions": [
                {
                    "parent": None if parent is None else names[parent],
                    "label": names[label],
                    "given_instead": names[instead],
                    "documents": documents,
                    "share": documents / self.labels[label].documents,
                }
                for parent, label, instead, documents in self.confusions
            ],
            "confused_pairs": self.confused_pairs,
            "documents": {
                "worst": [example.to_json(names) for example in self.worst],
                "most_surprising": [example.to_json(names) for example in self.surprising],
            },
        }

    def to_csv(self) -> str:
        """A table of the labels; several parents of a label are joined with a bar."""
        rows = [{**asdict(row), "parents": " | ".join(row.parents)} for row in self.labels]
        return whole_characters("".join(map(csv_line, (rows[0], *(row.values() for row in rows)))))

    def to_html(self) -> str:
        """One page that loads nothing else."""
        from hitin.report.page import to_html

        return to_html(self)

    def write(self, path: str | Path) -> list[Path]:
        """Write `out.html`, and beside it `out.report.json` and `out.labels.csv`: all, or none if one cannot be."""
        paths = report_files(path, self.about.files)
        texts = (self.to_html(), safe_json(self.to_json(), indent=1) + "\n", self.to_csv())
        with ExitStack() as stack:
            parts = [stack.enter_context(replacing(file)) for file in paths]
            for part, text in zip(parts, texts, strict=True):
                part.write_text(text, encoding="utf-8", newline="\n")
        return paths


def report_files(path: str | Path, documents: Iterable[str | Path] = ()) -> list[Path]:
    """The files that a report called `path` is written to; an `InputError` if they cannot be, before long work.

    A report never takes the place of the `documents` it is about, nor stands among the files of a model.
    """
    page = Path(path)
    if page.suffix.lower() not in (".html", ".htm"):
        raise _no_report(page, "a report is a page, whose name ends in .html", "Its numbers are written beside it.")
    if (page.parent / MANIFEST).exists():
        raise _no_report(page, "this folder holds a model", "Choose another folder for the report.")
    files = [page, *(page.with_suffix(ending) for ending in (".report.json", ".labels.csv"))]
    for file in files:
        check_writable(file)
        if any(is_same(file, other) for other in documents):
            raise _no_report(file, "the report would replace the documents it is about", "Choose another name for it.")
    return files


def _no_report(path: Path, problem: str, remedy: str) -> InputError:
    return InputError(problem, kind="bad-option", file=str(path), remedy=remedy)
