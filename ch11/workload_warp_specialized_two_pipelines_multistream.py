"""Four micro-batches, each a launch: y = T(x), Chebyshev polynomials of the first kind, in float32.

Both sides launch the same kernel with the same grids: a warp loads, four compute, one stores. A launch has 32 blocks, less than a quarter
of a Hopper's SMs.
"""

import torch
from shared_chebyshev import EDGE, chebyshev

from common import Spec, Workload

BATCHES = 4

WORKLOAD = Workload(
    inputs=lambda rand, points, degree: {"x": rand.uniform(BATCHES, points, low=-EDGE, high=EDGE)},
    outputs=lambda points, degree: {"y": Spec((BATCHES, points), torch.float32)},
    reference=lambda x, degree: chebyshev(1, x, degree),
    time_at={"points": 524288, "degree": 256},  # 32 blocks of 16 tiles of 1024 points per micro-batch
    check_at=(
        {"points": 4, "degree": 1},
        {"points": 1028, "degree": 33},
        {"points": 2052, "degree": 200},
        {"points": 16392, "degree": 5},
    ),
    work=lambda points, degree: {
        "fp32_fma": 2 * BATCHES * points * degree,
        "dram_read": 4 * BATCHES * points,
        "dram_write": 4 * BATCHES * points,
    },
    # The recurrence in float32 is off by at most 6e-6 at degree 256, on a CPU.
    rtol=0.0,
    atol=2e-5,
)
