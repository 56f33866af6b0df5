"""The paper's Table 1, and whether the files of a data set are what it describes."""

from dataclasses import dataclass
from typing import Literal

from hitin.datasets.files import DataFiles

PaperSet = Literal["wos", "rcv1", "nyt"]


@dataclass(frozen=True)
class PaperCounts:
    """A row of Table 1, as it is printed."""

    title: str
    labels: int
    labels_a_document: str
    depth: int
    train: int
    dev: int
    test: int


TABLE_1: dict[PaperSet, PaperCounts] = {
    "wos": PaperCounts("WOS", 141, "2.0", 2, 30_070, 7_518, 9_397),
    "rcv1": PaperCounts("RCV1-v2", 103, "3.24", 4, 20_833, 2_316, 781_265),
    "nyt": PaperCounts("NYTimes", 166, "7.6", 8, 23_345, 5_834, 7_292),
}


@dataclass(frozen=True)
class Comparison:
    """A count of the paper beside what was found."""

    what: str
    paper: str
    found: str

    @property
    def agrees(self) -> bool:
        return self.paper == self.found

    def to_json(self) -> dict[str, object]:
        return {"what": self.what, "paper": self.paper, "found": self.found, "agrees": self.agrees}


def compare_with_paper(name: PaperSet, files: DataFiles) -> tuple[Comparison, ...]:
    """Each count of the paper's Table 1 beside that of the files, with as many digits as are printed there."""
    paper = TABLE_1[name]
    digits = len(paper.labels_a_document.partition(".")[2])
    train, val, test = files.documents
    return (
        Comparison("labels", f"{paper.labels}", f"{sum(files.labels)}"),
        Comparison("labels a document", paper.labels_a_document, f"{files.labels_a_document:.{digits}f}"),
        Comparison("depth", f"{paper.depth}", f"{len(files.labels)}"),
        Comparison("training documents", f"{paper.train:,}", f"{train:,}"),
        Comparison("validation documents", f"{paper.dev:,}", f"{val:,}"),
        Comparison("test documents", f"{paper.test:,}", f"{test:,}"),
    )


def show_comparison(name: PaperSet, rows: tuple[Comparison, ...], *, is_doubtful: bool = False) -> str:
    """The counts in columns, each with a yes or no, and a last line that sums it up.

    Counts do not see everything: `is_doubtful` where there were warnings besides.
    """
    table = [(f"Table 1, {TABLE_1[name].title}", "paper", "found", "the same")]
    table += [(row.what, row.paper, row.found, "yes" if row.agrees else "NO") for row in rows]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = [
        f"{what:<{widths[0]}}  {paper:>{widths[1]}}  {found:>{widths[2]}}  {same}" for what, paper, found, same in table
    ]
    differ = [row.what for row in rows if not row.agrees]
    said = f"Not what the paper describes: {', '.join(differ)}." if differ else "Every count is that of the paper."
    said += " But there are warnings, which are of what no count tells." if is_doubtful and not differ else ""
    return "\n".join([*lines, said])
