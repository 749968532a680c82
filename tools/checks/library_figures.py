"""What the chapters' tables say of a pair's library side: how many times as fast as it another side is, and a ladder's last row."""

from __future__ import annotations

import math
from collections.abc import Iterable

from common.python.gate.expectations import Expectation, SideExpectation
from common.python.gate.statistics import geometric_interval
from common.python.pairs.directives import read_directives
from common.python.pairs.discovery import SIDES, Pair
from common.python.results import OPTIMIZED, Interval
from common.python.wording import interval_text, speedup_text
from tools.checks.written_tables import NOT_MEASURED

LIBRARY = SIDES[-1]


def of_library(pair: Pair, expected: Expectation, side: str = OPTIMIZED) -> Interval | None:
    """How many times as fast as the library a side is, from the times of each unit of the run that was accepted.

    None for a pair without a library side, and where either of the two was not timed.
    """
    if LIBRARY not in pair.sides or not {side, LIBRARY} <= expected.sides.keys():
        return None
    own, library = (expected.sides[each].logs_ns for each in (side, LIBRARY))
    return geometric_interval([math.exp(its - log) for log, its in zip(own, library, strict=True)])


def of_library_text(pair: Pair, expected: Expectation, side: str = OPTIMIZED) -> str:
    """That ratio behind another figure: `, 1.02x [1.01, 1.03] of library`; empty where there is none."""
    ratio = of_library(pair, expected, side)
    return f", {speedup_text(ratio)} of library" if ratio else ""


def reached_text(side: SideExpectation) -> str:
    """The time of a side, and its share of the ceiling where one was measured: `36.7 µs [36.5, 36.9], 88 %`."""
    return interval_text(side.time_ns) + (f", {100 * side.share.share:.0f} %" if side.share else "")


def ladder_cells(pair: Pair, measured: Iterable[tuple[str, Expectation]]) -> list[str]:
    """The last row of a pair's ladder, its library: link, idea, what the optimized side makes of its speed, and its time and share."""
    path = pair.sides[LIBRARY]
    known = [(where, expected) for where, expected in measured if LIBRARY in expected.sides]
    ratios = [f"{where}: {OPTIMIZED} {speedup_text(ratio)} of it" for where, expected in known if (ratio := of_library(pair, expected))]
    reached = [f"{where}: {reached_text(expected.sides[LIBRARY])}" for where, expected in known]
    told = ("; ".join(cell) or NOT_MEASURED for cell in (ratios, reached))
    return [f"[{LIBRARY}]({path.name})", read_directives(path).idea, *told]
