"""The page common/docs/predictions.md: how far what was predicted is from what was measured, as a picture and as a list of the misses."""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from common.python.gate.expectations import key_text
from common.python.report.charts import Axis
from common.python.wording import ratio_text, significant
from tools.checks.measured_pairs import README, MeasuredPair, place
from tools.checks.predicted_ratios import MISSED, Headline, headlines
from tools.checks.written_tables import rows

PAGE = Path("common/docs/predictions.md")
PICTURE = PAGE.with_suffix(".svg")

_SIZE, _LEFT, _TOP, _BELOW = 640, 64, 16, 56  # pixels
_TICKS = tuple(digit * 10.0**power for power in range(-2, 3) for digit in (1, 3))
_COLOURS = ("#0b62a4", "#b5460f", "#3d7d2f", "#7a3fa0", "#5f5f5f")
_MARGIN = 1.3  # beyond the outermost points
_FURTHEST = 300.0  # a few ratios of thousands would press all others into a corner

HEAD = """\
# Predicted against measured

Written by `tools/checks/pages.py` from the predictions in the pairs' files and from the expectations files.

Every pair predicts its ratio before anybody measures it: the baseline's time, or another goal's figure, divided by the optimized side's. \
Rates, of which more is better, are divided the other way round. \
Most do so by an equation of bytes, operations and launches. Where nobody knew an equation, the pair says that it guesses. \
Some rest on an earlier timing of the same code, and say so; `git log -L` of a line shows when it was written. \
Each miss is explained on the pair's page, under "If it missed".

![Predicted ratios against measured ones, on logarithmic axes]({picture})

A dot is one timing of a pair on one kind of GPU. On the line, prediction and measurement agree. \
In the grey band they differ by less than {missed} times. Above the band the pair gained more than predicted, below it less. \
A hollow dot was a guess. A dot in the upper right corner lies beyond the axes."""


OPPOSITE = "Or the other way round. The whole 95 % interval lies on the other side of 1, however near the two figures are."


@dataclass(frozen=True)
class Dot:
    """A timing with its target, the page that explains it, and the section there: a variant may be told of in its pair's."""

    target: str
    page: Path
    section: str
    headline: Headline


def dots(pairs: Iterable[MeasuredPair]) -> list[Dot]:
    """Every timing whose ratio was predicted."""
    return [
        Dot(measured.pair.target, page, section_heading(measured, page), headline)
        for measured in pairs
        for page in [measured.pair.workload.parent / README]
        for headline in headlines(measured)
    ]


def section_heading(measured: MeasuredPair, page: Path) -> str:
    """The heading of a pair, or of the pair whose variant it is; nothing where the page has neither."""
    names = (measured.pair.target.partition(":")[2], measured.pair.workload.stem.removeprefix("workload_"))
    headings = page.read_text().splitlines() if page.exists() else []
    return next((name for name in names if f"## {name}" in headings), "")


def prediction_page(found: Sequence[Dot], root: Path) -> str:
    """The whole page; the links in it begin at its folder."""
    head = HEAD.format(picture=PICTURE.name, missed=MISSED)
    counts = rows(("how", "timings", f"within {MISSED} times", "median factor", "largest factor"), _counts(found))
    missed = sorted((dot for dot in found if dot.headline.factor > MISSED), key=lambda dot: (-dot.headline.factor, dot.target))
    opposite = sorted((dot for dot in found if dot.headline.is_opposite), key=lambda dot: dot.target)
    parts = [head, counts, "## Misses", "The furthest first.", _table(missed, root)]
    if opposite:
        parts += ["## Gains predicted, losses measured", OPPOSITE, _table(opposite, root)]
    return "\n\n".join(parts) + "\n"


def _table(found: Iterable[Dot], root: Path) -> str:
    return rows(("pair", "where", "predicted", "measured", "times apart"), (_cells(dot, root) for dot in found))


def _counts(found: Sequence[Dot]) -> Iterator[list[str]]:
    for words, is_guess in (("equations", False), ("guesses", True)):
        factors = [dot.headline.factor for dot in found if dot.headline.is_guess is is_guess]
        if factors:
            hits = sum(factor <= MISSED for factor in factors)
            share = f"{hits}, {100 * hits / len(factors):.0f} %"
            yield [words, str(len(factors)), share, f"{significant(statistics.median(factors))}x", f"{significant(max(factors))}x"]


