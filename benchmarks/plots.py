"""Plots as SVG that stand alone, colours and fonts inside: lines on logarithmic axes, values with their intervals."""

import html
import math
from collections.abc import Iterator, Mapping, Sequence

from hitin.compare.words import ticks

WIDTH, HEIGHT = 560, 360  # in pixels
LEFT, RIGHT, TOP, BOTTOM = 70, 170, 34, 52
COLOURS = ("#0b62a4", "#d1495b", "#2e933c", "#8f5db7", "#b8860b", "#4a4a4a")
LEFT_OF_ROWS = 150  # room for their names
Points = Sequence[tuple[float, float]]
Interval = tuple[float, float, float]
"""A value, and the ends of its interval."""


def slope(points: Points) -> float:
    """The power with which y grows with x: the slope of the straight line nearest to the points on both logarithms."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(max(y, 1e-12)) for _, y in points]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    across = sum((x - middle_x) ** 2 for x in xs)
    return sum((x - middle_x) * (y - middle_y) for x, y in zip(xs, ys, strict=True)) / across if across else math.nan


def lines(title: str, x_title: str, y_title: str, series: Mapping[str, Points]) -> str:
    """A line for each name, with its slope beside the name."""
    field = _Field([point for points in series.values() for point in points])
    marks = [*field.grid(), *_titles(title, x_title, y_title)]
    for number, (name, points) in enumerate(series.items()):
        marks += _line(name, points, field, number)
    return _svg(HEIGHT, marks)


def intervals(title: str, x_title: str, rows: Mapping[str, Mapping[str, Interval]]) -> str:
    """For each row a value of each name with its interval, one below the other; a line marks 0."""
    names = list(dict.fromkeys(name for values in rows.values() for name in values))
    step = 13 * len(names) + 12
    bottom = TOP + step * len(rows)
    ends = [end for values in rows.values() for value in values.values() for end in value]
    low, high = min(0.0, *ends), max(0.0, *ends)
    marks = [_text(LEFT_OF_ROWS, 20, title, weight="bold")]
    marks += _ruler(low, high, bottom)
    marks.append(_text((LEFT_OF_ROWS + WIDTH - RIGHT) / 2, bottom + 40, x_title, "middle"))
    for number, (row, values) in enumerate(rows.items()):
        top = TOP + step * number + 6
        marks.append(_text(LEFT_OF_ROWS - 10, top + step / 2 - 2, row, "end"))
        for place, (name, value) in enumerate(values.items()):
            colour = COLOURS[names.index(name) % len(COLOURS)]
            marks += _whisker(value, (low, high), top + 13 * place + 8, colour)
    marks += [mark for number, name in enumerate(names) for mark in _key(name, number, 22)]
    return _svg(bottom + 52, marks)


def _ruler(low: float, high: float, bottom: float) -> Iterator[str]:
    """Round numbers across, 0 among them."""
    for value in ticks(low, high):
        x = _between(value, (low, high))
        yield _stroke(x, TOP, x, bottom, "#888888" if value == 0 else "#dddddd")
        yield _text(x, bottom + 18, f"{value:g}", "middle")


def _whisker(value: Interval, ends: tuple[float, float], y: float, colour: str) -> Iterator[str]:
    middle, left, right = (_between(each, ends) for each in value)
    yield _stroke(left, y, right, y, colour)
    yield f'<circle cx="{middle:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'


def _between(value: float, ends: tuple[float, float]) -> float:
    return LEFT_OF_ROWS + (WIDTH - LEFT_OF_ROWS - RIGHT) * (value - ends[0]) / max(ends[1] - ends[0], 1e-9)


def _key(name: str, number: int, step: int) -> Iterator[str]:
    """What a colour stands for."""
    top = TOP + 12 + step * number
    colour = COLOURS[number % len(COLOURS)]
    yield f'<rect x="{WIDTH - RIGHT + 14}" y="{top - 9}" width="10" height="10" fill="{colour}"/>'
    yield _text(WIDTH - RIGHT + 30, top, name)


def _svg(height: float, marks: Sequence[str]) -> str:
    size = f'width="{WIDTH}" height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}"'
    font = 'font-family="Helvetica, Arial, sans-serif" font-size="12" fill="#222222"'
    paper = f'<rect width="{WIDTH}" height="{height:.0f}" fill="#ffffff"/>'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} {font}>', paper, *marks, "</svg>", ""])


class _Field:
    """Where values lie, from power of ten to power of ten."""

    def __init__(self, points: Points) -> None:
        self.x_powers = _powers([x for x, _ in points])
        self.y_powers = _powers([y for _, y in points])

    def across(self, value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * _part(value, self.x_powers)

    def down(self, value: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * _part(value, self.y_powers)

    def grid(self) -> Iterator[str]:
        for power in self.x_powers:
            x = self.across(10.0**power)
            yield _stroke(x, TOP, x, HEIGHT - BOTTOM)
            yield _text(x, HEIGHT - BOTTOM + 18, _power(power), "middle")
        for power in self.y_powers:
            y = self.down(10.0**power)
            yield _stroke(LEFT, y, WIDTH - RIGHT, y)
            yield _text(LEFT - 8, y + 4, _power(power), "end")


def _powers(values: Sequence[float]) -> list[int]:
    """The powers of ten around the values, two at least."""
    logs = [math.log10(max(value, 1e-12)) for value in values]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    return list(range(low, max(high, low + 1) + 1))


def _part(value: float, powers: Sequence[int]) -> float:
    return (math.log10(max(value, 1e-12)) - powers[0]) / (powers[-1] - powers[0])


def _power(power: int) -> str:
    return f"{10**power:,}" if power >= 0 else f"{10.0**power:.{-power}f}"


def _line(name: str, points: Points, field: _Field, number: int) -> Iterator[str]:
    colour = COLOURS[number % len(COLOURS)]
    places = [(field.across(x), field.down(y)) for x, y in points]
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    yield f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="2"/>'
    for x, y in places:
        yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
    yield from _key(name, number, 34)
    yield _text(WIDTH - RIGHT + 30, TOP + 27 + 34 * number, f"slope {slope(points):.2f}")


def _titles(title: str, x_title: str, y_title: str) -> Iterator[str]:
    yield _text(LEFT, 20, title, weight="bold")
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, x_title, "middle")
    middle = (TOP + HEIGHT - BOTTOM) / 2
    turned = f'transform="rotate(-90 16 {middle:.1f})"'
    yield f'<text x="16" y="{middle:.1f}" text-anchor="middle" {turned}>{html.escape(y_title)}</text>'


def _stroke(x1: float, y1: float, x2: float, y2: float, colour: str = "#dddddd") -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}"/>'


def _text(x: float, y: float, text: str, anchor: str = "start", weight: str = "normal") -> str:
    style = f'text-anchor="{anchor}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{html.escape(text)}</text>'
