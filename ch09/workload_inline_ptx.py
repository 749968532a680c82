"""Distances of n points in space from the first m of them, times their weights: y[i] = sum over j < m of w[j] |p[i] - p[j]|, in float32.

The pair was to be loads with cache hints and a prefetch against ordinary ones. It was, and gave 0.90x on an H200 (the row of 2026-11-22 in
commit 8f698d7), so it became one in which a line of PTX gains something; those loads are in inline_ptx_example.cu.
"""

import torch

from common import Spec, Workload


def potential(points, m):
    """The sums, from rows of x, y, z and w: the potential of the energy distance, which tells samples of two distributions apart."""
    *place, weight = points.T
    squares = sum((along[:, None] - along[:m]).square() for along in place)
    return squares.sqrt() @ weight[:m]


# What to expect: nothing moves but instructions. A scheduler issues one for a warp in a cycle, and a warp's root keeps the unit for it, 4
# lanes wide, for 8 cycles (CUDA programming guide, throughput of arithmetic instructions: 128 FMAs and 16 roots a cycle and SM, 9.0). A
# distance is 3 differences, a product, 2 FMAs, its root, an FMA to sum it, a load of 16 bytes from shared memory and 3/8 of the loop's end.
# As one instruction its root makes 9.4; sqrtf is 10, among them a branch, with an address more in 8 of them, and makes 18.5: 1.97x. On 132
# SMs at 1.98 GHz that issue in every cycle that is 297 us and 150 us, with the root's unit busy for 8 of 9.4 cycles.
#
# An H200 took 386 us and 208 (2026-11-22). The instructions are as many as was said, 18.6 and 9.5 a distance (32 x smsp__inst_executed.sum
# over n m), but the SMs issue in 78 and 74 % of all cycles (sm__throughput), not in every one: that stops either side. The optimized one
# has room for 6 blocks an SM and not 8, by its registers (launch__occupancy_limit_registers), so that its 1024 blocks are 1.3 waves, and
# 58 % of all warps are there, where the baseline has 65 (sm__warps_active). Whether 8 blocks would issue more is open.
WORKLOAD = Workload(
    inputs=lambda rand, n, m: {"points": rand.uniform(n, 4)},
    outputs=lambda n, m: {"y": Spec((n,), torch.float32)},
    reference=potential,
    time_at={"n": 1 << 18, "m": 2048},  # 8 blocks of 256 an SM; the reference needs 3 x 4.3 GB for float64 distances
    check_at=({"n": 1, "m": 1}, {"n": 255, "m": 3}, {"n": 1025, "m": 257}, {"n": 600, "m": 512}),
    # 3 differences, a product, 2 FMAs, a root and an FMA.
    work=lambda n, m: {"fp32": 11 * n * m, "dram_read": 16 * n, "dram_write": 4 * n},
    # Sums of 512 are off by at most 7.0e-7 with sqrtf, and by 7.6e-7 with roots that are all 2^-23 too large (simulated); times 2.
    rtol=1.5e-6,
    atol=0.0,
)
