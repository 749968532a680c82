"""A row with made-up counters and a made-up trace, no measurement: for tests of what is said of profiles."""

from common.python.profile.ncu import DRAM_BYTES, REGISTERS, SM_PERCENT, TIME
from common.python.results import SideProfile, StepTrace
from tests.support.factories import a_row, a_side

CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu.sum"
STALLS = {
    f"smsp__average_warps_issue_stalled_{name}_per_issue_active.ratio": value
    for name, value in {"wait": 1.5, "long_scoreboard": 8.0}.items()
}
BEFORE = {TIME: 84_700.0, DRAM_BYTES: 268_435_456.0, SM_PERCENT: 20.0, REGISTERS: 16.0, CONFLICTS: 33_000_000.0, **STALLS}
AFTER = {TIME: 36_700.0, DRAM_BYTES: 134_217_728.0, SM_PERCENT: 20.4, REGISTERS: 32.0, CONFLICTS: 0.0}
STEP = StepTrace(source="nsys", launches=2, kernels=3, copies=1, host_ns=5e3, span_ns=100e3, busy_ns=90e3, overlap_share=0.5)


def profiled_row(**changes):
    profiles = {
        "baseline": SideProfile(step=STEP, kernels={"naive(float *)": BEFORE}, counters=BEFORE),
        "optimized": SideProfile(kernels={"tiled(float *)": AFTER}, counters=AFTER),
    }
    return a_row(sides={side: a_side(side, profile=profile) for side, profile in profiles.items()}, **changes)
