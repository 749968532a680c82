"""Copy an array of float32: y[i] = x[i]."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda x: x.clone(),
    time_at={"n": 1 << 26},  # 256 MiB each way: more than four times an L2 of 60 MB
    check_at=(
        {"n": 1},
        {"n": 7},  # less than a run
        {"n": 2048},  # one block exactly
        {"n": 2049},
        {"n": 100_003},  # prime: ends inside a run, a warp and a block
    ),
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4 * n},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
