"""What ncu counted in two sides, side by side: the counters that moved most, and their values in words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from common.python.profile.ncu import STALL, TIME
from common.python.results import BASELINE, PairResult
from common.python.wording import bytes_text, significant, time_text

# What a zero is taken for, or conflicts in one of a thousand instructions, against none, would be the most that ever moved.
_LEAST_COUNT, _LEAST_SHARE, _LEAST_BYTES, _OF_INSTRUCTIONS = 1.0, 0.1, 1024.0, 0.01
_SAME = 1.05
_INSTRUCTIONS = "smsp__inst_executed.sum"


@dataclass(frozen=True)
class Moved:
    """A counter of one side against the baseline's."""

    side: str
    counter: str
    baseline: float
    value: float
    least: float = _LEAST_COUNT

    @property
    def ratio(self) -> float:
        """How many times the baseline's value it is; `least` stands for anything below it."""
        return max(self.value, self.least) / max(self.baseline, self.least)

    @property
    def words(self) -> str:
        """`dram__bytes.sum 256 MiB → 128 MiB (0.50x)`."""
        ratio = f" ({self.ratio_text})" if self.baseline else ""
        return f"{self.counter} {value_text(self.counter, self.baseline)} → {value_text(self.counter, self.value)}{ratio}"

    @property
    def ratio_text(self) -> str:
        """How many times the baseline's value it is, without a stand-in for either; empty where the baseline's is nothing."""
        if not self.baseline:
            return ""
        ratio = self.value / self.baseline
        return f"{ratio:.2f}x" if ratio >= 0.01 else f"{significant(ratio)}x"


def moved(row: PairResult) -> Iterator[Moved]:
    """The counters that differ between the baseline and each other side, those that moved most first, a side after the other."""
    profiles = {side: result.profile.counters for side, result in row.sides.items() if result.profile}
    for side, counters in profiles.items():
        if side != BASELINE and BASELINE in profiles:
            yield from ranked(side, profiles[BASELINE], counters)


def ranked(side: str, baseline: Mapping[str, float], counters: Mapping[str, float], same: float = _SAME) -> list[Moved]:
    """The counters of both that differ by a factor of more than `same`, those that moved most first.

    The time, which they are to explain, is left out.
    """
    instructions = min(values.get(_INSTRUCTIONS, 0.0) for values in (baseline, counters))
    both = [
        Moved(side, name, baseline[name], value, _least(name, instructions))
        for name, value in counters.items()
        if name in baseline and name != TIME
    ]
    different = [each for each in both if abs(math.log(each.ratio)) > math.log(same)]
    return sorted(different, key=lambda each: -abs(math.log(each.ratio)))


def _least(counter: str, instructions: float) -> float:
    """Below which a value of `counter` is as good as none, in a step of so many instructions of a warp."""
    if counter.startswith("launch__shared_mem"):
        return _LEAST_BYTES
    return max(_LEAST_COUNT, _OF_INSTRUCTIONS * instructions) if counter.endswith(".sum") else _LEAST_SHARE


def value_text(counter: str, value: float) -> str:
    """A counter's value with its unit, which its name tells."""
    if counter == TIME:
        return time_text(value)
    if "pct" in counter:
        return f"{significant(value)} %"
    if counter.endswith("bytes.sum") or "__bytes_" in counter:
        return bytes_text(value)
    return f"{value:,.0f}" if counter.endswith(".sum") or value.is_integer() else significant(value)


def stall_text(counters: Mapping[str, float]) -> str:
    """What warps waited for most, `long_scoreboard 8.1` cycles an instruction; empty where stalls were not counted."""
    stalls = {match[1]: value for name, value in counters.items() if (match := STALL.fullmatch(name))}
    reason = max(stalls, key=lambda name: stalls[name], default="")
    return f"{reason} {significant(stalls[reason])}" if reason else ""
