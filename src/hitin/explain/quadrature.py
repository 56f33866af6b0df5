"""Integrated gradients (Sundararajan, Taly and Yan, 2017) with as many points as it takes, where it takes them.

From a reference that says nothing to the text as it is leads a straight way, x(t) with t from 0 to 1. The weight of a
token is the integral over it of how much the logit changes with that token alone. Added up over the tokens, the
integrand is dF/dt: all weights together are F(x(1)) - F(x(0)). That holds for every piece of the way, too, and so it is
known of each piece how wrong its quadrature is: pieces are halved where it is most, until the whole is right. Kinks of
a ReLU, or of the maximum over time, and steep pieces behind a layer norm are thus found, and the rest costs little.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hitin.inputs import chunks

Array = NDArray[np.float64]
Chosen = NDArray[np.bool_]

TOLERANCE = 0.01
"""By how much of it the weights of the words may miss the difference of a label's score to its baseline."""
SMALLEST = 1e-3
"""The difference that is reckoned with where it is smaller: a thousandth of a logit moves no probability."""
MOST_POINTS = 1024
"""Where so many points do not suffice, what is missed is told."""
_ORDER = 4  # points of a piece
_FIRST = 4  # pieces to begin with
_AT_ONCE = 32  # pieces
_HALVED = 0.7  # of what is missed, the pieces that are halved have so much


_NODES, _SHARES = np.polynomial.legendre.leggauss(_ORDER)
_NODES, _SHARES = (_NODES + 1) / 2, _SHARES / 2  # of Gauss and Legendre, between 0 and 1

_Bounds = tuple[float, float, Array, Array]


class Way(Protocol):
    """A way through a network, from a reference to a text."""

    def values(self, points: Array) -> Array:
        """(points, labels): the logits there."""

    def slopes(self, points: Array, labels: Sequence[int]) -> Array:
        """(labels, points, tokens): how much the logit of each of these labels changes with each token."""


@dataclass(frozen=True)
class Integrals:
    """What each token says for each label."""

    weights: Array
    """(labels, tokens)"""
    baselines: Array
    """(labels,): the logits of the reference."""
    scores: Array
    """(labels,): those of the text."""
    points: NDArray[np.int64]
    """(labels,): at how many points the gradient was taken."""

    @property
    def errors(self) -> Array:
        """(labels,): by how much the weights miss the difference of score and baseline, as a part of it."""
        differences = self.scores - self.baselines
        missed: Array = np.abs(self.weights.sum(axis=1) - differences) / np.maximum(np.abs(differences), SMALLEST)
        return missed


@dataclass(frozen=True, eq=False)
class _Piece:
    """A piece of the way, with what stands at its ends and what was found between them."""

    start: float
    end: float
    low: Array
    """(labels,): the values where it starts."""
    high: Array
    """(labels,): the values where it ends."""
    weights: Array
    """(labels, tokens): of labels that have other pieces here, nothing."""
    labels: Chosen
    """(labels,): those whose piece it is."""

    @property
    def missed(self) -> Array:
        """(labels,)"""
        found: Array = np.abs(self.weights.sum(axis=1) - (self.high - self.low)) * self.labels
        return found

    def of(self, labels: Chosen) -> "_Piece":
        """The same for some of its labels alone."""
        return replace(self, weights=self.weights * labels[:, None], labels=self.labels & labels)


def integrated(way: Way, *, tolerance: float = TOLERANCE, most_points: int = MOST_POINTS) -> Integrals:
    """The integrals over a whole way, for all of its labels: each has pieces of its own, as if it were alone."""
    bounds = np.linspace(0, 1, _FIRST + 1)
    values = way.values(bounds)
    count = values.shape[1]
    pieces = _pieces(way, [*zip(bounds, bounds[1:], values, values[1:], strict=False)], range(count))
    weights, points = _sum(pieces), np.full(count, _ORDER * _FIRST)
    while True:
        found = Integrals(weights, values[0], values[-1], points)
        most = (most_points - points) // (2 * _ORDER) * (found.errors > tolerance)
        if not (most > 0).any():
            return found
        chosen = _worst(pieces, most)
        worst = [piece.of(labels) for piece, labels in zip(pieces, chosen, strict=True) if labels.any()]
        halves = _halves(way, worst)
        rest = [piece.of(~labels) for piece, labels in zip(pieces, chosen, strict=True)]
        pieces = [piece for piece in rest if piece.labels.any()] + halves
        weights = weights + _sum(halves) - _sum(worst)
        points = points + 2 * _ORDER * chosen.sum(axis=0)


def _worst(pieces: list[_Piece], most: NDArray[np.int64]) -> Chosen:
    """(pieces, labels): for each label those that make up most of what is missed, so many at `most`."""
    missed = np.stack([piece.missed for piece in pieces])
    order = np.argsort(-missed, axis=0)
    before = np.cumsum(np.take_along_axis(missed, order, axis=0), axis=0)
    before = np.concatenate([np.zeros_like(before[:1]), before[:-1]])
    chosen = np.zeros(missed.shape, dtype=np.bool_)
    wanted = (before < _HALVED * missed.sum(axis=0)) & (np.arange(len(pieces))[:, None] < most)
    np.put_along_axis(chosen, order, wanted, axis=0)
    return chosen


def _halves(way: Way, pieces: list[_Piece]) -> list[_Piece]:
    """Both halves of each piece, for the labels whose it is; those of the same labels are looked at together."""
    middles = np.array([(piece.start + piece.end) / 2 for piece in pieces])
    bounds: dict[tuple[int, ...], list[_Bounds]] = {}
    for piece, middle, value in zip(pieces, middles.tolist(), way.values(middles), strict=True):
        some = bounds.setdefault(tuple(np.flatnonzero(piece.labels).tolist()), [])
        some += [(piece.start, middle, piece.low, value), (middle, piece.end, value, piece.high)]
    return [half for labels, some in bounds.items() for half in _pieces(way, some, labels)]


def _pieces(way: Way, bounds: list[_Bounds], labels: Sequence[int]) -> list[_Piece]:
    """Where pieces start and end, with the values there, to the pieces: the gradients of these labels are taken."""
    found, own = [], list(labels)
    for some in chunks(bounds, _AT_ONCE):
        starts, ends = (np.array([bound[side] for bound in some])[:, None] for side in (0, 1))
        slopes = way.slopes((starts + (ends - starts) * _NODES).ravel(), own)
        by_piece = slopes.reshape(len(own), len(some), _ORDER, -1)  # (labels, pieces, points, tokens)
        for number, (start, end, low, high) in enumerate(some):
            weights = np.zeros((len(low), by_piece.shape[-1]))
            weights[own] = (end - start) * np.einsum("lpt,p->lt", by_piece[:, number], _SHARES)
            found.append(_Piece(start, end, low, high, weights, np.isin(np.arange(len(low)), own)))
    return found


def _sum(pieces: list[_Piece]) -> Array:
    found: Array = np.sum([piece.weights for piece in pieces], axis=0)
    return found
