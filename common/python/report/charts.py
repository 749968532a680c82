"""Figures as geometry: numbers in, places in percent of the plot out, so that a template can draw them at any width.

x runs from the left, y from the top. Marks that come by the thousand are SVG path data in a box of BOX_WIDTH x BOX_HEIGHT units
that is stretched over the plot: a mark is then some six characters long, and its pen does not stretch.
"""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from common.python.results import Interval
from common.python.wording import time_text

BOX_WIDTH, BOX_HEIGHT = 1000, 250
MOST_TICKS = 6
_NEAREST_TO_ONE = 1.05  # an axis of speedups reaches at least this far, so that noise does not fill it
_FURTHEST = 1e6  # what a log axis can be asked to show of one interval
_MARGIN = 0.04  # of the axis, on either side of what it shows
_FENCE = 3.0  # interquartile ranges beyond the quartiles: Tukey's outer fence
_LOWEST_SHARE = 0.5  # a roofline reaches at least down to this
_BESIDE, _OVER_ROOF = 2.0, 1.12  # factors of room around the dots
_WIDEST_GAP = 3.0  # percent of the width that keeps two numbers apart
_MARK = 7  # box units: the length of a mark at the edge, for a sample beyond it

Effect = Literal["faster", "slower", "undecided"]


@dataclass(frozen=True)
class Tick:
    """A line of the grid, in percent of the plot, and what it says."""

    at: float
    label: str


@dataclass(frozen=True)
class Axis:
    """A range of values as percent of a length; a value outside is put at the edge."""

    low: float
    high: float
    is_log: bool

    def at(self, value: float) -> float:
        """Percent of the way from `low` to `high`, to two decimals."""
        inside = min(max(value, self.low), self.high)
        if self.is_log:
            return round(100 * math.log(inside / self.low) / math.log(self.high / self.low), 2)
        return round(100 * (inside - self.low) / (self.high - self.low), 2)

    def from_top(self, value: float) -> float:
        """As `at`, but for an axis that points up."""
        return round(100 - self.at(value), 2)


def _steps(low: float, high: float) -> Iterable[float]:
    """1, 2 and 5 times the powers of ten from `low` on, rising, up to the first that reaches `high`."""
    power = math.floor(math.log10(low))
    while True:
        for digit in (1, 2, 5):
            yield (step := digit * 10.0**power)
            if step >= high:
                return
        power += 1


def round_values(low: float, high: float) -> list[float]:
    """At most MOST_TICKS multiples of 1, 2 or 5 times a power of ten that lie from `low` to `high`; 0 and 1 are among them if inside."""
    span = high - low
    for step in _steps(span / 100, span):
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < MOST_TICKS:
            return [step * count for count in range(first, last + 1)]
    return []


def powers(low: float, high: float) -> list[float]:
    """At most MOST_TICKS + 1 round values from `low` to `high` for a log axis: 1, 2 and 5 times powers of ten, or powers alone."""
    dense = [value for value in _steps(low, high) if low <= value <= high]
    if len(dense) <= MOST_TICKS + 1:
        return dense
    decades = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    stride = math.ceil(len(decades) / (MOST_TICKS + 1))
    return [10.0**power for power in decades if power % stride == 0]


# --- Speedups: an estimate with whiskers on one log axis that all rows share


@dataclass(frozen=True)
class Whisker:
    """A speedup in percent of its axis; `effect` says on which side of 1x the whole interval lies."""

    low: float
    at: float
    high: float
    effect: Effect


@dataclass(frozen=True)
class SpeedupAxis:
    """The shared log axis of a chart of speedups, with the place of 1x."""

    axis: Axis
    ticks: tuple[Tick, ...]
    one: float

    def whisker(self, speedup: Interval) -> Whisker:
        """Where a speedup lies on it."""
        low, at, high = (self.axis.at(value) for value in (speedup.low, speedup.estimate, speedup.high))
        return Whisker(low, at, high, effect_of(speedup))


def effect_of(speedup: Interval) -> Effect:
    """Faster or slower if the whole interval lies on one side of 1x, neither if the interval contains 1x."""
    return "faster" if speedup.low > 1 else "slower" if speedup.high < 1 else "undecided"


def speedup_axis(speedups: Iterable[Interval]) -> SpeedupAxis:
    """A log axis that holds 1x and every interval, with a margin."""
    ends = [1 / _NEAREST_TO_ONE, _NEAREST_TO_ONE, *(end for speedup in speedups for end in (speedup.low, speedup.high))]
    low, high = max(min(ends), 1 / _FURTHEST), min(max(ends), _FURTHEST)
    margin = (high / low) ** _MARGIN
    axis = Axis(low / margin, high * margin, is_log=True)
    values = round_values(axis.low, axis.high) if high / low < MOST_TICKS else powers(axis.low, axis.high)
    ticks = tuple(Tick(axis.at(value), f"{value:,.6g}x") for value in values if value > 0)
    return SpeedupAxis(axis, ticks, axis.at(1))


