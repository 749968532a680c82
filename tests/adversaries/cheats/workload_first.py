"""The first element of every row: y[r] = x[r, 0]. It says that whole rows must be read, which is a lie about the work."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.uniform(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((rows,), torch.float32)},
    reference=lambda x: x[:, 0],
    time_at={"rows": 4096, "cols": 8192},  # 128 MiB
    check_at=({"rows": 3, "cols": 65},),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
