"""Four micro-batches, each a launch of 1.25 waves: y = T(x), Chebyshev polynomials of the first kind, in float32.

Both sides launch the same kernel with the same grids: a warp loads, four compute and store. 330 blocks are a wave of 264, two per SM, and
a tail wave of 66 that leaves three quarters of the places empty.
"""

import torch
from shared_chebyshev import EDGE, chebyshev

from common import Spec, Workload

BATCHES = 4

WORKLOAD = Workload(
    inputs=lambda rand, points, degree: {"x": rand.uniform(BATCHES, points, low=-EDGE, high=EDGE)},
    outputs=lambda points, degree: {"y": Spec((BATCHES, points), torch.float32)},
    reference=lambda x, degree: chebyshev(1, x, degree),
    time_at={"points": 13516800, "degree": 128},  # 330 blocks of 4 tiles of 10240 points per micro-batch
    check_at=(
        {"points": 4, "degree": 1},
        {"points": 1028, "degree": 200},
        {"points": 40964, "degree": 3},
    ),
    work=lambda points, degree: {
        "fp32_fma": 2 * BATCHES * points * degree,
        "dram_read": 4 * BATCHES * points,
        "dram_write": 4 * BATCHES * points,
    },
    # The recurrence in float32 is off by at most 6e-6 at degree 200, on a CPU.
    rtol=0.0,
    atol=2e-5,
)
