"""Chebyshev polynomials of the four kinds at the same points, in float32: a row of y per kind.

Each kind is a kernel of its own, of 32 blocks: the kernels stand for small ones that differ and do not need each other.
"""

import torch
from shared_chebyshev import EDGE, chebyshev

from common import Spec, Workload

KINDS = (1, 2, 3, 4)

WORKLOAD = Workload(
    inputs=lambda rand, points, degree: {"x": rand.uniform(points, low=-EDGE, high=EDGE)},
    outputs=lambda points, degree: {"y": Spec((len(KINDS), points), torch.float32)},
    reference=lambda x, degree: torch.stack([chebyshev(kind, x, degree) for kind in KINDS]),
    time_at={"points": 4096, "degree": 32768},
    check_at=(
        {"points": 1, "degree": 0},
        {"points": 5, "degree": 1},
        {"points": 129, "degree": 200},
        {"points": 700, "degree": 33},
    ),
    work=lambda points, degree: {"fp32_fma": 2 * 4 * points * degree, "dram_read": 4 * points, "dram_write": 16 * points},
    # The recurrence in float32, on a CPU: off by at most 1.2e-4 at degree 32768 (3 draws of 4096 points), 4e-6 at degree 200.
    rtol=0.0,
    atol=5e-4,
)
