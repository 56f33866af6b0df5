"""`Calibration`: how logits become log-odds and probabilities, as a model keeps it."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from hitin.calibration.tables import Table, check_shape, chunks
from hitin.errors import InputError, counted, shown
from hitin.taxonomy import Taxonomy
from hitin.taxonomy.levels import highest_below, level_slices, lowest_above

Kind = Literal["none", "temperature", "isotonic"]
Knots = tuple[tuple[float, float], ...]
"""Logits and the log-odds they stand for, both rising."""

_LARGEST = float(np.finfo(np.float32).max) / 2  # of log-odds: two of them can be added
_FIELDS = {"kind", "temperatures", "curves"}


@dataclass(frozen=True)
class Calibration:
    """How logits become log-odds, level by level: as they are, divided by a temperature, or along a rising curve.

    A curve (`isotonic`) is straight between its knots and goes on beyond them with the slope of the temperature; a
    level whose curve has no knots has the temperature alone.
    """

    kind: Kind = "none"
    temperatures: tuple[float, ...] = ()
    curves: tuple[Knots, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise _bad(f"there is no calibration {shown(self.kind)}")
        count = len(self.temperatures)
        if bool(count) != (self.kind != "none") or len(self.curves) != (count if self.kind == "isotonic" else 0):
            raise _bad(f"{count} temperatures and {len(self.curves)} curves make no calibration {shown(self.kind)}")
        for temperature in self.temperatures:
            if not (_is_number(temperature) and temperature > 0):
                raise _bad(f"a temperature is {shown(temperature)}")
        for knots in self.curves:
            if not _is_rising(knots):
                raise _bad(f"a curve does not rise from knot to knot: {shown(knots)}")

    def check(self, taxonomy: Taxonomy) -> None:
        """Refuse a taxonomy of more or fewer levels."""
        if self.temperatures and len(self.temperatures) != taxonomy.depth:
            raise _bad(f"{counted(len(self.temperatures), 'temperature')} for {counted(taxonomy.depth, 'level')}")

    def log_odds(self, logits: Table, taxonomy: Taxonomy) -> NDArray[np.float32]:
        """(documents, |Y|): the higher a label's logit, the higher its log-odds; always finite."""
        check_shape(logits, taxonomy)
        self.check(taxonomy)
        found = np.empty(logits.shape, dtype=np.float32)
        for rows in chunks(*logits.shape):
            for level, columns in enumerate(level_slices(taxonomy)):
                values = self._of_level(level, logits[rows, columns].astype(np.float64))
                found[rows, columns] = np.clip(values, -_LARGEST, _LARGEST)
        return found

    def log_odds_at(self, logits: Table, levels: NDArray[np.integer[Any]]) -> NDArray[np.float32]:
        """`log_odds` of some labels, (..., n), whose levels, from 1 on, are (n,)."""
        found = np.empty(logits.shape, dtype=np.float32)
        for level in np.unique(levels).tolist():
            some = levels == level
            values = self._of_level(level - 1, logits[..., some].astype(np.float64))
            found[..., some] = np.clip(values, -_LARGEST, _LARGEST)
        return found

    def odds(self, logits: Table, taxonomy: Taxonomy) -> "LogOdds":
        """Log-odds, and what is shown of them."""
        return LogOdds(self.log_odds(logits, taxonomy), taxonomy, is_coherent=self.kind != "none")

    def probabilities(self, logits: Table, taxonomy: Taxonomy) -> NDArray[np.float32]:
        """(documents, |Y|): how probable each label is; once calibrated, none is more so than its parents."""
        return self.odds(logits, taxonomy).probabilities

    def to_json(self) -> dict[str, Any]:
        """Plain values for `json.dumps`."""
        curves = [[list(knot) for knot in knots] for knots in self.curves]
        return {"kind": self.kind, "temperatures": list(self.temperatures), "curves": curves}

    @classmethod
    def from_json(cls, value: object) -> "Calibration":
        """What `to_json` gave, perhaps changed by hand; nothing in it may be left unread."""
        if not isinstance(value, dict) or not {"kind"} <= set(value) <= _FIELDS:
            raise _bad(f"a calibration has a kind, temperatures and curves, but this is {shown(value)}")
        temperatures, curves = value.get("temperatures", []), value.get("curves", [])
        if not (_is_list(temperatures) and _is_list(curves) and all(map(_is_list, curves))):
            raise _bad(f"temperatures and curves are lists, but this is {shown(value)}")
        if not all(_is_list(knot) and len(knot) == 2 for knots in curves for knot in knots):
            raise _bad(f"a curve has pairs of logit and log-odds, but this is {shown(curves)}")
        return cls(value["kind"], tuple(temperatures), tuple(tuple((x, y) for x, y in knots) for knots in curves))

    def _of_level(self, level: int, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.kind == "none":
            return logits
        curve = self._straights[level] if self.curves else None
        return 1 / self.temperatures[level] * logits if curve is None else curve.along(logits)

    @cached_property
    def _straights(self) -> "tuple[_Curve | None, ...]":
        """For each level its curve, where it has one."""
        pairs = zip(self.curves, self.temperatures, strict=True)
        return tuple(_Curve.through(knots, 1 / temperature) if knots else None for knots, temperature in pairs)


class LogOdds:
    """The calibrated log-odds of some documents: tables of them by labels, each made when it is asked for."""

    def __init__(self, own: NDArray[np.float32], taxonomy: Taxonomy, *, is_coherent: bool) -> None:
        self.own = own
        """Of each label by itself."""
        self.taxonomy = taxonomy
        self.is_coherent = is_coherent

    @cached_property
    def shown(self) -> NDArray[np.float32]:
        """Those of the probabilities that people see: `coherent`, once calibrated."""
        return coherent(self.own, self.taxonomy) if self.is_coherent else self.own

    @cached_property
    def probabilities(self) -> NDArray[np.float32]:
        found = np.empty(self.shown.shape, dtype=np.float32)
        for rows in chunks(*self.shown.shape):
            found[rows] = probabilities_of(self.shown[rows])
        return found


def probabilities_of(log_odds: Table) -> NDArray[np.float32]:
    """The logistic function, without overflow and as exact for small probabilities as for large ones."""
    small = np.exp(-np.abs(log_odds))
    return np.asarray(np.where(log_odds >= 0, 1, small) / (1 + small), dtype=np.float32)


def coherent(table: Table, taxonomy: Taxonomy) -> NDArray[Any]:
    """Log-odds or probabilities of which no label has higher ones than a parent; where that was so, they stay.

    Each is the mean of the lowest of itself and its ancestors and the highest of itself and its descendants: both
    rise or stay from child to parent, and rounding keeps that.
    """
    check_shape(table, taxonomy)
    found = np.empty_like(table)
    for rows in chunks(*table.shape):
        part = table[rows]
        found[rows] = (lowest_above(part, taxonomy) + highest_below(part, taxonomy)) / 2
    return found


class _Curve(NamedTuple):
    """Straight from knot to knot, and beyond the first and the last with a slope of its own."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    slopes: NDArray[np.float64]
    """After each knot."""
    tops: NDArray[np.float64]
    """The value at the next knot."""

    @classmethod
    def through(cls, knots: Knots, slope: float) -> "_Curve":
        x, y = np.array(knots, dtype=np.float64).T
        return cls(x, y, np.append(np.diff(y) / np.diff(x), slope), np.append(y[1:], np.inf))

    def along(self, logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """The values at some places. Rounding never puts one above that of a higher logit."""
        place = np.searchsorted(self.x, logits, side="right") - 1
        before = np.maximum(place, 0)
        risen = np.minimum(self.y[before] + self.slopes[before] * (logits - self.x[before]), self.tops[before])
        return np.asarray(np.where(place < 0, self.y[0] + self.slopes[-1] * (logits - self.x[0]), risen))


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_rising(knots: Knots) -> bool:
    if not all(_is_number(value) for knot in knots for value in knot):
        return False
    steps = np.diff(np.array(knots, dtype=np.float64).reshape(-1, 2), axis=0)
    return bool((steps > 0).all())


def _bad(message: str) -> InputError:
    return InputError(message, kind="bad-option", remedy=f"The calibrations are {', '.join(get_args(Kind))}.")
