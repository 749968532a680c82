"""Scale the columns of a row-major float32 matrix: y[r, c] = x[r, c] * scale[c]."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols), "scale": rand.normal(cols)},
    outputs=lambda rows, cols: {"y": Spec((rows, cols), torch.float32)},
    reference=lambda x, scale: x * scale,
    time_at={"rows": 8192, "cols": 8192},  # 256 MiB each way: more than four times an L2 of 60 MB
    check_at=({"rows": 1, "cols": 1}, {"rows": 33, "cols": 65}, {"rows": 100, "cols": 16}, {"rows": 7, "cols": 1000}),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    rtol=2**-24,  # one rounding of a correctly rounded product
    atol=0.0,
)
