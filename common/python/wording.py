"""Numbers in words, the same on a terminal, in Markdown and in HTML: times, bytes, ratios and percents with their units and intervals."""

from __future__ import annotations

import math

from common.python.pairs.goals import ACCURACY, ENERGY, MEMORY, UNITS
from common.python.pairs.workload import DEFAULT_SHAPE
from common.python.results import Interval

_TIME_UNITS = (("ns", 1.0), ("µs", 1e3), ("ms", 1e6), ("s", 1e9))
_BYTE_UNITS = (("B", 1.0), ("KiB", 1024.0), ("MiB", 1024.0**2), ("GiB", 1024.0**3))
_JOULE_UNITS = (("µJ", 1e-6), ("mJ", 1e-3), ("J", 1.0), ("kJ", 1e3))
DIGITS = 3


def time_text(ns: float) -> str:
    """A time in ns with three significant digits and the unit that keeps it under a thousand: 36.7 µs, 1.29 ms."""
    return _scaled(ns, _TIME_UNITS)


def bytes_text(count: float) -> str:
    """A number of bytes with three significant digits, in binary units."""
    return _scaled(count, _BYTE_UNITS)


def figure_text(value: float, unit: str) -> str:
    """A figure of a goal in words: bytes in binary units, joules, a relative error in percent; another's own unit stands behind it."""
    if unit == UNITS[MEMORY]:
        return bytes_text(value)
    if unit == UNITS[ENERGY]:
        return _scaled(value, _JOULE_UNITS)
    if unit == UNITS[ACCURACY]:
        return f"{significant(100 * value)} % error"
    return f"{significant(value)} {unit}".rstrip()


def figure_interval_text(figure: Interval, unit: str) -> str:
    """A figure with its interval: 12.1 GiB, which no unit changed, 1.21 J [1.19, 1.23], 3.66 % error [3.65, 3.67]."""
    if figure.low == figure.high:
        return figure_text(figure.estimate, unit)
    if unit == UNITS[ACCURACY]:
        return _with_interval(figure, 0.01, " % error")
    units = {UNITS[MEMORY]: _BYTE_UNITS, UNITS[ENERGY]: _JOULE_UNITS}.get(unit, ((unit, 1.0),))
    name, size = _unit_of(figure.estimate, units)
    return _with_interval(figure, size, f" {name}".rstrip())


def _scaled(value: float, units: tuple[tuple[str, float], ...]) -> str:
    name, size = _unit_of(value, units)
    return f"{significant(value / size)} {name}"


def _unit_of(value: float, units: tuple[tuple[str, float], ...]) -> tuple[str, float]:
    """The largest unit that `value` reaches once it is rounded: 999.6 ns is 1.00 µs."""
    fitting = [unit for unit in units if float(f"{value:.{DIGITS}g}") >= unit[1]]
    return fitting[-1] if fitting else units[0]


def significant(value: float) -> str:
    """`value` with three significant digits, written out: 0.0123, 36.7, 1290."""
    return f"{value:.{_decimals(value)}f}"


def seconds_text(seconds: float) -> str:
    """Seconds with up to three significant digits, written out: 0.0648 s, 1.2 s, 240 s."""
    return f"{float(f'{seconds:.{DIGITS}g}'):g} s"


def ratio_text(ratio: float) -> str:
    """A ratio with up to three significant digits, written out: 2.5x, 24900x."""
    return f"{float(f'{ratio:.{DIGITS}g}'):g}x"


def _decimals(value: float) -> int:
    """Decimals that show three significant digits of `value` once it is rounded: 9.999 is 10.0."""
    rounded = abs(float(f"{value:.{DIGITS}g}"))
    return max(0, DIGITS - 1 - math.floor(math.log10(rounded))) if rounded else 0


def speedup_text(speedup: Interval) -> str:
    """A speedup with its interval: 2.31x [2.28, 2.34]."""
    return _with_interval(speedup, 1.0, "x")


def interval_text(time: Interval) -> str:
    """A time in ns with its interval, in one unit: 36.7 µs [36.5, 36.9]."""
    name, size = _unit_of(time.estimate, _TIME_UNITS)
    return _with_interval(time, size, f" {name}")


def _with_interval(interval: Interval, size: float, unit: str) -> str:
    """Three significant digits, or as many as show the first digit that the interval leaves open, up to three decimals."""
    estimate, low, high = interval.estimate / size, interval.low / size, interval.high / size
    open_digit = -math.floor(math.log10((high - low) / 2)) if high > low else 0
    decimals = max(_decimals(estimate), min(open_digit, DIGITS))
    return f"{estimate:.{decimals}f}{unit} [{low:.{decimals}f}, {high:.{decimals}f}]"


def one_line(text: str) -> str:
    """`text` with every run of white space, newlines included, as one space."""
    return " ".join(text.split())


def percent_text(percent: Interval) -> str:
    """A change in percent with its interval: -3.0 % [-3.2, -2.8]."""
    width = max(percent.high - percent.low, 1e-3)
    decimals = min(DIGITS, max(1, -math.floor(math.log10(width / 2))))
    estimate, low, high = (f"{round(value, decimals) + 0.0:+.{decimals}f}" for value in (percent.estimate, percent.low, percent.high))
    return f"{estimate} % [{low}, {high}]"  # + 0.0, for nothing has no sign


def at_shape(shape: str) -> str:
    """The mark of a named shape behind a target; the only shape of a target needs none."""
    return "" if shape == DEFAULT_SHAPE else f" @{shape}"
