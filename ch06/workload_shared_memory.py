"""Moving weighted average: y[i] = sum over k of weights[k] * x[i + k], for 129 weights.

Predicted: 258 wavefronts of the L1 per warp, 129 for x and 129 for weights, become 129 + 33 = 162, as four weights come in one access.
From constant memory weights come through another cache (ULDC, two a load), so 129 are left.

Measured: RESULTS.md. The gain is smaller than predicted.

Why: a 16-byte access that all lanes share takes two wavefronts, not one (counted in ch07:smem_tiling). So 129 + 65 are 194, and some 200
with those that fill the tile. A warp takes 205 cycles of an SM, and 292 in the baseline (H200).
l1tex__throughput is 99 % then, and 96 % in the baseline: wavefronts set the time of both.
An unaligned read of 128 bytes costs the L1 one wavefront, not two, so the tile of x saves none: the gain is that of the weights.
Vectorized accesses are chapter 7's lesson.
The kept row's share is of `fp32`, the rate of a product. Of `fp32_fma`, which `work` names now, it is a fifth smaller.
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
    ladder=("constant",),
    time_at={"n": 1 << 24},
    check_at=({"n": 1}, {"n": 255}, {"n": 257}, {"n": 10_007}),
    work=lambda n: {"fp32_fma": 2 * TAPS * n, "dram_read": 4 * n, "dram_write": 4 * n},
    # In this order of summation FMAs are off by at most 1.8e-5, |y| up to 38, over 2 M values on a CPU; times 2.
    rtol=1e-6,
    atol=3e-5,
    constants=("weights",),
)
