"""Doubles a matrix: y[r, c] = 2 x[r, c], with a reference that is asked for random rows of many, as where the whole took too long."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, count, cols: {"x": rand.normal(count, cols)},
    outputs=lambda count, cols: {"y": Spec((count, cols), torch.float32)},
    reference_rows=lambda rows, x: 2 * x[rows],
    time_at={"count": 1 << 20, "cols": 8},
    cpu_at={"count": 1 << 16, "cols": 4},
    check_at=({"count": 3, "cols": 65}, {"count": 128, "cols": 7}),
    work=lambda count, cols: {"dram_read": 4 * count * cols, "dram_write": 4 * count * cols},
    rtol=0.0,  # a power of two is exact
    atol=0.0,
)
