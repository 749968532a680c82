"""Transpose a float32 matrix: y[c, r] = x[r, c]."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((cols, rows), torch.float32)},
    reference=lambda x: x.T.contiguous(),
    time_at={"rows": 8192, "cols": 8192},  # 256 MiB each way: more than four times an L2 of 60 MB
    check_at=(
        {"rows": 33, "cols": 65},
        {"rows": 1, "cols": 1},
        {"rows": 64, "cols": 1024},
        {"rows": 100, "cols": 132},  # whole groups of 4, but not whole tiles
        {"rows": 130, "cols": 60},  # rows of x are aligned for 16-byte accesses, rows of y are not
    ),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