# --- Samples: every raw value of one side, in the order it was taken


@dataclass(frozen=True)
class Strip:
    """Raw values around an estimate; the y axis is the deviation from it in percent.

    `stripes` are left edge and width, in percent, of every second unit. `dots`, `medians` (a dash a unit, none where each has one value)
    and `beyond` (marks at the edge, for values that would flatten the rest) are path data. `band` is the top and height of the interval
    of the estimate.
    """

    ticks: tuple[Tick, ...]
    stripes: tuple[tuple[float, float], ...]
    dots: str
    medians: str
    beyond: str
    band: tuple[float, float]
    values: int
    outside: int
    furthest: float


def strip(units: Sequence[Sequence[float]], estimate: Interval) -> Strip:
    """The strip of positive `units`, each a fresh process with its values in order; none of them is empty."""
    percents = [[100 * (value / estimate.estimate - 1) for value in unit] for unit in units]
    band = tuple(100 * (end / estimate.estimate - 1) for end in (estimate.low, estimate.high))
    middles = [statistics.median(unit) for unit in percents]
    axis = _deviation_axis([value for unit in percents for value in unit], [*band, *middles])
    width = BOX_WIDTH / len(units)
    places = [
        (round(width * (number + (index + 0.5) / len(unit))), value)
        for number, unit in enumerate(percents)
        for index, value in enumerate(unit)
    ]
    inside = [(x, value) for x, value in places if axis.low <= value <= axis.high]
    outside = [(x, value) for x, value in places if not axis.low <= value <= axis.high]
    top, bottom = axis.from_top(band[1]), axis.from_top(band[0])
    edges = [(x, BOX_HEIGHT - _MARK if value < axis.low else 0) for x, value in outside]
    several = max(map(len, units)) > 1
    dashes = [(round(width * (number + 0.1)), _height(axis, value)) for number, value in enumerate(middles) if several]
    return Strip(
        ticks=tuple(Tick(axis.from_top(value), deviation_text(value)) for value in round_values(axis.low, axis.high)),
        stripes=tuple((round(100 * number / len(units), 2), round(100 / len(units), 2)) for number in range(1, len(units), 2)),
        dots=_path([(x, _height(axis, value)) for x, value in inside], "h0"),
        medians=_path(dashes, f"h{round(width * 0.8)}"),
        beyond=_path(edges, f"v{_MARK}"),
        band=(top, round(bottom - top, 2)),
        values=len(places),
        outside=len(outside),
        furthest=max((value for _, value in outside), key=abs, default=0.0),
    )


def deviation_text(value: float) -> str:
    """A deviation in percent, signed, without trailing zeros: +0.5 %, 0 %."""
    return f"{value:+.4g} %" if abs(value) > 1e-9 else "0 %"


def _deviation_axis(values: Sequence[float], shown: Sequence[float]) -> Axis:
    """A linear axis that holds `shown`, and of `values` all that lie inside Tukey's outer fences, with a margin."""
    first, _, third = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [*values] * 3
    reach = _FENCE * (third - first)
    usual = [value for value in values if first - reach <= value <= third + reach]
    low, high = min(*usual, *shown, 0.0), max(*usual, *shown, 0.0)
    margin = _MARGIN * (high - low) or 1.0  # values that are all the same are shown in the middle of 2 %
    return Axis(low - margin, high + margin, is_log=False)


def _height(axis: Axis, value: float) -> int:
    return round(axis.from_top(value) / 100 * BOX_HEIGHT)


def _path(points: Iterable[tuple[int, int]], pen: str) -> str:
    """A mark drawn by `pen` at each of `points`, by moves relative to the last: `m3-12h0` is a dot with a round pen."""
    length, direction = int(pen[1:]), pen[0]
    here = (0, 0)
    marks = []
    for x, y in points:
        marks.append(f"m{x - here[0]}{y - here[1]:+d}{pen}")
        here = (x + length, y) if direction == "h" else (x, y + length)
    return "".join(marks)


# --- Roofline: how near each side comes to what the machine can do


@dataclass(frozen=True)
class Reach:
    """One side's `share` of its ceiling, of which 1 is the roof, and the time in ns that its work takes at that ceiling."""

    kind: str
    share: Interval
    ceiling_ns: float


