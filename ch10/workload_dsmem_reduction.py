"""Sum every row of a float32 matrix of few rows, so few that a row must be shared by several blocks: y[r] = sum of x[r, c] over c.

Predicted: 1.8 us to read 8.2 MB, 2.5 us to start, fetch and be timed, and 1.5 us for a second kernel or 0.5 us for a cluster's barriers.

Measured: RESULTS.md. Both sides take over a microsecond longer than predicted, the cluster more so.

Why: hypothesis, the start and the first loads take longer than 2.5 us, and a cluster longer to start than a kernel.
"""
# needs: clusters

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((rows,), torch.float32)},
    reference=lambda x: x.sum(1),
    time_at={"rows": 16, "cols": 128256},  # 16 tokens by the 128 256 words of Llama 3: 8 blocks a row are 128 of an H200's 132 SMs
    check_at=(
        {"rows": 2, "cols": 1},
        {"rows": 3, "cols": 1000},  # seven of eight blocks have nothing to add
        {"rows": 2, "cols": 4097},  # one value more than each thread's first
        {"rows": 2, "cols": 140000},  # a second round
    ),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols},
    # Partial sums up to 1000 round to 2^-15: of 7680 rows, emulated, the worst is off by 2.5e-4 and the rest by 4.5e-5.
    rtol=0.0,
    atol=5e-4,
)
