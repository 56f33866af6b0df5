"""The files of results: Markdown, CSV, LaTeX and a page."""

from collections.abc import Iterable
from pathlib import Path

from hitin.compare.cells import Cell, Plan
from hitin.compare.formats import to_latex, to_markdown
from hitin.compare.listing import to_csv
from hitin.compare.page import to_html
from hitin.compare.results import gather
from hitin.compare.statistics import RESAMPLES
from hitin.report.embedding import no_surrogates
from hitin.writing import write_text

FILES = {"tables.md": to_markdown, "tables.csv": to_csv, "tables.tex": to_latex, "index.html": to_html}


def write_results(plan: Plan, cells: Iterable[Cell], folder: str | Path, *, resamples: int = RESAMPLES) -> list[Path]:
    """Write all that the finished cells tell into the folder; the same results give the same files, to the byte."""
    results = gather(plan, cells, Path(folder), resamples=resamples)
    texts = {Path(folder) / name: no_surrogates(written(results)) for name, written in FILES.items()}
    for path, text in texts.items():
        write_text(path, [text])
    return list(texts)
