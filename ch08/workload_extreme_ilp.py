"""Sum of an array of float32: y[0] = sum over i of x[i].

The pair shows that either way is enough: 64 warps with one load each, or 16 warps with eight loads or more each.

Predicted: a guess. Measured: RESULTS.md; there was hardly anything to gain, as the baseline is near the ceiling.

Why: DRAM is 92 % busy in the baseline, 95 % in the optimized side, 92 % in CUB's sum (gpu__dram_throughput, H200).
"""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.uniform(n)},
    outputs=lambda n: {"y": Spec((1,), torch.float32)},
    reference=lambda x: x.sum(dim=0, keepdim=True),
    time_at={"n": 1 << 29},  # 2 GiB, so that adding up what the blocks have is less than a hundredth
    check_at=(
        {"n": 1},
        {"n": 1023},
        {"n": 8192},  # a tile of the optimized side, eight of the baseline
        {"n": 50_001},
    ),
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4},
    # Chains of 1992, as in `time_at`, are off by 3.2e-6 at most, 270336 of them together by 2e-10.
    # The fold has 30 roundings of 6e-8, most of which cancel: 1.5e-7 at most in 40 that were simulated.
    rtol=1e-6,
    atol=0.0,
)
