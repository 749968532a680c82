"""Scale the columns of a row-major float32 matrix: y[r, c] = x[r, c] * scale[c].

Predicted: the baseline by the bytes that pass the L2, 36 per float, the optimized side by the 8 that pass DRAM.

Measured: RESULTS.md. The baseline takes far longer than predicted.

Why: the L2 takes a cycle per request and a cycle per partial sector. Here a request's 32 sectors lie in 32 cache lines, 2 cycles per float.
In ch07:copy neighbouring sectors share a request: 0.8 cycles per float.
lts__throughput is 90 % here (H200; ch07:transpose has the other counters).
The optimized side copies 1 KB per block, as the baseline of ch07:hbm_copy does. There over a quarter of the warp slots are empty
(sm__warps_active is 71 %). Nothing is full: DRAM is 51 % busy (gpu__dram_throughput), the L2 62 % (lts__throughput).
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
