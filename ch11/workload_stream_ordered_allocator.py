"""Rounds that each need workspace: round r makes u = T(x[r]) in memory that it allocates, and y[r] = u U(x[r]), and frees it.

T and U are Chebyshev polynomials of the first and second kind, of a low degree. Memory was meant to set the kernels' time. By machine code
for sm_90a their 250 instructions per point take longer to issue: 63 us per round at 1.98 GHz, where an H200 moves the bytes in 39 us.
A measured round takes nearly twice as long; whether kernels or the host set it is not known.
The baseline's kernels take as long, so its prediction is right on an H200 only because the guess of 250 us is too high.
The clock is `launch`: what the host waits for is part of the time.
"""

import torch
from shared_chebyshev import EDGE, chebyshev

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rounds, points, degree: {"x": rand.uniform(rounds, points, low=-EDGE, high=EDGE)},
    outputs=lambda rounds, points, degree: {"y": Spec((rounds, points), torch.float32)},
    reference=lambda x, degree: chebyshev(1, x, degree) * chebyshev(2, x, degree),
    time_at={"rounds": 4, "points": 8 << 20, "degree": 16},  # 32 MiB of workspace
    check_at=(
        {"rounds": 1, "points": 1, "degree": 1},
        {"rounds": 2, "points": 129, "degree": 200},
        {"rounds": 3, "points": 3000, "degree": 16},
    ),
    work=lambda rounds, points, degree: {
        "fp32_fma": 4 * rounds * points * degree,
        "dram_read": 4 * rounds * points,  # workspace can stay in the L2, and x of a round for its second kernel
        "dram_write": 4 * rounds * points,
    },
    # Two factors, each off by at most 5e-6 at degree 200, on a CPU; the second is at most 1.7.
    rtol=0.0,
    atol=2e-5,
    clock="launch",
)
