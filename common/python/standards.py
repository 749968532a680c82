"""What every timing of a run is held to, or why it is not gated; and the verdict once it is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.python.environment import Gpu, Machine
from common.python.expectations import Expectation, Expectations, expectations_path, gpu_key, key_text, read_expectations
from common.python.figures import percent_text
from common.python.gate import FALSE_DISCOVERY, FORESEEN_UNITS, LEAST_UNITS, NO_CHANGE, Difference, units_needed
from common.python.machine_ceilings import machine_key
from common.python.noise import Noise, class_of, noise_path, read_noise
from common.python.planning import CPU_SHAPE, Plan, gpus_of
from common.python.results import OPTIMIZED, Change, PairTiming, StopReason, Unit, Verdict, VerdictKind
from common.python.settings import Device, Settings
from common.python.stats import TIME, Known, Mean, gated_logs, median_ns, shortest_ns

SHARE_BAND_PERCENT = 3.0
SPEEDUP = "speedup"
NOISE_COMMAND = "noise"
PROMOTION = "; promote it with --accept-regressions?"


@dataclass(frozen=True)
class Standard:
    """What the gated figure of one timing is held to: `expected` logs, and how many figures the run gates besides."""

    expected: Mean
    goal: str
    gated: int

    def change(self, units: Sequence[Unit], band_percent: float, known: Known | None) -> Change:
        """The change that `units` show."""
        return Difference.between(Mean.of(gated_logs(units, self.goal), known), self.expected).change(band_percent)

    def is_decided(self, change: Change) -> bool:
        """Whether no further unit is needed. Red is only decided when it would stand among all that the run gates."""
        if change.kind is VerdictKind.REGRESSED:
            return change.p_worse <= FALSE_DISCOVERY / self.gated
        return change.kind is not VerdictKind.INCONCLUSIVE


class Standards:
    """The standards of a run. Reads every file that they come from when it is made. Raises BenchmarkError, naming it, for a bad one."""

    def __init__(self, settings: Settings, machine: Machine, plans: Sequence[Plan]) -> None:
        self._settings = settings
        self._files: dict[str, Expectations] = {}
        # Two sides that should be alike are held to no change: a side against its own past, and the pairs that measure noise.
        self._alike = settings.against is not None or settings.command == NOISE_COMMAND
        self.noise: Noise = read_noise(noise_path(machine_key(machine, first_gpu(settings, machine))))
        for plan in plans:
            if key := gpu_key(gpus_of(plan, machine)):
                self._files[plan.target] = read_expectations(expectations_path(plan.selection.pair.workload.parent, key))
        timings = [(plan, shape) for plan in plans for shape in plan.timed]
        self._gated = sum(
            self._alike or self._expected(plan, shape) is not None for plan, shape in timings if not self.exempts(plan, shape)
        )

    def exempts(self, plan: Plan, shape: str) -> str:
        """Why this timing is never gated; "" if it may be."""
        settings = self._settings
        reasons = {
            "a CPU's time is never gated": shape == CPU_SHAPE,
            "a half has no speedup": OPTIMIZED not in plan.sides or plan.selection.is_half,
            "with --kwargs it is not the shape that is kept": bool(settings.kwargs) or bool(settings.sweep),
            "with --iterations there is no choice of how many units": settings.iterations is not None,
            "--cold-start is another question": settings.cold_start,
            "--sustained is another question": settings.sustained,
        }
        return next((reason for reason, applies in reasons.items() if applies), "")

    def refuses(self, plan: Plan, shape: str) -> str:
        """Why this timing is never accepted as what is expected from now on; "" if it may be."""
        return self.exempts(plan, shape) or ("its baseline is not the pair's own" if self._alike else "")

    def of(self, plan: Plan, shape: str) -> Standard | None:
        """What this timing will be held to; None where it is not gated."""
        if self.exempts(plan, shape):
            return None
        if self._alike:
            return Standard(NO_CHANGE, TIME, self._gated)
        expectation = self._expected(plan, shape)
        if expectation is None or expectation.differs_from(_conditions(plan, shape)):
            return None
        return Standard(Mean.of(expectation.logs), plan.described.goal, self._gated)

    def band_percent(self, plan: Plan, units: Sequence[Unit]) -> float:
        """The change that counts as none for steps like these."""
        return self.noise.band_percent(self._settings.gate, class_of(plan.clock, shortest_ns(units)))

    def known(self, plan: Plan, units: Sequence[Unit]) -> Known | None:
        """The deviation between process pairs that this machine's noise floor knows for steps like these; only for a few units."""
        return self.noise.known(class_of(plan.clock, shortest_ns(units))) if len(units) < LEAST_UNITS else None

    def verdict(self, plan: Plan, shape: str, timing: PairTiming) -> Verdict | None:
        """What the gate says; None where this timing is never gated."""
        if self.exempts(plan, shape):
            return None
        if timing.stop_reason is StopReason.THROTTLED:
            return Verdict(kind=VerdictKind.INCONCLUSIVE, sentence="not gated: the device throttled; let it cool and run again")
        expectation = None if self._alike else self._expected(plan, shape)
        standard = self.of(plan, shape)
        if standard is None or not gated_logs(timing.units, standard.goal):
            return Verdict(kind=VerdictKind.NEW, sentence=f"not gated: {self._why_new(plan, shape)}")
        band = self.band_percent(plan, timing.units)
        name = SPEEDUP if standard.goal == TIME else standard.goal
        changes = {name: standard.change(timing.units, band, self.known(plan, timing.units))}
        if expectation:
            changes |= _share_changes(timing, expectation)
        return verdict_of(changes, what_it_takes(timing, standard.expected, band), promotable=expectation is not None)

    def _why_new(self, plan: Plan, shape: str) -> str:
        expectation = self._expected(plan, shape)
        if expectation is None:
            return f"nothing is expected of it on {key_text(self._files[plan.target].gpu)} yet"
        return expectation.differs_from(_conditions(plan, shape)) or f"it has no figure for {plan.described.goal} on both sides"

    def _expected(self, plan: Plan, shape: str) -> Expectation | None:
        file = self._files.get(plan.target)
        return file.pairs.get(plan.selection.pair.name, {}).get(shape) if file else None


