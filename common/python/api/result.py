"""What was found out about one function or two: one line in a terminal, a small page in a notebook, figures for a program."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from common.python.pairs.workload import Cache, Clock
from common.python.results import BASELINE, OPTIMIZED, Interval, PairResult, Share, Unit
from common.python.wording import speedup_text, time_text

How = Literal["fresh processes", "one process"]
SpeedupVerdict = Literal["faster", "slower", "same", "undecided"]
ON_CPU = "one thread of the CPU"
_WIDTH, _HEIGHT = 360, 14


@dataclass(frozen=True)
class Speedup:
    """How many times faster the second function is than the first, with its 95 % interval.

    `verdict`: "faster" or "slower" where all of the interval lies beyond `band_percent` of no change, "same" where all of it lies within,
    else "undecided".
    """

    estimate: float
    low: float
    high: float
    band_percent: float
    verdict: SpeedupVerdict

    @classmethod
    def of(cls, interval: Interval, band_percent: float) -> Speedup:
        """The speedup of an interval, and what a band makes of it."""
        top = 1 + band_percent / 100
        low, high = interval.low, interval.high
        verdict: SpeedupVerdict = "undecided"
        if low > top or high < 1 / top:
            verdict = "faster" if low > top else "slower"
        elif low >= 1 / top and high <= top:
            verdict = "same"
        return cls(interval.estimate, low, high, band_percent, verdict)


@dataclass(frozen=True)
class Result:
    """One function's time, or two functions' and the speedup of the second over the first.

    `times_ns` and `shares` (of this machine's ceilings, where `peak` has kept them and `work` is stated) are by the functions' names.
    `how` says whether each function had fresh processes of its own. `caveats` is what checks and interval do not cover; `print` shows it.
    `notes` are these and all others. `row` is the whole document, where there is one. `inputs` says by name what the functions were called
    with, as `float32 [1024, 1024]`; of a target its name and its shape. `machine` is the model of the GPU or the CPU.
    """

    names: tuple[str, ...]
    times_ns: Mapping[str, Interval]
    speedup: Speedup | None
    how: How
    device: str
    units: tuple[Unit, ...]
    shares: Mapping[str, Share] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    row: PairResult | None = field(default=None, repr=False)
    caveats: tuple[str, ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    machine: str = ""
    clock: Clock = "device"
    cache: Cache = "cold"

    @property
    def verdict(self) -> SpeedupVerdict | Literal["timed"]:
        """That of the speedup; "timed" of one function alone."""
        return self.speedup.verdict if self.speedup else "timed"

    def faster_than(self, factor: float) -> bool:
        """Whether the second function is more than `factor` times as fast: all of the 95 % interval lies above it."""
        if self.speedup is None:
            raise ValueError(f"{self.names[0]} was timed alone; expected compare(f, g) where a speedup is asked for")
        return self.speedup.low > factor

    def __repr__(self) -> str:
        times = ", ".join(f"{name} {time_text(self.times_ns[name].estimate)}" for name in self.names)
        place = f"{len(self.units)} rounds in {self.how} on {'a GPU' if self.device == 'cuda' else ON_CPU}"
        if self.speedup is None:
            interval = self.times_ns[self.names[0]]
            return f"{times} [{time_text(interval.low)}, {time_text(interval.high)}] ({place})"
        spelt = Interval(estimate=self.speedup.estimate, low=self.speedup.low, high=self.speedup.high)
        return f"{self.names[1]} is {speedup_text(spelt)} as fast as {self.names[0]}: {self.verdict}; {times} ({place})"

    def __str__(self) -> str:
        return "\n".join([repr(self), *(f"  note: {caveat}" for caveat in self.caveats)])

    def _repr_html_(self) -> str:
        """A table of times, shares and samples, by round, for a notebook."""
        from common.python.gate.statistics import median_ns

        sides = dict(zip(self.names, (BASELINE, OPTIMIZED), strict=False))
        most = max(median_ns(unit, side) for unit in self.units for side in sides.values())
        rows = []
        for name, side in sides.items():
            dots = "".join(
                f'<circle cx="{4 + (_WIDTH - 8) * median_ns(unit, side) / most:.1f}" cy="{_HEIGHT / 2}" r="3" fill="currentColor" '
                f'fill-opacity="0.5"/>'
                for unit in self.units
            )
            time, share = self.times_ns[name], self.shares.get(name)
            cells = (
                html.escape(name),
                html.escape(time_text(time.estimate)),
                html.escape(f"{time_text(time.low)} to {time_text(time.high)}"),
                f"{share.share:.0%} of {html.escape(share.key)}" if share else "not known",
                f'<svg width="{_WIDTH}" height="{_HEIGHT}" role="img" aria-label="medians of rounds">{dots}</svg>',
            )
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        heads = "".join(
            f"<th>{head}</th>" for head in ("function", "time", "95 % interval", "share of ceiling", "medians of rounds, from 0")
        )
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return f"<p><b>{html.escape(repr(self))}</b></p><table><tr>{heads}</tr>{''.join(rows)}</table><ul>{notes}</ul>"
