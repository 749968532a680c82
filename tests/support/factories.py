"""Small results for tests: legal by default, each argument changes one thing."""

from __future__ import annotations

import math
import random
from typing import Any

from common.python.errors import Status
from common.python.gate.expectations import Expectation, Provenance, expectation_of
from common.python.gate.statistics import gains_of, rungs_of, speedups_of, times_of
from common.python.results import (
    Block,
    Change,
    Check,
    Interval,
    OutputError,
    PairResult,
    PairTiming,
    Proof,
    Run,
    Setup,
    Share,
    SideResult,
    StopReason,
    Unit,
    Verdict,
)
from common.python.settings import Settings

MACHINE = {
    "cpu": "Some CPU",
    "cores": 2,
    "gpus": [{"name": "NVIDIA H200", "driver": "580.1"}],
    "packages": {"torch": "2.13.0"},
    "project": {"commit": "0123456789abcdef", "dirty": True},
}


def a_run(settings: Settings | None = None, **changes: Any) -> Run:
    fields: dict[str, Any] = {
        "run_id": "20260102_030405",
        "seed": 7,
        "settings": (settings or Settings()).model_dump(mode="json"),
        "environment": MACHINE,
        "started": "2026-01-02T03:04:05",
    }
    return Run(**fields | changes)


def an_interval(estimate: float, half_width: float) -> Interval:
    return Interval(estimate=estimate, low=estimate - half_width, high=estimate + half_width)


def a_timing(sides_ns: dict[str, float] | None = None, **changes: Any) -> PairTiming:
    """A timing with a half-width of 0.03 on each speedup; `sides_ns` holds a side's time."""
    times = {"baseline": 84_700.0, "optimized": 36_700.0} if sides_ns is None else sides_ns
    speedups = {side: an_interval(times["baseline"] / ns, 0.03) for side, ns in times.items() if side != "baseline" and "baseline" in times}
    blocks = {side: (Block(seed=1, samples_ns=(ns, ns + 1)), Block(seed=3, samples_ns=(ns,))) for side, ns in times.items()}
    fields: dict[str, Any] = {
        "shape": {"n": 1024, "causal": True, "eps": 1.0},
        "device": "cuda",
        "clock": "device",
        "cache": "cold",
        "mode": "burst",
        "launch_latency_hidden": True,
        "units": (Unit(order=tuple(times), blocks=blocks),) * 6,
        "time_ns": {side: an_interval(ns, ns / 100) for side, ns in times.items()},
        "speedups": speedups,
        "stop_reason": StopReason.PRECISE,
    }
    return PairTiming(**fields | changes)


def a_side(name: str = "optimized", **changes: Any) -> SideResult:
    check = Check(shape={"n": 33}, seed=1, timed_call=False, outputs={"y": OutputError(max_abs=1.5e-6, max_rel=2.5e-7, mismatched=0.0)})
    setup = Setup(build_s=1.0, load_s=0.01, prepare_s=0.25 if name == "baseline" else 0.5, first_call_s=0.002)
    return SideResult(**{"file": f"ch07/{name}_transpose.cu", "setup": setup, "peak_memory_bytes": 3 << 20, "checks": (check,)} | changes)


def a_row(target: str = "ch07:transpose", **changes: Any) -> PairResult:
    """A row that passed, timed at one shape, unless `changes` say otherwise."""
    fields: dict[str, Any] = {
        "target": target,
        "workload_file": "ch07/workload_transpose.py",
        "status": Status.PASSED,
        "sides": {side: a_side(side) for side in ("baseline", "optimized")},
        "timings": {"default": a_timing()},
        "seconds": 7.25,
    }
    fields |= changes
    if "sides" not in changes:
        fields["sides"] |= {side: a_side(side) for timing in fields["timings"].values() for side in timing.time_ns}
    return PairResult(**fields)


def a_failure(status: Status = Status.WRONG_RESULT, **changes: Any) -> PairResult:
    """A row that did not pass, and so has no timing."""
    return a_row(**{"target": "ch07:broken", "status": status, "reason": "y[3] is 1; expected 2", "timings": {}} | changes)


