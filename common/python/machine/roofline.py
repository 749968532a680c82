"""How far a time is from what the machine can do: the work of a pair over the machine's measured ceilings.

Each key of `work` has a time at its ceiling, and a side's share is of the longest of them. The floor may be shorter: it grants all that
a cache may have kept, so that no honest time is below it.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

from common.python.errors import SideFailure, Status
from common.python.machine.ceilings import Ceiling, MachineCeilings, Mode, Unit
from common.python.results import WARM_FILES, PairTiming, Share
from common.python.wording import significant, time_text

TOLERANCE: Final = {"cuda": 1.05, "cpu": 2.0}
"""How many times faster than the floor a time may be: what a CPU's neighbours leave of it changes from one second to the next."""

DECLARED_WITHIN: Final = 1.1
"""Counted over declared bytes, or the other way round: beyond it the declaration, or the traffic, is a finding."""

_DRAM_KEYS = ("dram_read", "dram_write")
_NAMES = {"peer": ("peer_out", "peer_in")}  # of a key's ceilings where the key is none itself; the highest counts
# What else may do the work of a key, and so lowers its floor.
_FLOOR_NAMES = {"fp32": ("fp32", "fp32_fma"), "bf16": ("bf16", "bf16_mma_sync")}
_SYMBOLS: dict[Unit, str] = {"bytes/s": "B", "flop/s": "FLOP"}
_PREFIXES = (("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15))


@dataclass(frozen=True)
class Conditions:
    """What a timing lets a step find in the cache: what the call before left (`hot`), or another call of its sample (`shared`).

    `launches` says that launches count, `storage` that reads come from storage.
    """

    mode: Mode
    hot: bool
    shared: bool
    launches: bool
    storage: bool

    @classmethod
    def of(cls, timing: PairTiming) -> Self:
        """The conditions of `timing`; of calls back to back, and of all calls on a CPU, each finds what the one before left."""
        return cls(
            mode="sustained" if timing.mode == "sustained" else "burst",
            hot=timing.cache == "hot" or timing.mode == "sustained" or timing.device == "cpu",
            shared=max(timing.calls_per_sample.values(), default=1) > 1,
            launches=timing.device == "cuda" and timing.clock != "device",
            storage=timing.cache == "cold" and WARM_FILES not in timing.notes,
        )


@dataclass(frozen=True)
class Bound:
    """One key of the work: the time in ns that `amount` takes at the ceiling, and the time that no implementation can beat.

    `clock_hz` is what the SMs held at a ceiling that goes with their clock.
    """

    key: str
    amount: float
    unit: Unit
    ceiling_ns: float
    floor_ns: float
    clock_hz: float | None = None


class Ceilings:
    """The ceilings of one machine as they are in one mode; a ceiling that was not measured in it is that of the other mode."""

    def __init__(self, kept: MachineCeilings, mode: Mode) -> None:
        self.cache_bytes = kept.cache_bytes
        usable = [ceiling for ceiling in kept.ceilings if ceiling.l2 != "dirty"]  # sides are timed with a clean L2
        self._by_name = {ceiling.name: ceiling for ceiling in sorted(usable, key=lambda ceiling: ceiling.mode == mode)}

    def highest(self, names: Sequence[str]) -> Ceiling | None:
        """The highest of the ceilings called `names`; None if there is none."""
        found = [self._by_name[name] for name in names if name in self._by_name]
        return max(found, key=lambda ceiling: ceiling.value.estimate, default=None)

    def byte_ns(self, memory: str) -> tuple[float, float, float] | None:
        """What a byte through `memory` (dram, l2) takes in ns where all are read, in a copy, and where all are written."""
        found = [self._by_name.get(f"{memory}_{kind}") for kind in ("read", "copy", "write")]
        times = [1e9 / ceiling.value.estimate for ceiling in found if ceiling]
        return (times[0], times[1], times[2]) if len(times) == len(found) else None


def mixed_ns(byte_ns: tuple[float, float, float], read: float, written: float) -> float:
    """The time of `read` and `written` bytes: what a byte takes goes in straight lines from reads to copies and from there to writes."""
    only_read, copied, only_written = byte_ns
    total = read + written
    part = written / total
    if part <= 0.5:
        return total * (only_read + (copied - only_read) * part * 2)
    return total * (copied + (only_written - copied) * (part * 2 - 1))


def bounds_of(work: Mapping[str, float], conditions: Conditions, ceilings: Ceilings) -> tuple[list[Bound], list[str]]:
    """A bound for each key of `work` that is spent and has a ceiling, and a sentence for each that has none."""
    bounds: list[Bound] = []
    notes: list[str] = []
    if any(work.get(key) for key in _DRAM_KEYS):
        read, written = (work.get(key, 0.0) for key in _DRAM_KEYS)
        bound = _memory_bound(read, written, conditions, ceilings)
        if bound:
            bounds.append(bound)
        else:
            memory = "the data fits the cache, whose ceiling" if read + written <= ceilings.cache_bytes else "the ceiling of dram"
            notes.append(f"no share of memory bandwidth: {memory} was not measured")
    counted = {"launch": conditions.launches, "storage_read": conditions.storage}
    for key, amount in work.items():
        if key in _DRAM_KEYS or not amount or not counted.get(key, True):
            continue
        ceiling = ceilings.highest(_NAMES.get(key, (key,)))
        if ceiling is None:
            notes.append(f"no share of {key}: it is not among this machine's ceilings")
        else:
            fastest = ceilings.highest(_FLOOR_NAMES.get(key, ())) or ceiling
            bounds.append(
                Bound(
                    key=key,
                    amount=amount,
                    unit=ceiling.unit,
                    ceiling_ns=_time_ns(amount, ceiling),
                    floor_ns=_floor_ns(amount, fastest),
                    clock_hz=ceiling.sm_clock_hz if ceiling.unit == "flop/s" else None,
                )
            )
    return bounds, notes


def _memory_bound(read: float, written: float, conditions: Conditions, ceilings: Ceilings) -> Bound | None:
    """dram_read and dram_write count as one key: their sum at the bandwidth of their mix, through the L2 where they may stay in it."""
    total = read + written
    fits = total <= ceilings.cache_bytes
    dram, cache = ceilings.byte_ns("dram"), ceilings.byte_ns("l2")
    own = cache if conditions.hot and fits else dram
    if own is None:
        return None
    floor_ns = 0.0
    if cache:
        floor_ns = max(read * cache[0], written * cache[2])  # the L2 may read and write at once
    if dram and not fits:
        if conditions.hot or conditions.shared:
            crossing_ns = (total - ceilings.cache_bytes) * min(dram)
        else:
            crossing = max(0.0, written - ceilings.cache_bytes)  # what is left dirty in the L2 is not waited for
            crossing_ns = mixed_ns(dram, read, crossing) if read + crossing else 0.0
        floor_ns = max(floor_ns, crossing_ns)
    return Bound("l2" if own is cache else "dram", total, "bytes/s", mixed_ns(own, read, written), floor_ns)


def _floor_ns(amount: float, ceiling: Ceiling) -> float:
    """The time at the fast end of the ceiling's interval: a ceiling that scattered accuses no side that it could itself have been."""
    return amount * (ceiling.value.low if ceiling.unit == "s" else 1 / ceiling.value.high) * 1e9


def _time_ns(amount: float, ceiling: Ceiling) -> float:
    value = ceiling.value.estimate
    return amount * (value if ceiling.unit == "s" else 1 / value) * 1e9


def share_of(bounds: Sequence[Bound], time_ns: float, held_hz: float | None) -> Share:
    """The share of the ceiling that `time_ns` comes to, at a clock of `held_hz` where that is known; needs a bound."""
    nearest = max(bounds, key=lambda bound: bound.ceiling_ns)
    share = nearest.ceiling_ns / time_ns
    return Share(
        key=nearest.key,
        share=share,
        ceiling_ns=nearest.ceiling_ns,
        floor_ns=max(bound.floor_ns for bound in bounds),
        at_held_clock=share * nearest.clock_hz / held_hz if nearest.clock_hz and held_hz else None,
    )


def implausible(bounds: Sequence[Bound], time_ns: float, device: str) -> str:
    """Why no side can take so little time on a `device` (cuda, cpu), in a sentence; "" if one can."""
    highest = max(bounds, key=lambda bound: bound.floor_ns)
    if time_ns * TOLERANCE[device] >= highest.floor_ns:
        return ""
    machine = "GPU" if device == "cuda" else "CPU"
    if highest.unit == "s":
        least = f"{time_text(highest.ceiling_ns / highest.amount)} each"
        return f"found {time_text(time_ns)} for {highest.amount:g} launches; this {machine}'s measured ceiling is {least}"
    amount = amount_text(highest.amount, highest.unit)
    found, expected = (f"{amount_text(highest.amount / ns * 1e9, highest.unit)}/s" for ns in (time_ns, highest.ceiling_ns))
    return f"found {time_text(time_ns)} for {amount} of {highest.key}, which is {found}; this {machine}'s measured ceiling is {expected}"


def with_shares(timing: PairTiming, work: Mapping[str, float], kept: MachineCeilings, files: Mapping[str, str]) -> PairTiming:
    """`timing` with its work and each side's share of the ceiling.

    Raises SideFailure, naming the side's one of `files`, for a time under the floor.
    """
    if timing.mode == "cold_start":  # set-up is no part of the work
        return timing
    conditions = Conditions.of(timing)
    bounds, notes = bounds_of(work, conditions, Ceilings(kept, conditions.mode))
    if bounds:
        for side, time in timing.time_ns.items():
            if sentence := implausible(bounds, time.estimate, timing.device):
                raise SideFailure(Status.IMPLAUSIBLE, f"{files[side]}: {sentence}; expected no more than that")
    shares = {side: share_of(bounds, time.estimate, held_hz(timing, side)) for side, time in timing.time_ns.items() if bounds}
    found = {"shares": shares, "work": dict(work), "ceiling_ns": {bound.key: bound.ceiling_ns for bound in bounds}}
    return timing.model_copy(update=found | {"notes": (*timing.notes, *notes)})


def held_hz(timing: PairTiming, side: str) -> float | None:
    """The SM clock that the samples of `side` held, in the median; None where none was stamped."""
    clocks = [clock for unit in timing.units for block in unit.blocks[side] for clock in block.sm_clock_hz]
    return statistics.median(clocks) if clocks else None


def declared_bytes(work: Mapping[str, float]) -> float:
    """The bytes of memory that `work` reads and writes."""
    return sum(work.get(key, 0.0) for key in _DRAM_KEYS)


def amount_text(amount: float, unit: Unit) -> str:
    """An amount of what a ceiling of `unit` is a rate of, with three significant digits, in powers of ten: 536 MB, 799 TFLOP."""
    fitting = [prefix for prefix in _PREFIXES if float(f"{amount:.3g}") >= prefix[1]]
    name, size = fitting[-1] if fitting else _PREFIXES[0]
    return f"{significant(amount / size)} {name}{_SYMBOLS[unit]}"


def value_text(value: float, unit: Unit) -> str:
    """A ceiling's value: 4.30 TB/s, 799 TFLOP/s, 2.10 µs."""
    return time_text(value * 1e9) if unit == "s" else f"{amount_text(value, unit)}/s"
