"""Sum of an array of float32: y[0] = sum over i of x[i]."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.uniform(n)},
    outputs=lambda n: {"y": Spec((1,), torch.float32)},
    reference=lambda x: x.sum(dim=0, keepdim=True),
    time_at={"n": 1 << 29},  # 2 GiB, so that the second launch, which adds up what the blocks have, is less than a hundredth
    check_at=(
        {"n": 1},
        {"n": 1023},
        {"n": 4096},  # a tile of the optimized side, four of the baseline
        {"n": 50_001},
    ),
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4},
    # The sides, emulated, are off by 3e-8 at 2^20. Chains of 2032, as in `time_at`, are by 2.5e-6 at most, 65536 of them together by 3e-9.
    # The fold has 17 roundings of 6e-8, most of which cancel.
    rtol=1e-6,
    atol=0.0,
)
