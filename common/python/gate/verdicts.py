"""What every timing of a run is held to, or why it is not gated; and the verdict once it is measured."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from common.python.gate.expectations import (
    AS_FAST_PERCENT,
    Expectation,
    Expectations,
    expectations_path,
    gpu_key,
    key_text,
    read_expectations,
)
from common.python.gate.noise_floor import Noise, StepClass, class_of, class_of_units, noise_path, read_noise
from common.python.gate.statistics import (
    FALSE_DISCOVERY,
    FORESEEN_UNITS,
    LEAST_UNITS,
    NO_CHANGE,
    PAIR,
    Difference,
    Known,
    Mean,
    change_in_all,
    gated_logs,
    is_told,
    may_be_worse,
    median_ns,
    rungs_between,
    units_needed,
)
from common.python.machine.ceilings import machine_key
from common.python.machine.description import Gpu, Machine
from common.python.pairs.goals import ACCURACY, ENERGY, MEMORY, SETUP, TIME, UNITS
from common.python.pairs.serving import is_serving_goal
from common.python.results import BASELINE, OPTIMIZED, Change, PairTiming, Share, StopReason, Unit, Verdict, VerdictKind
from common.python.session.planning import CPU_SHAPE, Plan
from common.python.settings import Device, Settings
from common.python.wording import percent_text

SHARE_BAND_PERCENT = 3.0
ANOTHER_DEVICE_PERCENT = 5.0
BRIEF_ON_ANOTHER_DEVICE_PERCENT = 15.0
OF_A_HOST_PERCENT = 30.0
SCATTERED_PERCENT = 5.0  # the widest band that an accepted row may need because of its own scatter
_OF_GOAL_PERCENT = {
    SETUP: 10.0,  # most of which is a host's: imports, compilers, files
    ENERGY: 5.0,  # a guess until joules were repeated on several GPUs: leakage goes with the temperature
}
SERVING_PERCENT = 10.0  # of figures of served requests, whose loops are a host's: a guess until A/A trials of them are kept
"""Of a ratio or a share accepted on another GPU of the model, for steps of 30 µs and more and for others; and where launches count, on any
GPU. In 78 comparisons of rows between H200s (2026-11-22) the ratios of the first changed by 4.1 % at most and the shares of optimized sides
by 4.3, but for one row, whose baseline changed by 10.8; of the second, by 13.7 and 11.0. 100 launches against a graph of them were 1.90,
2.13 and 2.37x on three such machines (2026-11-23), and 3.37 and, four minutes later, 2.81x on one: the launches took its host 474 µs and
387, the graph 141 and 138 (2026-11-24)."""
_ELSEWHERE_PERCENT = dict.fromkeys(StepClass, BRIEF_ON_ANOTHER_DEVICE_PERCENT) | {
    StepClass.LONG: ANOTHER_DEVICE_PERCENT,
    StepClass.LAUNCH: OF_A_HOST_PERCENT,
    StepClass.SETUP: OF_A_HOST_PERCENT,
    StepClass.SERVING: OF_A_HOST_PERCENT,
}
_TIME_IS_SHOWN = (SETUP, MEMORY, ENERGY)  # goals beside which it is not gated
SPEEDUP = "speedup"
NOISE_COMMAND = "noise"
UNGATED = "library"  # a side of whose share of the ceiling nothing is expected
PROMOTION = "; promote it with --accept-regressions?"

Ratios = Mapping[tuple[str, str], Mean]
"""What the gated ratios of one side are held to, by the two sides that each is a ratio of."""


def name_of(side: str, goal: str) -> str:
    """What a gated side is called: the optimized one by what the pair is the ratio of, a rung by the ends that it is held to."""
    if side == OPTIMIZED:
        return SPEEDUP if goal == TIME else goal
    return f"rung {side} over both ends"


def changes_of(
    units: Sequence[Unit], goal: str, expected: Mapping[str, Ratios], band_percent: float, known: Known | None = None
) -> dict[str, Change]:
    """How far each side is from what is expected of its ratios; nothing of one that `units` do not have them of."""
    found = {side: [(gated_logs(units, goal, sides), mean) for sides, mean in ratios.items()] for side, ratios in expected.items()}
    return {
        side: change_in_all([Difference.between(Mean.of(logs, known), mean) for logs, mean in ratios], band_percent)
        for side, ratios in found.items()
        if ratios and all(len(logs) > 1 for logs, _ in ratios)
    }


def is_open(side: str, change: Change) -> bool:
    """Whether a side needs more units to be decided. For a rung of a ladder, only whether it is worse has to be decided."""
    return not is_told(change) and (side == OPTIMIZED or may_be_worse(change))


def more_units(units: Sequence[Unit], goal: str, side: str, ratios: Ratios, band_percent: float, most: int = FORESEEN_UNITS) -> int | None:
    """How many more units would decide a side, if they go on like `units`; None if not even `most` in all would."""
    seen = [(gated_logs(units, goal, sides), mean) for sides, mean in ratios.items()]
    return units_needed(seen, band_percent, lambda change: not is_open(side, change), most)


@dataclass(frozen=True)
class Standard:
    """What the gated ratios of one timing are held to: the pair's to `expected` logs, each rung's two to their own.

    No change within `least_band` percent counts. `gated` is how many figures the run gates in all.
    """

    expected: Mean
    goal: str
    gated: int
    rungs: Mapping[str, Ratios] = field(default_factory=dict)
    least_band: float = 0.0

    def change(self, units: Sequence[Unit], band_percent: float, known: Known | None) -> Change:
        """The change of the pair's ratio that `units` show."""
        return self.changes(units, band_percent, known)[OPTIMIZED]

    def changes(self, units: Sequence[Unit], band_percent: float, known: Known | None) -> dict[str, Change]:
        """The change of each gated side, the optimized one's first, which is the pair's."""
        return changes_of(units, self.goal, self.sides, max(band_percent, self.least_band), known)

    @property
    def sides(self) -> dict[str, Ratios]:
        """What the ratios of each gated side are held to, the optimized one's first."""
        return {OPTIMIZED: {PAIR: self.expected}, **self.rungs}

    def is_decided(self, side: str, change: Change) -> bool:
        """Whether no further unit is needed for a side. Red is only decided when it would stand among all that the run gates."""
        if change.kind is VerdictKind.REGRESSED:
            return change.p_worse <= FALSE_DISCOVERY / self.gated
        return not is_open(side, change)


