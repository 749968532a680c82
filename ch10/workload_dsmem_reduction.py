"""Sum every row of a float32 matrix of few rows, so few that a row must be shared by several blocks: y[r] = sum of x[r, c] over c.

Expected 1.2x, and 1.15x on an H200 (2026-11-23). The second kernel costs what was expected, 0.9 us and not 1.0, but both sides take longer,
6.9 and 6.0 us and not 5.8 and 4.8: to start, to fetch and to be timed is 3.6 us, not 2.5, if 8.2 MB take 1.8.
Both times have a reset of the L2 before each call in them, by which a launch took 0.11 us longer: without it nobody has measured this yet.
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
