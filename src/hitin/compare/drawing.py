"""Small charts as SVG: points, a line through points, and bars. Colours are classes, which the page fills in."""

import html
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from hitin.compare.words import ticks

WIDTH, HEIGHT = 460, 300  # in pixels; on a phone it is a little smaller
LEFT, RIGHT, TOP, BOTTOM = 50, 16, 14, 46
ROW = 26  # a bar and its room
NAMES, NUMBERS = 170, 66  # room beside bars
MOST = 100  # per cent: no score is more, nor less than none
LONGEST = 22  # characters of a name in a chart; the rest is told on demand

_NEAR = 13  # between the baselines of two names
_WIDE = {False: 6.7, True: 7.4}  # a letter, on average; the subject is bold


@dataclass(frozen=True)
class Point:
    """A row in a chart; values are what axes say."""

    title: str
    x: float
    y: float
    deviation: float | None
    hint: str
    is_subject: bool = False


@dataclass(frozen=True)
class Bar:
    """A row; parts stand one after the other."""

    title: str
    parts: tuple[float, ...]
    text: str
    hint: str
    is_subject: bool = False


@dataclass(frozen=True)
class Axes:
    """What the two axes are called, and whether the lower one is logarithmic."""

    x: str
    y: str
    is_log: bool = False


def scatter(title: str, points: Sequence[Point], axes: Axes, x_texts: Sequence[tuple[float, str]]) -> str:
    """Points with their names beside them; `x_texts` are the marks of the lower axis."""
    field = _Field(points, axes, x_texts)
    marks = [*field.marks(), *_names(points, field)]
    for point in points:
        marks += _dot(point, field)
    return _svg(title, _told(points), HEIGHT, [*field.titles(), *marks])


def curve(title: str, points: Sequence[Point], axes: Axes, x_texts: Sequence[tuple[float, str]]) -> str:
    """Points joined from left to right, with their deviations."""
    field = _Field(points, axes, x_texts)
    path = "L".join(f"{field.across(point.x):.1f} {field.down(point.y):.1f}" for point in points)
    marks = [*field.marks(), f'<path class="line" d="M{path}"/>']
    for point in points:
        marks += _dot(point, field)
    return _svg(title, _told(points), HEIGHT, [*field.titles(), *marks])


def bars(title: str, rows: Sequence[Bar]) -> str:
    """A bar for each row, its number at the end."""
    room = WIDTH - NAMES - NUMBERS
    most = max((sum(row.parts) for row in rows), default=0) or 1
    is_split = any(len(row.parts) > 1 for row in rows)
    marks = []
    for number, row in enumerate(rows):
        top, start = ROW * number + 4, float(NAMES)
        marks.append(f'<g class="mark{_own(row.is_subject)}" tabindex="0" data-hint="{_attribute(row.hint)}">')
        marks.append(f'<rect class="behind" x="0" y="{top - 2}" width="{WIDTH}" height="{ROW - 2}"/>')
        marks.append(_text(NAMES - 8, top + 14, short(row.title), "name", anchor="end"))
        for place, part in enumerate(row.parts):
            long = room * part / most
            size = f'x="{start:.1f}" y="{top}" width="{long:.1f}" height="{ROW - 8}"'
            kind = f"part{place}" if len(row.parts) > 1 or not is_split else "whole"
            marks.append(f'<rect class="bar {kind}" {size}/>')
            start += long
        marks += [_text(start + 6, top + 14, row.text, "number"), "</g>"]
    told = "; ".join(f"{row.title}: {row.hint}" for row in rows)
    return _svg(title, told, ROW * len(rows) + 4, marks)


class _Field:
    """Where values lie in a chart, and its marks."""

    def __init__(self, points: Sequence[Point], axes: Axes, x_texts: Sequence[tuple[float, str]]) -> None:
        self.axes, self.x_texts = axes, x_texts
        ends = [end for point in points for end in (point.y - (point.deviation or 0), point.y + (point.deviation or 0))]
        pad = max(0.08 * (max(ends) - min(ends)), 0.1)
        self.low, self.high = min(ends) - pad, max(ends) + pad
        xs = [self._x(value) for value in (*(point.x for point in points), *(value for value, _ in x_texts))]
        margin = 0.04 * (max(xs) - min(xs)) or 0.5
        self.left, self.right = min(xs) - margin, max(xs) + margin

    def _x(self, value: float) -> float:
        return math.log10(max(value, 1)) if self.axes.is_log else value

    def across(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (self._x(value) - self.left) / (self.right - self.left)

    def down(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * (value - self.low) / (self.high - self.low)

    def marks(self) -> Iterator[str]:
        """Lines across with their numbers, and the marks below."""
        steps = ticks(max(self.low, 0), min(self.high, MOST))
        digits = max(0, min(2, -math.floor(math.log10(steps[1] - steps[0])))) if len(steps) > 1 else 1
        for value in steps:
            y = self.down(value)
            yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield _text(LEFT - 7, y + 4, f"{value:.{digits}f}", anchor="end")
        for value, text in self.x_texts:
            x = self.across(value)
            yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM + 4}"/>'
            yield _text(x, HEIGHT - BOTTOM + 18, text, anchor="middle")

    def titles(self) -> Iterator[str]:
        yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 6, self.axes.x, "axis", anchor="middle")
        middle = (TOP + HEIGHT - BOTTOM) / 2
        turned = f'transform="rotate(-90 12 {middle:.1f})"'
        yield f'<text class="axis" x="12" y="{middle:.1f}" text-anchor="middle" {turned}>{clean(self.axes.y)}</text>'


