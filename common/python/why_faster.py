"""Why a side is faster than the baseline, or slower: the unit that had less to do, by the time it was busy, and what it had less of.

ncu gives each unit's share of its peak; times the step, that is how long the unit was busy. A unit that was busy for most of the slower
step, and whose busy time changed by a third at least of what the step's did, explains it, and of its counters those that changed the same
way say how. Where there is none, the side waits less: then what warps waited for, over all instructions, and how many threads there were
to wait, say it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from common.python.counters import Moved, ranked, value_text
from common.python.figures import significant, time_text
from common.python.ncu_tables import DRAM_PERCENT, L1_PERCENT, L2_PERCENT, SM_PERCENT, STALL, TIME
from common.python.results import BASELINE, PairResult

_EXPLAINS = 1 / 3  # of the step's change of time
_MOST = 0.5  # of the slower step's time
_SAME = 0.03  # of the step's time: a profiled step is one call, so a smaller change is none
_MOST_TOLD = 3
_ISSUED = "smsp__inst_issued.sum"
_GRID, _BLOCK = "launch__grid_size", "launch__block_size"


@dataclass(frozen=True)
class _Unit:
    """A unit of the GPU: the counter of its share of its peak, and those of what it is busy with."""

    name: str
    busy: str
    costs: re.Pattern[str]

    def busy_ns(self, counters: Mapping[str, float]) -> float | None:
        """How long it was busy in the step; None where that was not counted."""
        return counters[self.busy] / 100 * counters[TIME] if self.busy in counters else None


_UNITS = (
    _Unit("DRAM", DRAM_PERCENT, re.compile(r"dram__bytes(_read|_write|_op_read|_op_write)?\.sum")),
    _Unit("L2", L2_PERCENT, re.compile(r"lts__t_(sectors|bytes)\.sum|l1tex__t_sectors_pipe_lsu_mem_global_op_(ld|st)\.sum")),
    _Unit("L1", L1_PERCENT, re.compile(r"l1tex__(t_(sectors|requests)_pipe_lsu_mem_global_op_(ld|st)|data_\w+)\.sum")),
    _Unit("SM", SM_PERCENT, re.compile(r"smsp__inst_(executed|issued)\.sum")),
)
_SECTORS = re.compile(r"l1tex__t_sectors_(pipe_lsu_mem_global_op_(?:ld|st))\.sum")


@dataclass(frozen=True)
class Reason:
    """Why `side` takes another time than the baseline, in a sentence."""

    side: str
    is_faster: bool
    words: str

    @property
    def title(self) -> str:
        """What it is the reason of."""
        return f"Why {self.side} is {'faster' if self.is_faster else 'slower'}"


def reasons(row: PairResult) -> Iterator[Reason]:
    """A sentence for each side that ncu counted, if it counted the baseline too and their steps took different times."""
    profiles = {side: result.profile.counters for side, result in row.sides.items() if result.profile}
    baseline = profiles.get(BASELINE, {})
    for side, counters in profiles.items():
        if side != BASELINE and baseline.get(TIME) and counters.get(TIME) and (words := _why(side, baseline, counters)):
            yield Reason(side, counters[TIME] < baseline[TIME], words)


def _why(side: str, baseline: Mapping[str, float], counters: Mapping[str, float]) -> str:
    change = counters[TIME] - baseline[TIME]
    if abs(change) <= _SAME * baseline[TIME]:
        return ""
    explained: list[tuple[float, str]] = []
    for unit in _UNITS:
        before, after = unit.busy_ns(baseline), unit.busy_ns(counters)
        if before is None or after is None or max(before, after) < _MOST * max(baseline[TIME], counters[TIME]):
            continue
        if (after - before) / change >= _EXPLAINS:
            explained.append(((after - before) / change, _of_unit(unit, side, baseline, counters)))
    if explained:
        return "; ".join(words for _, words in sorted(explained, reverse=True))
    return _of_waiting(baseline, counters, faster=change < 0)


def _of_unit(unit: _Unit, side: str, baseline: Mapping[str, float], counters: Mapping[str, float]) -> str:
    """`the L2 was busy for 3.39 ms of 4.16 ms, now for 475 µs of 574 µs: lts__t_sectors.sum 471,156,813 → 103,453,153 (0.22x)`."""
    before, after = unit.busy_ns(baseline) or 0.0, unit.busy_ns(counters) or 0.0
    busy = (
        f"the {unit.name} was busy for {time_text(before)} of {time_text(baseline[TIME])} ({unit.busy}), "
        f"now for {time_text(after)} of {time_text(counters[TIME])}"
    )
    less = counters[TIME] < baseline[TIME]
    changed = [each for each in ranked(side, baseline, counters) if unit.costs.fullmatch(each.counter) and (each.ratio < 1) is less]
    told = [_cost(each, baseline, counters) for each in changed[:_MOST_TOLD]]
    return f"{busy}: {', '.join(told)}" if told else busy


def _cost(moved: Moved, baseline: Mapping[str, float], counters: Mapping[str, float]) -> str:
    """The counter in words; sectors with how many of them a request has, if that changed."""
    if not (match := _SECTORS.fullmatch(moved.counter)):
        return moved.words
    requests = f"l1tex__t_requests_{match[1]}.sum"
    each = [values[moved.counter] / values[requests] for values in (baseline, counters) if values.get(requests)]
    if len(each) < 2 or significant(each[0]) == significant(each[1]):
        return moved.words
    return f"{moved.words}, {significant(each[0])} → {significant(each[1])} a request"


def _of_waiting(baseline: Mapping[str, float], counters: Mapping[str, float], *, faster: bool) -> str:
    """Where no unit explains the change: what warps waited for, all instructions together, and with how many threads."""
    parts = []
    if _ISSUED in baseline and _ISSUED in counters:
        waits = {
            name: (baseline[name] * baseline[_ISSUED], value * counters[_ISSUED])
            for name, value in counters.items()
            if STALL.fullmatch(name) and name in baseline
        }
        changed = {name: after - before for name, (before, after) in waits.items() if (after < before) is faster and after != before}
        for name in sorted(changed, key=lambda name: -abs(changed[name]))[:2]:
            reason = STALL.fullmatch(name)
            before, after = waits[name]
            parts.append(f"{reason[1] if reason else name} {before:,.0f} → {after:,.0f} warp cycles ({name} x {_ISSUED})")
    threads = [values[_GRID] * values[_BLOCK] for values in (baseline, counters) if {_GRID, _BLOCK} <= values.keys()]
    if len(threads) == 2 and threads[0] != threads[1]:
        parts.append(f"threads {value_text('.sum', threads[0])} → {value_text('.sum', threads[1])} ({_GRID} x {_BLOCK})")
    less, waited = ("less", "waited less") if faster else ("more", "waited more")
    told = ": " + ", ".join(parts) if parts else "; what for, the counters of deep_dive say"
    return f"no unit had so much {less} to do, so it {waited}{told}"
