"""The work of copies by vectors: an array of float32, y[i] = x[i], of any length."""

import torch

from common import Spec, Workload

COPY = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda x: x.clone(),
    time_at={"n": 1 << 26},  # 256 MiB each way: more than four times the H200's L2 of 60 MB
    check_at=(
        {"n": 1},
        {"n": 7},  # one vector of 4 and 3 floats; less than one vector of 8
        {"n": 1024},  # exactly one block of vectors of 4
        {"n": 2051},  # one block of vectors of 8, and 3 floats
        {"n": 100_003},
    ),
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4 * n},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
