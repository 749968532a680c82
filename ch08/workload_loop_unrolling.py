"""Squared distance of every point to the nearest of some centers: y[i] = min over c of |x[:, i] - centers[c]|^2, in 3 or 8 dimensions.

Predicted: half the time, for half the loads. Measured: RESULTS.md; the gain is larger.

Why: instructions set the baseline's time, loads the optimized side's. A loop of unknown length is compiled as loops by 16, 8, 4 and 1.
For a center of 8 features a warp of the baseline issues 75 instructions, at 4 per cycle and SM in 19 cycles; its 16 loads start in 16.
A warp of the optimized side issues 28 in 7 cycles; its 8 loads start in 8. Of the 28 only 8 are FMAs, so it stays below its ceiling.
The counters agree (H200): of sm__throughput and l1tex__throughput the first is higher in the baseline, the second in the optimized side.
"""

import torch

from common import Spec, Workload


def reference(x, centers):
    return torch.stack([(x - center[:, None]).square().sum(dim=0) for center in centers]).amin(dim=0)


WORKLOAD = Workload(
    inputs=lambda rand, n, count, dims: {"x": rand.normal(dims, n), "centers": rand.normal(count, dims)},
    outputs=lambda n, count, dims: {"y": Spec((n,), torch.float32)},
    reference=reference,
    time_at={"n": 1 << 20, "count": 256, "dims": 8},
    check_at=(
        {"n": 1, "count": 1, "dims": 3},
        {"n": 257, "count": 7, "dims": 3},
        {"n": 255, "count": 33, "dims": 8},
        {"n": 3001, "count": 2, "dims": 8},
    ),
    # A product a feature would do, of |x|^2 - 2 x c + |c|^2; a subtraction and a product lose nothing to cancellation.
    work=lambda n, count, dims: {"fp32_fma": 2 * n * count * dims, "dram_read": 4 * dims * (n + count), "dram_write": 4 * n},
    # The sides, emulated, are off by 3.4e-7, 6 roundings, in the worst of 80 000 points; times 3.
    rtol=1e-6,
    atol=0.0,
)