@dataclass(frozen=True)
class Allowance:
    """What noise allows steps of one class: no change within `band_percent` counts.

    `floor_percent` is the class's noise floor, and `known` the deviation between process pairs that it knows, for a few units only; None
    where this machine's floor is not kept.
    """

    step: StepClass
    band_percent: float
    floor_percent: float | None
    known: Known | None


class Standards:
    """The standards of a run. Reads every file that they come from when it is made. Raises BenchmarkError, naming it, for a bad one."""

    def __init__(self, settings: Settings, machine: Machine, plans: Sequence[Plan]) -> None:
        self._settings = settings
        self._files: dict[str, Expectations] = {}
        self._device = machine.gpus[0].uuid if machine.gpus else ""
        # Two sides that should be alike are held to no change: a side against its own past, and the pairs that measure noise.
        self._alike = settings.against is not None or settings.command == NOISE_COMMAND
        self.noise: Noise = read_noise(noise_path(machine_key(machine, first_gpu(settings, machine))))
        for plan in plans:
            if key := gpu_key(plan.gpus):
                self._files[plan.target] = read_expectations(expectations_path(plan.selection.pair.workload.parent, key))
        timings = [(plan, shape) for plan in plans for shape in plan.timed]
        self._gated = sum(self._figures(plan, shape) for plan, shape in timings if not self.exempts(plan, shape))

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
        """The standard that the gate compares this timing with. None if nothing comparable was accepted, or if the run is exempt."""
        if self.exempts(plan, shape):
            return None
        if self._alike:
            return Standard(NO_CHANGE, TIME, self._gated)
        expectation = self._expected(plan, shape)
        if expectation is None or expectation.differs_from(_conditions(plan, shape)):
            return None
        rungs = expectation.means_of(rungs_between(plan.sides))
        least_band, _ = self._least_band(expectation)
        return Standard(Mean.of(expectation.logs), plan.described.goal, self._gated, rungs, least_band)

    def allowance(self, plan: Plan, units: Sequence[Unit]) -> Allowance:
        """What this machine's noise makes of steps like these."""
        goal = plan.described.goal
        step = StepClass.SETUP if plan.is_cold else StepClass.SERVING if plan.serves else class_of_units(plan.clock, units)
        least = SERVING_PERCENT if plan.serves else _OF_GOAL_PERCENT.get(goal, 0.0)
        band = max(self.noise.band_percent(self._settings.gate, step), least)
        if goal in UNITS:  # what is known of noise is known of times
            return Allowance(step, band if goal == ENERGY else self._settings.gate, self.noise.percent.get(step), None)
        known = self.noise.known(step) if len(units) < LEAST_UNITS else None
        return Allowance(step, band, self.noise.percent.get(step), known)

    def verdict(self, plan: Plan, shape: str, timing: PairTiming) -> Verdict | None:
        """The gate's verdict on this timing; None if the run or the row is exempt from gating."""
        if self.exempts(plan, shape):
            return None
        if timing.stop_reason is StopReason.THROTTLED:
            return Verdict(kind=VerdictKind.INCONCLUSIVE, sentence="not gated: the device throttled; let it cool and run again")
        expectation = None if self._alike else self._expected(plan, shape)
        standard = self.of(plan, shape)
        if standard is None or not gated_logs(timing.units, standard.goal):
            return Verdict(kind=VerdictKind.NEW, sentence=f"not gated: {self._why_new(plan, shape)}")
        allowance = self.allowance(plan, timing.units)
        band = allowance.band_percent
        changes = standard.changes(timing.units, band, allowance.known)
        if expectation is None:
            return verdict_of(timing, changes, standard.sides, promotable=False)
        elsewhere = not self._is_of_this_device(expectation)
        beside = _share_changes(timing, expectation, standard.least_band, elsewhere=elsewhere) | _pace_changes(timing)
        found = verdict_of(timing, changes, standard.sides, beside, promotable=True)
        if elsewhere:
            found = _excused(found, timing.goal)
            if higher := [f"{name} {percent_text(each.percent)}" for name, each in beside.items() if _has_a_higher_ceiling(each)]:
                why = "no longer and no more cycles, as this GPU's ceiling is higher"
                found = found.model_copy(update={"sentence": f"{found.sentence}; {', '.join(higher)}: {why}"})
        if expectation.clock == "launch":
            found = _excused_by_its_host(found, timing, expectation)
        if standard.least_band > band:
            _, why = self._least_band(expectation)
            told = f"{found.sentence}; accepted {why}, so no change under {standard.least_band:.2g} % counts"
            found = found.model_copy(update={"sentence": told})
        new = [f"rung {side}" for side in rungs_between(plan.sides) if side not in standard.rungs]
        return found.model_copy(update={"sentence": f"{found.sentence}; nothing is expected of {', '.join(new)} yet"}) if new else found

    def _is_of_this_device(self, expectation: Expectation) -> bool:
        return bool(self._device) and expectation.provenance.device == self._device

    def _least_band(self, expectation: Expectation) -> tuple[float, str]:
        """The smallest change, in percent, that counts against what was accepted, and what of the acceptance makes it that."""
        half_width = expectation.ratio.half_width_percent
        known_to = 2 * half_width, f"as known to {half_width:.2g} %"  # to half of its --gate, if not better
        shortest = min(side.time_ns.estimate for side in expectation.sides.values())
        step = StepClass.SETUP if expectation.goal == SETUP else class_of(expectation.clock, shortest)
        step = StepClass.SERVING if is_serving_goal(expectation.goal) else step
        if expectation.goal in (MEMORY, ACCURACY):  # no device of the model needs fewer bytes, or rounds otherwise
            return known_to
        if not self._is_of_this_device(expectation):
            return max(known_to, (_ELSEWHERE_PERCENT[step], f"on another {expectation.provenance.gpu}"))
        if step is StepClass.LAUNCH:
            return max(known_to, (OF_A_HOST_PERCENT, "in another run, when its host may have launched slower or faster"))
        return known_to

    def _why_new(self, plan: Plan, shape: str) -> str:
        expectation = self._expected(plan, shape)
        if expectation is None:
            return f"nothing is expected of it on {key_text(self._files[plan.target].gpu)} yet"
        return expectation.differs_from(_conditions(plan, shape)) or f"it has no figure for {plan.described.goal} on both sides"

    def saturation_per_s(self, plan: Plan, shape: str) -> float:
        """The baseline's closed-loop throughput as it was accepted at this very shape, so that loads are equal; 0.0 where none is kept.

        Nor is one kept where the row is to be accepted: a side that has changed has another saturation, and loads are shares of it.
        """
        expectation = self._expected(plan, shape)
        if expectation is None or expectation.shape != plan.timed[shape] or self._settings.accept_regressions:
            return 0.0
        return expectation.saturation_per_s or 0.0

    def band_to_accept(self, plan: Plan, timing: PairTiming) -> float:
        """Percent; half of it is how well a ratio must be known to be accepted.

        A row that stayed wider though every unit, or all of its time, was spent on it scatters by itself or is dear: it is accepted
        up to `widest_accepted`, and gated by a band as wide as its interval.
        """
        allowance = self.allowance(plan, timing.units)
        if timing.stop_reason not in (StopReason.UNIT_CAP, StopReason.TIME_BUDGET):
            return allowance.band_percent
        return max(allowance.band_percent, widest_accepted(plan, is_held=timing.launch_latency_hidden))

    def accepted_counters(self, plan: Plan, shape: str) -> dict[str, dict[str, float]]:
        """What a step of each side counted when it was accepted, by side, where it was counted and is what the gate goes by."""
        expectation = None if self._alike else self._expected(plan, shape)
        return {side: each.counters for side, each in expectation.sides.items() if each.counters} if expectation else {}

    def _figures(self, plan: Plan, shape: str) -> int:
        """How many figures of this timing may be gated: each is one test, also a rung, whose two ratios make one."""
        expectation = None if self._alike else self._expected(plan, shape)
        if expectation is None:
            return int(self._alike)
        rungs, shares = expectation.means_of(rungs_between(plan.sides)), _accepted_shares(expectation)
        return 1 + len(rungs) + len(shares) + (expectation.goal == ACCURACY)

    def _expected(self, plan: Plan, shape: str) -> Expectation | None:
        file = self._files.get(plan.target)
        return file.pairs.get(plan.selection.pair.name, {}).get(shape) if file else None


