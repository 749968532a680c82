"""A picture of a sweep as SVG: panels side by side over what was swept, a line a side, with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from common.python.report.charts import MOST_TICKS, Axis, powers, round_values
from common.python.results import Interval

_COLOURS = ("#b5460f", "#0b62a4", "#3d7d2f", "#7a3fa0")
_WIDE, _HIGH, _LEFT, _TOP, _GAP = 190, 220, 52, 66, 66  # pixels: a panel, and what stands around it
_LETTER = 6.7  # pixels: a digit of font size 12


@dataclass(frozen=True)
class Across:
    """What was swept: its axis, where its values stand on it and what they are called, and the words below."""

    axis: Axis
    ticks: Sequence[tuple[float, str]]
    words: str


@dataclass(frozen=True)
class Mark:
    """A side's figure at one place of the axis, and what it says when it is pointed at."""

    x: float
    figure: Interval
    words: str


@dataclass(frozen=True)
class Panel:
    """One figure: its title, its axis with what stands behind the numbers there, and the marks of each side that has it.

    The line at `one` is darker: the value at which sides are alike.
    """

    title: str
    axis: Axis
    unit: str
    lines: Mapping[str, Sequence[Mark]]
    one: float | None = None


def picture(title: str, across: Across, sides: Sequence[str], panels: Sequence[Panel]) -> str:
    """All panels, with a key of the sides above them."""
    width, bottom = len(panels) * (_WIDE + _GAP) + 8, _TOP + _HIGH
    parts = [f'<text x="8" y="22" font-size="14" font-weight="bold">{escape(title)}</text>']
    for number, side in enumerate(sides):
        x = 8 + 140 * number
        parts.append(f'<path d="M{x} 38h24" stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-width="2"/>')
        parts.append(f'<text x="{x + 30}" y="42">{escape(side)}</text>')
    for number, panel in enumerate(panels):
        parts += _drawn(panel, across, sides, _LEFT + number * (_WIDE + _GAP))
    end = f'<text x="{width / 2:g}" y="{bottom + 46}" text-anchor="middle">{escape(across.words)}; bars: 95 % intervals</text>'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 58}" font-family="sans-serif" font-size="12" fill="#222">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, end, "</svg>"]) + "\n"


def _drawn(panel: Panel, across: Across, sides: Sequence[str], left: int) -> Iterator[str]:
    y, right, bottom = panel.axis, left + _WIDE, _TOP + _HIGH
    yield f'<text x="{left}" y="{_TOP - 8}">{escape(panel.title)}</text>'
    for tick in powers(y.low, y.high) if y.is_log and y.high / y.low >= MOST_TICKS else round_values(y.low, y.high):
        at = _down(y, tick)
        pen = "#888" if panel.one is not None and math.isclose(tick, panel.one) else "#ccc"
        yield f'<path d="M{left} {at}H{right}" stroke="{pen}" stroke-width="0.5"/>'
        yield f'<text x="{left - 6}" y="{at + 4}" text-anchor="end">{tick:.10g}{panel.unit}</text>'
    yield f'<rect x="{left}" y="{_TOP}" width="{_WIDE}" height="{_HIGH}" fill="none" stroke="#888"/>'
    ends = [float(left - _WIDE)] * 2  # of the last label in each of two rows
    for place, label in across.ticks:
        at, half = _over(across.axis, place, left), _LETTER * len(label) / 2 + 2
        row = 0 if at - half >= ends[0] or at - half < ends[1] else 1
        ends[row] = at + half
        yield f'<text x="{at}" y="{bottom + 16 + 13 * row}" text-anchor="middle">{escape(label)}</text>'
    for number, side in enumerate(sides):
        if side not in panel.lines:
            continue
        colour, apart = _COLOURS[number % len(_COLOURS)], 2 * number - len(sides) + 1  # or one bar would hide another
        seen = [(_over(across.axis, mark.x, left) + apart, mark) for mark in panel.lines[side]]
        points = " ".join(f"{at:.1f},{_down(y, mark.figure.estimate)}" for at, mark in seen)
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        for at, mark in seen:
            yield f'<path d="M{at:.1f} {_down(y, mark.figure.low)}V{_down(y, mark.figure.high)}" stroke="{colour}"/>'
            told = f"<title>{escape(mark.words)}</title>"
            yield f'<circle cx="{at:.1f}" cy="{_down(y, mark.figure.estimate)}" r="3" fill="{colour}">{told}</circle>'


def _over(axis: Axis, place: float, left: int) -> float:
    return round(left + _WIDE * axis.at(place) / 100, 1)


def _down(axis: Axis, value: float) -> float:
    return round(_TOP + _HIGH * axis.from_top(value) / 100, 1)
