"""Heat in a plate: `steps` explicit steps of the five-point stencil in float32; the edge keeps its temperature.

Predicted: 1.5x. The host needs 2.4 us per launch, the device 1.5 us per step: the host is the slower of the two.

Measured: RESULTS.md. The gain is larger.

Why: a launch took this host longer than assumed, and the step of a graph took the device about what was assumed.
How long a launch takes differs between hosts and runs, so the ratio does too.
"""
# traffic: 256 KB stay in the L2, so DRAM gives them once and takes nothing; of 100 kernels a step ncu counts none

import torch

from common import Spec, Workload


def inputs(rand, rows, cols, rate, steps):
    return {"x": rand.uniform(rows, cols)}


def outputs(rows, cols, rate, steps):
    return {"y": Spec((rows, cols), torch.float32)}


def reference(x, rate, steps):
    y = x.clone()
    for _ in range(steps):
        here = y[1:-1, 1:-1]
        around = y[:-2, 1:-1] + y[2:, 1:-1] + y[1:-1, :-2] + y[1:-1, 2:]
        y[1:-1, 1:-1] = here + rate * (around - 4 * here)
    return y


def work(rows, cols, rate, steps):
    return {
        "launch": 1,
        "fp32_fma": 6 * rows * cols * steps,  # (1 - 4 rate) here + rate around: 4 additions, 2 products
        "dram_read": 4 * rows * cols,
        "dram_write": 4 * rows * cols,
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at={"rows": 256, "cols": 256, "rate": 0.2, "steps": 100},  # 256 KB: a step of a microsecond or two
    check_at=(
        {"rows": 1, "cols": 1, "rate": 0.2, "steps": 1},
        {"rows": 2, "cols": 40, "rate": 0.2, "steps": 3},  # all edge
        {"rows": 3, "cols": 5, "rate": 0.25, "steps": 2},
        {"rows": 33, "cols": 65, "rate": 0.2, "steps": 7},
        {"rows": 40, "cols": 9, "rate": 0.1, "steps": 100},
    ),
    work=work,
    # Temperatures are at most 1. In float32 the reference is off by 1.5e-7 after 100 steps, the baseline, emulated, by 1.3e-7 after 7.
    rtol=2e-7,
    atol=3e-7,
    clock="launch",
)