def _cells(dot: Dot, root: Path) -> list[str]:
    link = os.path.relpath(dot.page, root / PAGE.parent)
    own = dot.headline
    predicted = f"{'guess ' if own.is_guess else ''}{ratio_text(own.predicted)}"
    name = f"[{dot.target}]({link}{'#' * bool(dot.section)}{dot.section})"
    return [name, place(own.model, own.shape), predicted, ratio_text(own.measured), significant(own.factor)]


def prediction_picture(found: Sequence[Dot]) -> str:
    """The dots as an SVG: the predicted ratio to the right, the measured one upwards, both on a logarithmic axis."""
    values = [value for dot in found for value in (dot.headline.predicted, dot.headline.measured)] or [1.0]
    axis = Axis(min(values) / _MARGIN, min(max(values), _FURTHEST) * _MARGIN, is_log=True)
    models = list(dict.fromkeys(dot.headline.model for dot in found))
    parts = [_band(axis), *_grid(axis)]
    for dot in sorted(found, key=lambda dot: (dot.headline.model, dot.target, dot.headline.shape)):
        own = dot.headline
        colour = _COLOURS[models.index(own.model) % len(_COLOURS)]
        fill = "white" if own.is_guess else colour
        told = f"{dot.target} {place(own.model, own.shape)}: predicted {ratio_text(own.predicted)}, measured {ratio_text(own.measured)}"
        parts.append(
            f'<circle cx="{_x(axis, own.predicted)}" cy="{_y(axis, own.measured)}" r="4" fill="{fill}" fill-opacity="0.75" '
            f'stroke="{colour}"><title>{escape(told)}</title></circle>'
        )
    for index, model in enumerate(models):
        y = _TOP + 18 + 18 * index
        parts.append(f'<circle cx="{_LEFT + 16}" cy="{y - 4}" r="4" fill="{_COLOURS[index % len(_COLOURS)]}"/>')
        parts.append(f'<text x="{_LEFT + 28}" y="{y}">{escape(key_text(model))}</text>')
    width, height = _LEFT + _SIZE + 16, _TOP + _SIZE + _BELOW
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12" fill="#222">\n'
        f'<rect width="{width}" height="{height}" fill="white"/>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


def _x(axis: Axis, value: float) -> float:
    return round(_LEFT + _SIZE * axis.at(value) / 100, 1)


def _y(axis: Axis, value: float) -> float:
    return round(_TOP + _SIZE * axis.from_top(value) / 100, 1)


def _band(axis: Axis) -> str:
    """What lies within MISSED times of the prediction, and the line on which both agree."""
    low, high = axis.low, axis.high
    corners = [(low, low), (low, low * MISSED), (high / MISSED, high), (high, high), (high, high / MISSED), (low * MISSED, low)]
    points = " ".join(f"{_x(axis, right)},{_y(axis, up)}" for right, up in corners)
    ends = f'x1="{_x(axis, low)}" y1="{_y(axis, low)}" x2="{_x(axis, high)}" y2="{_y(axis, high)}"'
    return f'<polygon points="{points}" fill="#e6e6e6"/>\n<line {ends} stroke="#888"/>'


def _grid(axis: Axis) -> Iterator[str]:
    right, bottom = _LEFT + _SIZE, _TOP + _SIZE
    for tick in _TICKS:
        if axis.low < tick < axis.high and not math.isclose(tick, axis.low):
            x, y = _x(axis, tick), _y(axis, tick)
            yield f'<path d="M{x} {_TOP}V{bottom}M{_LEFT} {y}H{right}" stroke="#ccc" stroke-width="0.5"/>'
            yield f'<text x="{x}" y="{bottom + 18}" text-anchor="middle">{tick:.10g}x</text>'
            yield f'<text x="{_LEFT - 8}" y="{y + 4}" text-anchor="end">{tick:.10g}x</text>'
    yield f'<rect x="{_LEFT}" y="{_TOP}" width="{_SIZE}" height="{_SIZE}" fill="none" stroke="#888"/>'
    yield f'<text x="{_LEFT + _SIZE / 2}" y="{bottom + 42}" text-anchor="middle">predicted</text>'
    middle = _TOP + _SIZE / 2
    yield f'<text x="16" y="{middle}" text-anchor="middle" transform="rotate(-90 16 {middle})">measured</text>'
