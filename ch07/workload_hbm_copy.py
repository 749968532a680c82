"""Copy an array of float32 that no cache holds, as fast as the memory allows: y[i] = x[i].

Expected 1.3x, and 1.58x on an H200: the baseline is that of workload_vectorized_copy.py, which says what its blocks of 1 KB cost.
"""

# baseline: ch07/baseline_vectorized_copy.cu
import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda x: x.clone(),
    time_at={"n": 1 << 27},  # 512 MiB each way: 9 times an L2 of 60 MB, so what it holds at the end, and memory has not got, is little
    check_at=(
        {"n": 1},
        {"n": 7},
        {"n": 1024},  # one block exactly
        {"n": 1029},  # and a vector and a float more
        {"n": 100_003},
    ),
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4 * n},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
