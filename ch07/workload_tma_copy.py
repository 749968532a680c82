"""Copy a float32 matrix, tile by tile: y[r, c] = x[r, c]. Rows are multiples of 16 bytes, as a tensor map requires.

Predicted: 1x. DRAM needs 10.6 KB in flight per SM (workload_vectorized_copy.py). A float4 per thread is 32 KB,
13 tiles of 16 KB are 208 KB. So both sides move the same bytes at DRAM's rate.
A small loss is possible at the end. An SM moves the 32 KB of its last tile, read and written, in 1 us, and others may have finished.

Measured: RESULTS.md.
"""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((rows, cols), torch.float32)},
    reference=lambda x: x.clone(),
    time_at={"rows": 8192, "cols": 8192},  # 256 MiB each way: more than four times the H200's L2 of 60 MB
    check_at=(
        {"rows": 1, "cols": 4},
        {"rows": 16, "cols": 256},  # exactly one tile of the optimized side
        {"rows": 17, "cols": 260},  # one row and 16 bytes more: three of the four tiles lie mostly outside
        {"rows": 33, "cols": 1004},
    ),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