def widest_accepted(plan: Plan, *, is_held: bool) -> float:
    """The band, in percent, up to which a row that scatters is accepted; `is_held`: no launch latency is in its times.

    What a host paces scatters with the host, and a cold start does nothing else: imports, compilers, files.
    """
    is_paced_by_host = plan.is_cold or (plan.described.goal not in (MEMORY, ACCURACY) and not is_held)
    return OF_A_HOST_PERCENT if is_paced_by_host else SCATTERED_PERCENT


def _conditions(plan: Plan, shape: str) -> dict[str, object]:
    described = plan.described
    return {"shape": plan.timed[shape], "goal": described.goal, "clock": plan.clock, "cache": described.cache}


def first_gpu(settings: Settings, machine: Machine) -> Gpu | None:
    """The GPU whose noise floor counts; None where a run is on the CPU."""
    return machine.gpus[0] if machine.gpus and settings.device is not Device.CPU else None


def _share_changes(timing: PairTiming, expectation: Expectation, least_band: float, *, elsewhere: bool) -> dict[str, Change]:
    """Each side's share of the ceiling against the one accepted, where the ceilings of both machines are known.

    `elsewhere`, on another GPU of the model, a share is only worse if the share at the held clock, or the time, is worse too: at its power
    limit each GPU holds another clock. The ceiling of bf16 was 794 TFLOP/s on one H200 and 841 on another. Eight sides that took both the
    same time, within 1.3 %, had shares 5.1 to 6.4 % lower on the second; at the held clock they were at most 1.4 % lower (2026-11-30).
    """
    changes, band = {}, max(SHARE_BAND_PERCENT, least_band)
    for side, then in _accepted_shares(expectation).items():
        share = timing.shares.get(side)
        if share is None or share.key != then.key:
            continue
        now = Mean.of([-math.log(median_ns(unit, side)) for unit in timing.units])
        before = Mean.of([-log for log in expectation.sides[side].logs_ns])
        found = Difference.between(_of(share.ceiling_ns, now), _of(then.ceiling_ns, before)).change(band)
        if elsewhere and (held_ns := _held_ns(share)) and (then_held_ns := _held_ns(then)):
            held = Difference.between(_of(held_ns, now), _of(then_held_ns, before)).change(band)
            found = _seconded(found, [held, Difference.between(now, before).change(band)])
        changes[f"share of {share.key} of {side}"] = found
    return changes


