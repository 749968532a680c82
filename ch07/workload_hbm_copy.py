"""Copy an array of float32 that no cache holds, as fast as DRAM allows: y[i] = x[i].

Predicted: 1.3x, by the equation of workload_vectorized_copy.py: 8 KB in flight per SM give 3.3 of the 4.3 TB/s.
The step four_vectors has four loads per thread in flight, the optimized side one: by the equation both are at DRAM's rate.

Measured: RESULTS.md. The baseline is slower than predicted. The optimized side is as predicted.

Why: the baseline is the kernel of vectorized_copy. Its blocks of 1 KB leave slots of the SM empty (workload_vectorized_copy.py).
"""

# baseline: ch07/baseline_vectorized_copy.cu
import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda x: x.clone(),
    time_at={"n": 1 << 27},  # 512 MiB each way: 9 times the H200's L2 of 60 MB, so few writes are still in the L2 at the end
    check_at=(
        {"n": 1},
        {"n": 7},
        {"n": 1024},  # exactly one block
        {"n": 1029},  # one block, one vector and one float
        {"n": 100_003},
    ),
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4 * n},
    rtol=0.0,  # a copy is exact
    atol=0.0,
    ladder=("four_vectors",),
)
