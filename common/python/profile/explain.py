"""Why a side is faster than the baseline, or slower: the unit that had less to do, by the time it was busy, and what it had less of.

A step of a ladder is set against the step before it.

ncu gives each unit's share of its peak; times the step, that is how long the unit was busy. A unit that was busy for most of the slower
step, and whose busy time changed by a third at least of what the step's did, explains it, and of its counters those that changed the same
way say how. Where there is none, the side waits less: then what warps waited for, over all instructions, and how many threads there were
to wait, say it. Which side is faster is what was timed, not what a profiler saw: where the kernels' times do not account for it, what a
trace saw around them does, or nothing is said. Where one side has fewer kernels or launches, as compiled code has, the change is split in
two: time of kernels, which fusion saves as it saves bytes, and gaps between them, which launches leave.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from common.python.gate.outcome import red_figures
from common.python.gate.statistics import PAIR, climbed
from common.python.gate.verdicts import name_of
from common.python.pairs.goals import TIME as TIME_GOAL
from common.python.profile.ncu import DRAM_PERCENT, L1_PERCENT, L2_PERCENT, SM_PERCENT, STALL, TIME, Moved, ranked, value_text
from common.python.results import BASELINE, OPTIMIZED, PairResult, PairTiming, SideProfile, StepTrace
from common.python.wording import significant, time_text

_EXPLAINS = 1 / 3  # of the step's change of time
_MOST = 0.5  # of the slower step's time
_SAME = 0.03  # of the step's time: a profiled step is one call, so a smaller change is none
_MOST_TOLD = 3
_MOST_COUNTERS = 4
_AS_ACCEPTED = 1.01  # a small loss has small reasons; most counters of two runs of the same code are nearer
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
    """Why `side` takes another time than the side `before` it, in a sentence."""

    side: str
    is_faster: bool
    words: str
    before: str = BASELINE

    @property
    def title(self) -> str:
        """What it is the reason of."""
        return f"Why {self._verdict}"

    @property
    def headline(self) -> str:
        """What explains most of it, in one line of a terminal: `optimized is faster: the L2 was busy for ...`."""
        return f"{self._verdict}: {self.words.partition('; ')[0]}"

    @property
    def _verdict(self) -> str:
        than = "" if self.before == BASELINE else f" than {self.before}"
        return f"{self.side} is {'faster' if self.is_faster else 'slower'}{than}"


def reasons(row: PairResult) -> Iterator[Reason]:
    """Why each profiled side is faster or slower than the side before it: the baseline, or in a ladder the rung before.

    A side has no reason if one of the two was not profiled, or if their times do not differ. Cold starts have none.
    """
    timing = next(iter(row.timings.values()), None)  # it is the first shape that is profiled
    profiles = {side: result.profile for side, result in row.sides.items() if result.profile}
    if timing and timing.mode == "cold_start":  # most of a cold start is set-up
        return
    steps = {after: before for before, after in climbed(timing)} if timing and timing.goal == TIME_GOAL else {}
    for side in profiles:
        before = steps.get(side, BASELINE)
        if side != BASELINE and before in profiles and (reason := _reason(before, side, profiles, timing)):
            yield reason


def _reason(before: str, side: str, profiles: Mapping[str, SideProfile], timing: PairTiming | None) -> Reason | None:
    """What the kernels do differently, as far as that is what was timed, and what a step does around them, as far as it is not."""
    former, profile = profiles[before], profiles[side]
    took, takes = former.counters.get(TIME), profile.counters.get(TIME)
    speedup = (timing.speedups.get(side) if before == BASELINE else timing.rungs[side]) if timing else None
    if timing is None or speedup is None:
        words = _why(side, former.counters, profile.counters) if took and takes else ""
        return Reason(side, (takes or 0.0) < (took or 0.0), words, before) if words else None
    if speedup.low <= 1 <= speedup.high:  # which one is faster is not decided
        return None
    explained = math.log(took / takes) / math.log(speedup.estimate) if took and takes else 0.0
    parts = [_why(side, former.counters, profile.counters)] if explained >= _EXPLAINS else []
    if explained < 1 - _EXPLAINS and (around := _around(former.step, profile.step, timing, (before, side))):
        kernels = f"the kernels took {time_text(took)}, now {time_text(takes)} ({TIME}), the rest is " if took and takes else ""
        parts.append(f"{kernels}around them: {around}" if kernels else around)
    parts.append(_split(former.step, profile.step, timing, (before, side)))
    words = "; ".join(filter(None, parts))
    return Reason(side, speedup.estimate > 1, words, before) if words else None


def _split(baseline: StepTrace | None, step: StepTrace | None, timing: PairTiming, sides: tuple[str, str]) -> str:
    """How much of the timed change is the kernels' own time, by a trace, and how much the time between them.

    A trace slows the host and widens gaps, so gaps are what is left of the timed change. Nothing is said where both sides run as many
    kernels by as many launches.
    """
    if baseline is None or step is None or timing.device == "cpu" or not (baseline.kernels and step.kernels):
        return ""
    if (baseline.launches, baseline.kernels) == (step.launches, step.kernels):
        return ""
    took, takes = (timing.time_ns[side].estimate for side in sides)
    change = took - takes
    kernels = (baseline.busy_ns - step.busy_ns) / change
    name = "kernels and copies" if baseline.copies or step.copies else "kernels"
    done = "saved" if change > 0 else "added"
    return (
        f"of {time_text(abs(change))} {done}, {_part(kernels, change)} is time of {name} (bytes and other work), "
        f"{_part(1 - kernels, change)} gaps between them (launches), by {step.source}"
    )


def _part(share: float, change: float) -> str:
    """`171 µs (30 %)`, below zero where a part goes the other way."""
    return f"{'-' if share < 0 else ''}{time_text(abs(share * change))} ({round(100 * share)} %)"


def _around(baseline: StepTrace | None, step: StepTrace | None, timing: PairTiming, sides: tuple[str, str]) -> str:
    """What a step does less of around its kernels, or more if it is slower, by a trace; the host counts where its time is in the figure."""
    if baseline is None or step is None or timing.device == "cpu":  # a CPU's trace says nothing of the time between its calls
        return ""
    took, takes = (timing.time_ns[side].estimate for side in sides)
    change = takes - took
    told = []
    if baseline.kernels and step.kernels and (step.launches - baseline.launches) * change > 0:  # a copy is another call, not a launch less
        told.append(f"launches {baseline.launches:,} → {step.launches:,}")
    if not (timing.clock == "device" and timing.launch_latency_hidden):
        gaps_ns = baseline.span_ns - baseline.busy_ns, step.span_ns - step.busy_ns
        for name, (before, after) in {"host": (baseline.host_ns, step.host_ns), "gaps on the GPU": gaps_ns}.items():
            if (after - before) * change >= _EXPLAINS * change**2 > 0:
                told.append(f"{name} {time_text(before)} → {time_text(after)}")
    shares = baseline.overlap_share, step.overlap_share
    if shares[0] is not None and shares[1] is not None and (shares[1] - shares[0]) * change < 0:
        told.append(f"copies under kernels {100 * shares[0]:.0f} % → {100 * shares[1]:.0f} %")
    return f"{', '.join(told)} (by {step.source})" if told else ""


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
    return f"no unit was busy for so much {less} time, so its warps {waited}{told}"


def why_red(row: PairResult, shape: str, accepted: Mapping[str, Mapping[str, float]]) -> list[str]:
    """What a profile at a red shape tells, a line each: counters by which a red side and the one it stands on differ most, the most first.

    A rung stands on the step before it, the optimized side of a pair on the baseline. Then come those of each of these sides that differ
    most from `accepted`, its own when it was accepted, where they were kept.
    """
    timing, red = row.timings[shape], red_figures(row.verdicts[shape])
    counted = {side: result.profile.counters for side, result in row.sides.items() if result.profile and result.profile.counters}
    steps = [step for step in climbed(timing) if step[1] != OPTIMIZED]
    ratios = [sides for sides in (PAIR, *steps) if name_of(sides[1], timing.goal) in red] or [PAIR]
    lines = [
        _told(f"{after} and {before}", ranked(after, counted[before], counted[after]))
        for before, after in ratios
        if {before, after} <= counted.keys()
    ]
    both = [side for side in dict.fromkeys(chain.from_iterable(ratios)) if side in counted and side in accepted]
    return lines + [_told(f"{side} now and as it was accepted", ranked(side, accepted[side], counted[side], _AS_ACCEPTED)) for side in both]


def _told(what: str, moved: Sequence[Moved]) -> str:
    return f"red, and by what {what} differ most: {', '.join(each.words for each in moved[:_MOST_COUNTERS]) or 'no counter'}"