def _held_ns(share: Share) -> float | None:
    """The time at a ceiling of products at the clock that the side held."""
    return share.at_held_clock and share.ceiling_ns * share.at_held_clock / share.share


def _of(amount: float, mean: Mean) -> Mean:
    """`amount` times what `mean` is the logarithm of."""
    return replace(mean, value=mean.value + math.log(amount))


def _has_a_higher_ceiling(change: Change) -> bool:
    """Whether a share is lower beyond its band and counts as the same nevertheless, as `_seconded` found."""
    return change.kind is VerdictKind.SAME and change.percent.high < -change.band_percent


def _seconded(change: Change, others: Sequence[Change]) -> Change:
    """A change that is only worse if one of `others` is: else it counts as none."""
    p_worse = max(change.p_worse, min(other.p_worse for other in others))
    agrees = change.kind is not VerdictKind.REGRESSED or any(other.kind is VerdictKind.REGRESSED for other in others)
    return change.model_copy(update={"p_worse": p_worse, "kind": change.kind if agrees else VerdictKind.SAME})


def _pace_changes(timing: PairTiming) -> dict[str, Change]:
    """Whether the optimized side is as fast as the baseline, where what counts is the accuracy at that speed; faster is as good."""
    logs = gated_logs(timing.units, TIME) if timing.goal == ACCURACY else []
    if not logs:
        return {}
    change = Difference.between(Mean.of(logs), NO_CHANGE).change(AS_FAST_PERCENT)
    is_faster = change.kind is VerdictKind.IMPROVED
    return {SPEEDUP: change.model_copy(update={"kind": VerdictKind.SAME}) if is_faster else change}


