"""A polynomial of degree 128 at every entry of a table of short rows: y = sum over k of (37 k mod 131 - 65) / 64 * x^k.

Predicted: 128 / 100, as the baseline issues 128 lanes for 100 entries.

Measured: RESULTS.md. The step full_warps nearly reaches it. The gain of the whole pair is smaller.

Why: there are two ideas in the pair, and one of them costs. Counting threads over the whole table fills the warps: step full_warps.
The occupancy API of the optimized side then picks blocks of 1024 threads, of which an SM holds two (launch__occupancy_limit_warps).
The SM then issues in fewer cycles (sm__throughput). Hypothesis: half of its warps begin and end together.
"""

import torch

from common import Spec, Workload

DEGREE = 128  # FMAs an entry take 2.7 times as long as its 8 bytes, so arithmetic sets the pace; no coefficient comes twice


def reference(x):
    y = torch.zeros_like(x)
    for k in range(DEGREE, -1, -1):
        y = y * x + (37 * k % 131 - 65) / 64
    return y


WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.uniform(rows, cols, low=-1.0, high=1.0)},
    outputs=lambda rows, cols: {"y": Spec((rows, cols), torch.float32)},
    reference=reference,
    time_at={"rows": 1 << 18, "cols": 100},
    check_at=({"rows": 1, "cols": 1}, {"rows": 3, "cols": 100}, {"rows": 37, "cols": 33}, {"rows": 5, "cols": 1025}),
    work=lambda rows, cols: {"fp32_fma": 2 * DEGREE * rows * cols, "dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    # Horner's rule in FMAs is off by at most 1.4e-6, near |x| = 1, over 4 M values on a CPU; times 1.8, and |y| is up to 1.5.
    rtol=1e-6,
    atol=2.5e-6,
    ladder=("full_warps",),
)
