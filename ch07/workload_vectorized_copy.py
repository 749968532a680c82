"""Copy an array of float32, by accesses of 4, 16 or 32 bytes a thread: y[i] = x[i].

Expected 1.3x, and 1.56x on an H200 (2026-11-22): the baseline moves 2.7 TB/s, not the 3.3 that 8 KB in flight allow. A profile confirms
that the place of a block is empty until the next one is started there: sm__warps_active is 71 % in hbm_copy, which has this baseline, and
67 in that of tma_copy, so that 5.8 KB are in flight. A warp lives for 540 ns, and its place stays empty for 240: blocks of 1 KB start 0.74
ns apart in all, and cannot start less than 0.62 apart (tuning run). Memory is 55 % busy (gpu__dram_throughput).
"""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda x: x.clone(),
    time_at={"n": 1 << 26},  # 256 MiB each way: more than four times an L2 of 60 MB
    check_at=(
        {"n": 1},
        {"n": 7},  # one vector of 4 and three floats; less than a vector of 8
        {"n": 1024},  # one block of vectors of 4 exactly
        {"n": 2051},  # one block of vectors of 8, and three floats
        {"n": 100_003},
    ),
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4 * n},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
