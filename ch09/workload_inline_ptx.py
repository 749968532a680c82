"""Distances of n points in space from the first m of them, times their weights: y[i] = sum over j < m of w[j] |p[i] - p[j]|, in float32."""

import torch

from common import Spec, Workload


def potential(points, m):
    """The sums, from rows of x, y, z and w: the potential of the energy distance, which tells samples of two distributions apart."""
    *place, weight = points.T
    squares = sum((along[:, None] - along[:m]).square() for along in place)
    return squares.sqrt() @ weight[:m]


# Predicted: only instructions take time. A scheduler issues one instruction of a warp per cycle. A warp's root keeps its unit, which is 4
# lanes wide, busy for 8 cycles (CUDA programming guide, throughput of arithmetic instructions: 128 FMAs and 16 roots per cycle and SM).
# A distance is 3 differences, a product, 2 FMAs, a root, an FMA to sum it, a 16-byte load from shared memory and 3/8 of the loop's end.
# With the root as one instruction that is 9.4. sqrtf is 10 instructions, among them a branch, and one more in 8 of them: 18.5.
#
# Measured: RESULTS.md. Both sides take longer, and their errors cancel.
#
# Why: instructions are as predicted, 18.6 and 9.5 per distance (32 x smsp__inst_executed.sum / (n m), H200). But the SMs issue
# in 78 and 74 % of the cycles (sm__throughput), not in all. The optimized side's registers leave room for 6 blocks per SM instead of 8
# (launch__occupancy_limit_registers): 1024 blocks are 1.3 waves. Whether 8 blocks would issue more is open.
# not_selected is the largest stall in both sides, so several warps are ready on average. But sm__warps_active is 65 % in the baseline,
# where equal blocks, 8 of which fit an SM, would keep it at 97 % to the end. It is 58 of at most 75 % in the optimized side.
# Hypothesis: blocks end one after another, and the last ones alone issue less.
WORKLOAD = Workload(
    inputs=lambda rand, n, m: {"points": rand.uniform(n, 4)},
    outputs=lambda n, m: {"y": Spec((n,), torch.float32)},
    reference=potential,
    time_at={"n": 1 << 18, "m": 2048},  # 8 blocks of 256 an SM; the reference needs 3 x 4.3 GB for float64 distances
    check_at=({"n": 1, "m": 1}, {"n": 255, "m": 3}, {"n": 1025, "m": 257}, {"n": 600, "m": 512}),
    # 3 differences, a product, 2 FMAs, a root and an FMA.
    work=lambda n, m: {"fp32_fma": 11 * n * m, "dram_read": 16 * n, "dram_write": 4 * n},
    # Sums of 512 are off by at most 7.0e-7 with sqrtf, and by 7.6e-7 with roots that are all 2^-23 too large (simulated); times 2.
    rtol=1.5e-6,
    atol=0.0,
)
