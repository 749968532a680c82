"""The work of all transposes: a float32 matrix of rows x cols becomes one of cols x rows, y[c, r] = x[r, c]."""

import torch

from common import Spec, Workload

TRANSPOSE = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((cols, rows), torch.float32)},
    reference=lambda x: x.T.contiguous(),
    time_at={"rows": 16384, "cols": 16384},  # 1 GiB each way: 18 times the H200's L2 of 60 MB
    check_at=(
        {"rows": 33, "cols": 65},
        {"rows": 1, "cols": 1},
        {"rows": 64, "cols": 1024},
        {"rows": 100, "cols": 132},  # whole groups of 4, but not whole tiles
        {"rows": 130, "cols": 60},  # rows of x start at multiples of 16 bytes, rows of y do not
    ),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
