"""Moving weighted average: y[i] = sum over k of weights[k] * x[i + k], for 129 weights.

Expected 1.6x, and 1.42x on an H200: four weights that all lanes share take shared memory two turns, not one (counted in ch07's
smem_tiling). So 129 turns for x and 65 for weights are 194, and some 200 with those that fill the tile; a warp takes an SM 205 cycles, 292
in the baseline. That is what stops it at 20 % of its ceiling: 1.5 turns for an FMA of 32 lanes, and l1tex__throughput is 99 %. In the
baseline it is 96, and 292 cycles are too few for two turns of 31 in 32 windows: one that lies across two lines of the L1 takes one turn
too, so that the tile saves none, and the weights all.
"""

import torch

from common import Spec, Workload

TAPS = 129


def reference(x, weights):
    return x.unfold(0, TAPS, 1) @ weights


WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n + TAPS - 1), "weights": rand.uniform(TAPS)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=reference,
    time_at={"n": 1 << 24},
    check_at=({"n": 1}, {"n": 255}, {"n": 257}, {"n": 10_007}),
    work=lambda n: {"fp32": 2 * TAPS * n, "dram_read": 4 * n, "dram_write": 4 * n},
    # In this order of summation FMAs are off by at most 1.8e-5, |y| up to 38, over 2 M values on a CPU; times 2.
    rtol=1e-6,
    atol=3e-5,
    constants=("weights",),
)