def _excused(found: Verdict, goal: str) -> Verdict:
    """A red verdict, undecided where all that is red follows from another GPU's faster or slower baseline.

    Ten percent lie between the times that a baseline took on two H200s (ch07:memory_access, 2026-11-22), with the optimized side's alike.
    """
    red = {name for name, change in found.changes.items() if change.kind is VerdictKind.REGRESSED}
    shares = {name.rpartition(" of ")[2]: name for name in found.changes if name.startswith("share of ")}
    kinds = {side: found.changes[name].kind for side, name in shares.items()}
    baseline = {VerdictKind.IMPROVED: "faster", VerdictKind.REGRESSED: "slower"}.get(kinds.get(BASELINE, VerdictKind.SAME))
    is_as_fast = kinds.get(OPTIMIZED) in (VerdictKind.SAME, VerdictKind.IMPROVED)
    if found.kind is not VerdictKind.REGRESSED or not baseline or not is_as_fast or red - {name_of(OPTIMIZED, goal), shares[BASELINE]}:
        return found
    why = f"the baseline is {baseline} on this GPU and the optimized side is not slower, which is no regression"
    sentence = f"{found.sentence}; {why}; accept the row here to gate it"
    return found.model_copy(update={"kind": VerdictKind.INCONCLUSIVE, "sentence": sentence})


def _excused_by_its_host(found: Verdict, timing: PairTiming, expectation: Expectation) -> Verdict:
    """A red verdict where launches count, undecided where the host launches faster by now and the optimized side takes no longer.

    What a graph saves is what its host takes for launches: 100 took one 474 µs and, four minutes later, 387 (2026-11-24).
    """
    if found.kind is not VerdictKind.REGRESSED or timing.goal != TIME:
        return found
    kinds = {}
    for side in (BASELINE, OPTIMIZED):
        then = Mean.of([-log for log in expectation.sides[side].logs_ns])
        now = Mean.of([-math.log(median_ns(unit, side)) for unit in timing.units])
        kinds[side] = Difference.between(now, then).change(BRIEF_ON_ANOTHER_DEVICE_PERCENT).kind
    if kinds[BASELINE] is not VerdictKind.IMPROVED or kinds[OPTIMIZED] not in (VerdictKind.SAME, VerdictKind.IMPROVED):
        return found
    why = "the host launches the baseline faster than then, and the optimized side is not slower, which is no regression"
    return found.model_copy(
        update={"kind": VerdictKind.INCONCLUSIVE, "sentence": f"{found.sentence}; {why}; accept the row here to gate it"}
    )


def _accepted_shares(expectation: Expectation) -> dict[str, Share]:
    """Those that are gated: of a step by the device's clock alone, as another is as fast as its host, and where time counts."""
    if expectation.clock != "device" or expectation.goal in _TIME_IS_SHOWN:
        return {}
    return {side: accepted.share for side, accepted in expectation.sides.items() if accepted.share and side != UNGATED}


