"""Copy a float32 matrix, tile by tile: y[r, c] = x[r, c]. Rows are whole 16 bytes, as a tensor map wants them.

Expected 1.3x, and 1.62x on an H200: the baseline's blocks are of 1 KB, and workload_vectorized_copy.py says what these cost.
"""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((rows, cols), torch.float32)},
    reference=lambda x: x.clone(),
    time_at={"rows": 8192, "cols": 8192},  # 256 MiB each way: more than four times an L2 of 60 MB
    check_at=(
        {"rows": 1, "cols": 4},
        {"rows": 16, "cols": 256},  # one tile of the optimized side exactly
        {"rows": 17, "cols": 260},  # a row and 16 bytes more: three of its four tiles lie mostly outside
        {"rows": 33, "cols": 1004},
    ),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
