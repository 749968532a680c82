"""Squared distance of every point to the nearest of some centers: y[i] = min over c of |x[:, i] - centers[c]|^2, in 3 or 8 dimensions.

Expected 2x, from the loads, and 2.72x on an H200, from the instructions: for a center of 8 features the baseline runs 75, as the compiler
makes loops by 16, 8, 4 and 1 of one that may have any length, and the optimized side 28. Either side issues 0.7 a cycle and scheduler: 75
or 28 for each of 256 centers and 62 warps a scheduler, over its time at 1.98 GHz.

What stops the optimized side at 27 % of its ceiling: of the 28, 8 multiply and add, and 8 load a center's feature, one a cycle an SM, which
is 257 us of the 314; l1tex__throughput is 86 %.
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
    work=lambda n, count, dims: {"fp32": 2 * n * count * dims, "dram_read": 4 * dims * (n + count), "dram_write": 4 * n},
    # The sides, emulated, are off by 3.4e-7, 6 roundings, in the worst of 80 000 points; times 3.
    rtol=1e-6,
    atol=0.0,
)
