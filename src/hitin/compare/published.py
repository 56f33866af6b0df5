"""The paper's own numbers, to stand beside ours; they are never part of statistics."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from hitin.compare.statistics import METRICS

TABLES = ("textrcnn", "bert")
"""What a table of ours may stand beside: tables 2 and 3 of the paper."""
ABLATION = "ablation"
"""Its table 4, which goes with `textrcnn`."""
AVERAGE = "average"


@dataclass(frozen=True)
class PublishedRow:
    """A row of the paper; scores in percent by data set, those it has."""

    title: str
    method: str
    """The name of the method, or of the ablation, in this package."""
    scores: Mapping[str, Mapping[str, float]]

    def score(self, data: str | None, metric: str) -> float | None:
        """As a part of one; `None` where the paper has none."""
        found = self.scores.get(data or "")
        return None if found is None else round(found[metric] / 100, 6)


@dataclass(frozen=True)
class PublishedTable:
    title: str
    rows: tuple[PublishedRow, ...]


def published_table(name: str) -> PublishedTable:
    """`textrcnn`, `bert` or `ablation`."""
    found = _paper()[name]
    return PublishedTable(found["title"], tuple(_row(row) for row in found["rows"]))


def published_data() -> dict[str, str]:
    """The data sets of the paper, each with its title there."""
    return dict(_paper()["data"])


def _row(row: Mapping[str, Any]) -> PublishedRow:
    scores = {data: dict(zip(METRICS, row[data], strict=True)) for data in (*published_data(), AVERAGE) if data in row}
    return PublishedRow(row["title"], row["method"], scores)


@cache
def _paper() -> dict[str, Any]:
    return tomllib.loads(files("hitin.compare").joinpath("published.toml").read_text(encoding="utf-8"))
