"""A pipeline of two stages over chunks: stage 1 makes u = T(x), stage 2 makes y = u U(x), polynomials of the first and second kind.

The stages run in two streams, so stage 1 of a chunk can run beside stage 2 of the chunk before it.
The clock is `launch`: what the host waits for is part of the time.
"""

import torch
from shared_chebyshev import EDGE, chebyshev

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, chunks, points, degree: {"x": rand.uniform(chunks, points, low=-EDGE, high=EDGE)},
    outputs=lambda chunks, points, degree: {"y": Spec((chunks, points), torch.float32)},
    reference=lambda x, degree: chebyshev(1, x, degree) * chebyshev(2, x, degree),
    time_at={"chunks": 32, "points": 4096, "degree": 6144},
    check_at=(
        {"chunks": 1, "points": 1, "degree": 1},
        {"chunks": 3, "points": 129, "degree": 200},
        {"chunks": 5, "points": 300, "degree": 33},
    ),
    work=lambda chunks, points, degree: {
        "fp32_fma": 4 * chunks * points * degree,
        "dram_read": 4 * chunks * points,
        "dram_write": 4 * chunks * points,
    },
    # Two factors. With a rounding a step their product was off by up to 2.44e-4 at degree 6144, in 114 draws of 131,072 points on a CPU.
    rtol=0.0,
    atol=4e-4,
    clock="launch",
)