def _conditions(plan: Plan, shape: str) -> dict[str, object]:
    described = plan.described
    return {"shape": plan.timed[shape], "goal": described.goal, "clock": plan.clock, "cache": described.cache}


def first_gpu(settings: Settings, machine: Machine) -> Gpu | None:
    """The GPU whose noise floor counts; None where a run is on the CPU."""
    return machine.gpus[0] if machine.gpus and settings.device is not Device.CPU else None


def _share_changes(timing: PairTiming, expectation: Expectation) -> dict[str, Change]:
    """Each side's share of the ceiling against the one accepted, where the ceilings of both machines are known."""
    changes = {}
    for side, accepted in expectation.sides.items():
        share = timing.shares.get(side)
        if share is None or accepted.share is None or share.key != accepted.share.key:
            continue
        measured = Mean.of([math.log(share.ceiling_ns / median_ns(unit, side)) for unit in timing.units])
        expected = Mean.of([math.log(accepted.share.ceiling_ns) - log for log in accepted.logs_ns])
        changes[f"share of {share.key} of {side}"] = Difference.between(measured, expected).change(SHARE_BAND_PERCENT)
    return changes


def verdict_of(changes: Mapping[str, Change], to_decide: str, *, promotable: bool) -> Verdict:
    """The verdict that these changes make, the gated ratio first; `to_decide` is said where nothing is.

    A share of the ceiling speaks only where it is decided: its band is wide, and it rests on an absolute time.
    """
    (name, ratio), *shares = changes.items()
    kind = ratio.kind
    if any(share.kind is VerdictKind.REGRESSED for _, share in shares):
        kind = VerdictKind.REGRESSED
    elif kind is VerdictKind.SAME and any(share.kind is VerdictKind.IMPROVED for _, share in shares):
        kind = VerdictKind.IMPROVED
    if kind in (VerdictKind.SAME, VerdictKind.INCONCLUSIVE):
        found = f"{name} {percent_text(ratio.percent)}"
        band = f"{ratio.band_percent:.2g} %"
        sentence = f"{found}, within {band}" if kind is VerdictKind.SAME else f"cannot decide at {band}: {found}; {to_decide}"
    else:
        telling = [(name, change) for name, change in changes.items() if change.kind is kind]
        sentence = ", ".join(f"{name} {percent_text(change.percent)}, beyond {change.band_percent:.2g} %" for name, change in telling)
    if kind is VerdictKind.IMPROVED and promotable:
        sentence += PROMOTION
    return Verdict(kind=kind, sentence=sentence, changes=dict(changes))


def what_it_takes(timing: PairTiming, expected: Mean, band_percent: float) -> str:
    """How many more units, and seconds, would decide, if they go on like those of `timing`."""
    more = units_needed(gated_logs(timing.units, timing.goal), expected, band_percent)
    if more is None:
        return f"not even {FORESEEN_UNITS} units would: it lies at the band's edge, or too little is known of what it was"
    return f"about {more} more units, {more * timing.seconds / len(timing.units):.0f} s"
