"""What every timing of a run is held to, or why it is not gated; and the verdict once it is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from common.python.environment import Gpu, Machine
from common.python.expectations import Expectation, Expectations, expectations_path, gpu_key, key_text, read_expectations
from common.python.figures import percent_text
from common.python.gate import FALSE_DISCOVERY, FORESEEN_UNITS, LEAST_UNITS, NO_CHANGE, Difference, units_needed
from common.python.machine_ceilings import machine_key
from common.python.noise import Noise, class_of, noise_path, read_noise
from common.python.planning import CPU_SHAPE, Plan, gpus_of
from common.python.results import OPTIMIZED, Change, PairTiming, StopReason, Unit, Verdict, VerdictKind
from common.python.settings import Device, Settings
from common.python.stats import PAIR, TIME, Known, Mean, climb, gated_logs, median_ns, shortest_ns

SHARE_BAND_PERCENT = 3.0
SPEEDUP = "speedup"
NOISE_COMMAND = "noise"
PROMOTION = "; promote it with --accept-regressions?"


def name_of(sides: tuple[str, str], goal: str) -> str:
    """What the ratio of two sides is called: a pair's by what it is the ratio of, a rung's by the rung and the one before."""
    if sides == PAIR:
        return SPEEDUP if goal == TIME else goal
    return "rung {1} over {0}".format(*sides)


def changes_of(
    units: Sequence[Unit], goal: str, expected: Mapping[tuple[str, str], Mean], band_percent: float, known: Known | None = None
) -> dict[tuple[str, str], Change]:
    """How far each ratio, by its sides, is from what is expected of it; nothing of one that `units` do not have."""
    found = {sides: gated_logs(units, goal, sides) for sides in expected}
    return {
        sides: Difference.between(Mean.of(logs, known), expected[sides]).change(band_percent)
        for sides, logs in found.items()
        if len(logs) > 1
    }


@dataclass(frozen=True)
class Standard:
    """What the gated ratios of one timing are held to: the pair's to `expected` logs, each rung's over the one before to its own.

    `gated` is how many ratios the run gates in all.
    """

    expected: Mean
    goal: str
    gated: int
    rungs: Mapping[tuple[str, str], Mean] = field(default_factory=dict)

    def change(self, units: Sequence[Unit], band_percent: float, known: Known | None) -> Change:
        """The change of the pair's ratio that `units` show."""
        return self.changes(units, band_percent, known)[PAIR]

    def changes(self, units: Sequence[Unit], band_percent: float, known: Known | None) -> dict[tuple[str, str], Change]:
        """The change of each gated ratio, by its sides, the pair's first."""
        return changes_of(units, self.goal, self.ratios, band_percent, known)

    @property
    def ratios(self) -> dict[tuple[str, str], Mean]:
        """What each gated ratio is held to, by its sides, the pair's first."""
        return {PAIR: self.expected, **self.rungs}

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
        self._gated = sum(self._ratios(plan, shape) for plan, shape in timings if not self.exempts(plan, shape))

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
        return Standard(Mean.of(expectation.logs), plan.described.goal, self._gated, expectation.means_of(climb(plan.sides)))

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
        ratios = standard.changes(timing.units, band, self.known(plan, timing.units))
        if expectation is None:
            return verdict_of(timing, ratios, standard.ratios, promotable=False)
        found = verdict_of(timing, ratios, standard.ratios, _share_changes(timing, expectation), promotable=True)
        new = [name_of(sides, standard.goal) for sides in climb(plan.sides) if sides not in standard.rungs]
        return found.model_copy(update={"sentence": f"{found.sentence}; nothing is expected of {', '.join(new)} yet"}) if new else found

    def _why_new(self, plan: Plan, shape: str) -> str:
        expectation = self._expected(plan, shape)
        if expectation is None:
            return f"nothing is expected of it on {key_text(self._files[plan.target].gpu)} yet"
        return expectation.differs_from(_conditions(plan, shape)) or f"it has no figure for {plan.described.goal} on both sides"

    def accepted_counters(self, plan: Plan, shape: str) -> dict[str, dict[str, float]]:
        """What a step of each side counted when it was accepted, by side, where it was counted and is what the gate goes by."""
        expectation = None if self._alike else self._expected(plan, shape)
        return {side: each.counters for side, each in expectation.sides.items() if each.counters} if expectation else {}

    def _ratios(self, plan: Plan, shape: str) -> int:
        """How many ratios of this timing are gated."""
        expectation = None if self._alike else self._expected(plan, shape)
        return 1 + len(expectation.means_of(climb(plan.sides))) if expectation else int(self._alike)

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