@dataclass(frozen=True)
class Dot:
    """A side under the roof, with the ends of its interval; `number` is its pair's, from 1, written beside the one that `is_highest`."""

    number: int
    is_highest: bool
    kind: str
    x: float
    y: float
    top: float
    bottom: float


@dataclass(frozen=True)
class Roofline:
    """Log axes: across, the time at the ceiling; up, the share of it. `roof` is the height of 1, `gains` join the sides of a pair."""

    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    roof: float
    dots: tuple[Dot, ...]
    gains: tuple[tuple[Dot, Dot], ...]


def roofline(pairs: Sequence[Sequence[Reach]]) -> Roofline:
    """The sides of at least one pair under one roof, whatever ceiling is theirs: a memory's, a unit's, a launch's.

    Sides of a pair do the same work, so they stand above each other, and how far apart is their speedup.
    """
    reaches = [reach for pair in pairs for reach in pair]
    times, shares = [reach.ceiling_ns for reach in reaches], [reach.share for reach in reaches]
    x = Axis(min(times) / _BESIDE, max(times) * _BESIDE, is_log=True)
    y = Axis(
        min(_LOWEST_SHARE, *(share.low for share in shares)) / _OVER_ROOF, max(1.0, *(share.high for share in shares)) * _OVER_ROOF, True
    )
    places = _apart([x.at(pair[0].ceiling_ns) for pair in pairs])
    dots = []
    for number, (place, pair) in enumerate(zip(places, pairs, strict=True), start=1):
        highest = max(pair, key=lambda reach: reach.share.estimate)
        heights = [map(y.from_top, (reach.share.estimate, reach.share.high, reach.share.low)) for reach in pair]
        dots.append([Dot(number, reach is highest, reach.kind, place, *found) for reach, found in zip(pair, heights, strict=True)])
    return Roofline(
        x_ticks=tuple(Tick(x.at(value), time_text(value)) for value in powers(x.low, x.high)),
        y_ticks=tuple(Tick(y.from_top(value), f"{100 * value:.4g} %") for value in powers(y.low, 1.0)),
        roof=y.from_top(1.0),
        dots=tuple(dot for pair in dots for dot in pair),
        gains=tuple(joined for pair in dots for joined in pairwise(pair)),
    )


def _apart(places: Sequence[float]) -> list[float]:
    """`places` in percent, those that would cover each other moved to the right, and back from the right edge."""
    gap = min(_WIDEST_GAP, 100 / (len(places) + 1))
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved: dict[int, float] = {}
    least = 0.0
    for index in order:
        moved[index] = max(places[index], least)
        least = moved[index] + gap
    most = 100.0
    for index in reversed(order):
        most = min(moved[index], most - gap)
        moved[index] = most
    return [round(moved[index], 2) for index in range(len(places))]


# --- A sweep: what each side takes along a shape entry


@dataclass(frozen=True)
class Point:
    """A side's time at one value of the swept entry, in percent of the plot, with the ends of its interval and what it says."""

    x: float
    y: float
    top: float
    bottom: float
    words: str


@dataclass(frozen=True)
class Curve:
    """Times over a swept shape entry, on log axes where its values are numbers above 0; `lines` are the sides by kind, with their paths."""

    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    lines: tuple[tuple[str, str, tuple[Point, ...]], ...]


def curve(values: Sequence[str], sides: Sequence[tuple[str, Sequence[Interval]]]) -> Curve:
    """The times in ns of `sides`, each a kind and an interval for each of at least two `values`; words stand at equal distances."""
    numbers = [float(value) for value in values if re.fullmatch(r"\d+(\.\d+)?", value) and float(value) > 0]
    places = numbers if len(numbers) == len(values) else [float(index) for index in range(1, len(values) + 1)]
    x = Axis(min(places), max(places), is_log=places is numbers)
    times = [interval for _, found in sides for interval in found]
    y = Axis(min(time.low for time in times) / _BESIDE, max(time.high for time in times) * _BESIDE, is_log=True)
    lines = []
    for kind, found in sides:
        points = tuple(
            Point(
                x.at(place), y.from_top(time.estimate), y.from_top(time.high), y.from_top(time.low), f"{value}: {time_text(time.estimate)}"
            )
            for place, value, time in zip(places, values, found, strict=True)
        )
        path = "L".join(f"{point.x * BOX_WIDTH / 100:.0f} {point.y * BOX_HEIGHT / 100:.0f}" for point in points)
        lines.append((kind, f"M{path}", points))
    return Curve(
        x_ticks=tuple(Tick(x.at(place), value) for place, value in zip(places, values, strict=True)),
        y_ticks=tuple(Tick(y.from_top(value), time_text(value)) for value in powers(y.low, y.high)),
        lines=tuple(lines),
    )
