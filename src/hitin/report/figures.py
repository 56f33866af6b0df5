"""Scores as the page draws them: by name, each with its interval where there is one."""

import math
from collections.abc import Mapping
from typing import Any

from hitin.metrics import Scores
from hitin.metrics.scores import LEVEL_SCORES, Difference, level_name

BINS = 15  # of `Reliability`, from 0 to 1 and equally wide

Figure = dict[str, float]
"""`value`, and `low` and `high` of its interval where that is known."""


def figures(scores: Scores) -> dict[str, Figure]:
    """Every score over all labels."""
    found = _all_figures(scores)
    return {name: figure for name, figure in found.items() if not name.startswith("level_")}


def level_figures(scores: Scores) -> list[dict[str, Any]]:
    """The scores of each level, from the top."""
    found = _all_figures(scores)
    return [
        {
            "level": level.level,
            "labels": level.labels,
            **{name: found[level_name(level.level, name)] for name in LEVEL_SCORES},
        }
        for level in scores.levels
    ]


def difference_figures(differences: Mapping[str, Difference] | None) -> dict[str, Figure]:
    """By how much a model is better than another, where that is known."""
    return {
        name: _figure(difference.estimate, _ends(difference))
        for name, difference in (differences or {}).items()
        if not name.startswith("level_")
    }


def _ends(difference: Difference) -> tuple[float, float] | None:
    return None if math.isnan(difference.low) else (difference.low, difference.high)


def _all_figures(scores: Scores) -> dict[str, Figure]:
    return {name: _figure(value, scores.intervals.get(name)) for name, value in scores.by_name().items()}


def _figure(value: float, interval: tuple[float, float] | None) -> Figure:
    if interval is None:
        return {"value": round(value, 6)}
    return {name: round(number, 6) for name, number in zip(("value", "low", "high"), (value, *interval), strict=True)}


def reliability_curves(reliability: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """The curve over all labels (its level is `None`) and those of the levels, from the JSON of `Reliability`."""
    if reliability is None:
        return []
    return [
        {"level": curve.get("level"), "ece": curve["ece"], "bins": [_placed(each) for each in curve["bins"]]}
        for curve in (reliability["all"], *reliability["levels"])
    ]


def _placed(each: Mapping[str, Any]) -> dict[str, Any]:
    """A bin with its place among all, counted from 0: empty ones were left out. Its mean lies within its bounds."""
    place = min(math.floor(each["probability"] * BINS + 1e-9), BINS - 1)
    return {"place": place, **{name: round(value, 6) for name, value in each.items()}}