def a_proof(state: str = "proven", claim: str = "UTCHMMA present") -> Proof:
    return Proof.model_validate({"side": "optimized", "claim": claim, "state": state, "detail": "24 in optimized_x.so"})


def a_verdict(kind: str = "SAME", sentence: str = "speedup +0.1 %", **changes: Any) -> Verdict:
    return Verdict.model_validate({"kind": kind, "sentence": sentence} | changes)


def a_change(kind: str = "SAME", percent: float = 0.1, **changes: Any) -> Change:
    """A change with a half-width of 0.2 %."""
    fields = {"kind": kind, "percent": an_interval(percent, 0.2), "band_percent": 0.5, "p_worse": 1e-6 if kind == "REGRESSED" else 0.9}
    return Change.model_validate(fields | changes)


def recorded_units(
    ratio: float = 2.0, baseline_ns: float = 80_000.0, *, count: int = 8, deviation: float = 0.0025, seed: int = 0
) -> tuple[Unit, ...]:
    """Synthetic units, no measurement: times drawn around `baseline_ns` and a speedup of `ratio`, `deviation` between process pairs."""
    draws = random.Random(seed)
    units = []
    for number in range(count):
        order = ("baseline", "optimized") if number % 2 == 0 else ("optimized", "baseline")
        baseline = baseline_ns * math.exp(draws.gauss(0, 0.002))
        times = {"baseline": baseline, "optimized": baseline / ratio * math.exp(draws.gauss(0, deviation))}
        units.append(Unit(order=order, blocks={side: (Block(seed=number, samples_ns=(times[side],) * 3),) for side in order}))
    return tuple(units)


def recorded_ladder(times_ns: dict[str, float], *, count: int = 8, deviation: float = 0.0025, seed: int = 0) -> tuple[Unit, ...]:
    """Synthetic units of a ladder, no measurement: times drawn around those of its sides, which are in their order."""
    draws = random.Random(seed)
    units = []
    for number in range(count):
        drawn = {side: (ns * math.exp(draws.gauss(0, deviation)),) * 3 for side, ns in times_ns.items()}
        order = tuple(times_ns) if number % 2 == 0 else tuple(reversed(times_ns))
        units.append(Unit(order=order, blocks={side: (Block(seed=number, samples_ns=samples),) for side, samples in drawn.items()}))
    return tuple(units)


def a_recorded_timing(
    baseline_ns: float = 80_000.0, ratio: float = 1.0, *, seed: int = 0, units: tuple[Unit, ...] = (), **changes: Any
) -> PairTiming:
    """A timing with synthetic units, and figures that follow from them."""
    units = units or recorded_units(ratio, baseline_ns, seed=seed)
    times = times_of(units)
    figures = {"time_ns": {side: times[side] for side in units[0].blocks}, "speedups": speedups_of(units), "gains": gains_of(units)}
    rungs = rungs_of(units, tuple(units[0].blocks), changes.get("goal", "time"))
    return a_timing(**{"units": units, "rungs": rungs} | figures | changes)


def a_provenance(**changes: Any) -> Provenance:
    """Of a GPU that does not exist, that of the tests' plans: what tests expect was never measured."""
    fields = {"run_id": "20260102_030405", "date": "2026-01-02", "gpu": "NVIDIA Test", "driver": "1", "cuda": "", "torch": "", "triton": ""}
    rest = {"device": "GPU-of-a-test", "commit": "0" * 40, "dirty": False, "sm_clock_mhz": 1980.0, "memory_clock_mhz": None, "ceilings": ""}
    return Provenance.model_validate(fields | rest | changes)


def an_expectation(
    ratio: float = 2.0, units: tuple[Unit, ...] = (), goal: str = "time", shares: dict[str, Share] | None = None, **changes: Any
) -> Expectation:
    """What synthetic units would let us expect."""
    units = units or recorded_units(ratio, count=24, seed=1)
    if goal != "time":
        units = tuple(unit.model_copy(update={"gains": {"optimized": ratio}}) for unit in units)
    row = a_row(timings={"default": a_recorded_timing(units=units, goal=goal, shares=shares or {})})
    timing = row.timings["default"]
    return expectation_of(row, timing, (timing.gains or timing.speedups)["optimized"], a_provenance()).model_copy(update=changes)