def _dot(point: Point, field: _Field) -> Iterator[str]:
    x, y = field.across(point.x), field.down(point.y)
    yield f'<g class="mark{_own(point.is_subject)}" tabindex="0" data-hint="{_attribute(point.hint)}">'
    if point.deviation:
        low, high = field.down(point.y - point.deviation), field.down(point.y + point.deviation)
        ends = f"M{x - 4:.1f} {low:.1f}h8M{x:.1f} {low:.1f}V{high:.1f}M{x - 4:.1f} {high:.1f}h8"
        yield f'<path class="whisker" d="{ends}"/>'
    yield f'<circle class="behind" cx="{x:.1f}" cy="{y:.1f}" r="13"/>'
    yield f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="5"/></g>'


def _names(points: Sequence[Point], field: _Field) -> Iterator[str]:
    """Beside their points, or as near as there is room, with a thin line then. Where there is none, hints tell."""
    taken = [box for point in points for box in _boxes(point, field)]
    for point in sorted(points, key=lambda point: (not point.is_subject, -point.y, point.x, point.title)):
        place = next((each for each in _places(point, field) if not any(map(each.box.meets, taken))), None)
        if place is not None:
            taken.append(place.box)
            yield from _name(point, place, field)


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: "_Box") -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True)
class _Place:
    """For a name: where its line of text begins or, left of its point, ends."""

    x: float
    baseline: float
    is_left: bool
    box: _Box


def _boxes(point: Point, field: _Field) -> Iterator[_Box]:
    """The dot and its whisker."""
    x, y = field.across(point.x), field.down(point.y)
    yield _Box(x - 6, y - 6, x + 6, y + 6)
    if point.deviation:
        high, low = (field.down(point.y + sign * point.deviation) for sign in (1, -1))
        yield _Box(x - 4, high, x + 4, low)


def _places(point: Point, field: _Field) -> Iterator[_Place]:
    """Nearest first, to the right and to the left."""
    x, y = field.across(point.x), field.down(point.y)
    wide = _WIDE[point.is_subject] * len(short(point.title))
    for step in range(0, HEIGHT, 3):
        for baseline, gap in ((y + 4 + sign * step, side) for side in (9, 30) for sign in (1, -1)):
            for is_left in (False, True):
                near, far = (x - gap, x - gap - wide) if is_left else (x + gap, x + gap + wide)
                box = _Box(min(near, far), baseline - _NEAR + 3, max(near, far), baseline + 3)
                if box.left >= LEFT and box.right <= WIDTH and box.top >= 0 and box.bottom <= HEIGHT - BOTTOM:
                    yield _Place(near, baseline, is_left, box)


def _name(point: Point, place: _Place, field: _Field) -> Iterator[str]:
    x, y = field.across(point.x), field.down(point.y)
    if abs(place.baseline - 4 - y) > 7 or abs(place.x - x) > 9:
        side = 2 if place.is_left else -2
        yield f'<path class="leader" d="M{x:.1f} {y:.1f}L{place.x + side:.1f} {place.baseline - 4:.1f}"/>'
    kind, anchor = f"name{_own(point.is_subject)}", "end" if place.is_left else ""
    yield _text(place.x, place.baseline, short(point.title), kind, anchor=anchor)


def short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…"


def clean(text: str) -> str:
    """As XML, without what XML has not."""
    return html.escape("".join(char for char in text if char.isprintable() or char == " "))


def _attribute(text: str) -> str:
    return clean(text)


def _own(is_subject: bool) -> str:
    return " own" if is_subject else ""


def _text(x: float, y: float, text: str, kind: str = "", *, anchor: str = "") -> str:
    named = f' class="{kind}"' if kind else ""
    turned = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}"{turned}>{clean(text)}</text>'


def _told(points: Iterable[Point]) -> str:
    return "; ".join(f"{point.title}: {point.hint}" for point in points)


def _svg(title: str, told: str, height: int, inside: Iterable[str]) -> str:
    """The picture, with all its numbers in words for those who do not see it."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{clean(title)}</title>",
            f"<desc>{clean(told)}</desc>",
            *inside,
            "</svg>",
        ]
    )