def verdict_of(
    timing: PairTiming,
    changes: Mapping[str, Change],
    expected: Mapping[str, Ratios],
    shares: Mapping[str, Change] = MappingProxyType({}),
    *,
    promotable: bool,
) -> Verdict:
    """The verdict that the changes of the gated sides make, the optimized one's first; undecided, it says what it would take.

    A share of the ceiling speaks only where it is decided: its band is wide, and it rests on an absolute time.
    """
    named = {name_of(side, timing.goal): change for side, change in changes.items()} | dict(shares)
    open_ones = [side for side, change in changes.items() if is_open(side, change)]
    speaking = {change.kind for change in [*changes.values(), *shares.values()]} & _DECIDED
    speaking |= {VerdictKind.INCONCLUSIVE if open_ones else VerdictKind.SAME}
    kind = next(kind for kind in _GRAVEST_FIRST if kind in speaking)
    own = changes[OPTIMIZED]
    if kind is VerdictKind.SAME:
        rungs = ", and no rung is worse" if len(changes) > 1 else ""
        sentence = f"{name_of(OPTIMIZED, timing.goal)} {percent_text(own.percent)}, within {own.band_percent:.2g} %{rungs}"
    elif kind is VerdictKind.INCONCLUSIVE:
        names = {name_of(side, timing.goal): changes[side] for side in open_ones}
        to_decide = what_it_takes(timing, {side: expected[side] for side in open_ones}, own.band_percent)
        sentence = f"cannot decide at {own.band_percent:.2g} %: {_listed(kind, names)}; {to_decide}"
    else:
        sentence = _listed(kind, named) + _which_end(timing, own, expected)
    if kind is VerdictKind.REGRESSED and (gained := _listed(VerdictKind.IMPROVED, named)):
        sentence += f"; {VerdictKind.IMPROVED}: {gained}"
    if kind is VerdictKind.IMPROVED and promotable:
        sentence += PROMOTION
    return Verdict(kind=kind, sentence=sentence, changes=named)


def _which_end(timing: PairTiming, own: Change, expected: Mapping[str, Ratios]) -> str:
    """Of a ladder whose speedup changed: over how many of its rungs either end changed too, which tells the end that did."""
    if own.kind not in _DECIDED or len(expected) == 1:
        return ""
    worse, better = VerdictKind.REGRESSED, VerdictKind.IMPROVED
    counts = []
    for end, kind in {BASELINE: own.kind, OPTIMIZED: better if own.kind is worse else worse}.items():
        alone = {side: {(end, side): ratios[end, side]} for side, ratios in expected.items() if side != OPTIMIZED}
        changes = changes_of(timing.units, timing.goal, alone, own.band_percent)
        count = sum(change.kind is kind for change in changes.values())
        counts.append(f"{count} {'worse' if kind is worse else 'better'} over {end}")
    return f"; of {len(expected) - 1} rungs {' and '.join(counts)}"


_DECIDED = {VerdictKind.REGRESSED, VerdictKind.IMPROVED}
_GRAVEST_FIRST = (VerdictKind.REGRESSED, VerdictKind.INCONCLUSIVE, VerdictKind.IMPROVED, VerdictKind.SAME)


def _listed(kind: VerdictKind, changes: Mapping[str, Change]) -> str:
    """The changes of one kind, with the band that a decided one is beyond."""
    beyond = {name: f", beyond {change.band_percent:.2g} %" if kind in _DECIDED else "" for name, change in changes.items()}
    return ", ".join(f"{name} {percent_text(change.percent)}{beyond[name]}" for name, change in changes.items() if change.kind is kind)


def what_it_takes(timing: PairTiming, expected: Mapping[str, Ratios], band_percent: float) -> str:
    """How many more units, and seconds, would decide all of these sides, if they go on like those of `timing`."""
    counts = [more_units(timing.units, timing.goal, side, ratios, band_percent) for side, ratios in expected.items()]
    more = [count for count in counts if count is not None]
    if len(more) < len(counts):
        return f"not even {FORESEEN_UNITS} units would: it lies at the band's edge, or too little is known of what it was"
    most = max(more, default=0)
    return f"about {most} more units, {most * timing.seconds / len(timing.units):.0f} s"
