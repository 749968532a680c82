"""Sum the rows of a float32 matrix: y[r] = sum over c of x[r, c]. Work so plain that whatever is wrong with a row is the cheat."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.uniform(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((rows,), torch.float32)},
    reference=lambda x: x.sum(dim=1),
    time_at={"rows": 4096, "cols": 2048},  # 32 MiB: what a part of an L2 set aside could hold
    cpu_at={"rows": 64, "cols": 1024},
    check_at=({"rows": 3, "cols": 65}, {"rows": 128, "cols": 192}),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows},
    rtol=1e-6,  # terms of one sign, added pairwise: a few times 2^-24; rounding the terms to float16 is off by 5e-6
    atol=0.0,
)
