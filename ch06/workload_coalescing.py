"""Scale the columns of a row-major float32 matrix: y[r, c] = x[r, c] * scale[c].

Expected 2.3x, and 4.53x on an H200: what goes into the L2 was counted in bytes, but a write of a part of a sector takes a turn of an input
for the request and one for each sector (ch07's workload_transpose.py, from a profile). That is 2 a float here, where a request's 32 sectors
lie in 32 lines, and 0.8 in ch07's copy, where 4 lie in each. With a request for a sector read, 143 M turns at 161 a ns are 890 us of the
978 that it takes, and lts__throughput is 90 %.

What stops the optimized side at 58 %: blocks of 1 KB. Grid and traffic are those of the baseline of ch07's tma_copy, where a third of the
places for warps are empty (sm__warps_active, 67 %). Nothing is full: memory is 51 % busy (gpu__dram_throughput), the L2 62
(lts__throughput).
"""

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