def verdict_of(
    timing: PairTiming,
    ratios: Mapping[tuple[str, str], Change],
    expected: Mapping[tuple[str, str], Mean],
    shares: Mapping[str, Change] = MappingProxyType({}),
    *,
    promotable: bool,
) -> Verdict:
    """The verdict that the changes of the gated ratios, by their sides, make, the pair's first; undecided, it says what it would take.

    A share of the ceiling speaks only where it is decided: its band is wide, and it rests on an absolute time.
    """
    changes = {name_of(sides, timing.goal): change for sides, change in ratios.items()} | dict(shares)
    speaking = {change.kind for change in ratios.values()} | {change.kind for change in shares.values()} & _DECIDED
    kind = next(kind for kind in _GRAVEST_FIRST if kind in speaking)
    own = ratios[PAIR]
    if kind is VerdictKind.SAME:
        rungs = ", and so is every rung" if len(ratios) > 1 else ""
        sentence = f"{name_of(PAIR, timing.goal)} {percent_text(own.percent)}, within {own.band_percent:.2g} %{rungs}"
    elif kind is VerdictKind.INCONCLUSIVE:
        open_ones = {sides: expected[sides] for sides, change in ratios.items() if change.kind is kind}
        names = {name_of(sides, timing.goal): ratios[sides] for sides in open_ones}
        to_decide = what_it_takes(timing, open_ones, own.band_percent)
        sentence = f"cannot decide at {own.band_percent:.2g} %: {_listed(kind, names)}; {to_decide}"
    else:
        sentence = _listed(kind, changes)
    if kind is VerdictKind.REGRESSED and (gained := _listed(VerdictKind.IMPROVED, changes)):
        sentence += f"; {VerdictKind.IMPROVED}: {gained}"  # a rung looks worse where the one before it became better
    if kind is VerdictKind.IMPROVED and promotable:
        sentence += PROMOTION
    return Verdict(kind=kind, sentence=sentence, changes=changes)


_DECIDED = {VerdictKind.REGRESSED, VerdictKind.IMPROVED}
_GRAVEST_FIRST = (VerdictKind.REGRESSED, VerdictKind.INCONCLUSIVE, VerdictKind.IMPROVED, VerdictKind.SAME)


def _listed(kind: VerdictKind, changes: Mapping[str, Change]) -> str:
    """The changes of one kind, with the band that a decided one is beyond."""
    beyond = {name: f", beyond {change.band_percent:.2g} %" if kind in _DECIDED else "" for name, change in changes.items()}
    return ", ".join(f"{name} {percent_text(change.percent)}{beyond[name]}" for name, change in changes.items() if change.kind is kind)


def what_it_takes(timing: PairTiming, expected: Mapping[tuple[str, str], Mean], band_percent: float) -> str:
    """How many more units, and seconds, would decide all of these ratios, by their sides, if they go on like those of `timing`."""
    counts = [units_needed(gated_logs(timing.units, timing.goal, sides), mean, band_percent) for sides, mean in expected.items()]
    more = [count for count in counts if count is not None]
    if len(more) < len(counts):
        return f"not even {FORESEEN_UNITS} units would: it lies at the band's edge, or too little is known of what it was"
    most = max(more, default=0)
    return f"about {most} more units, {most * timing.seconds / len(timing.units):.0f} s"
