"""A request of four small dependent kernels that arrives while a bulk kernel floods the GPU; what counts is the request's latency.

Bulk: y = T(x), a polynomial of the first kind, in blocks of 1024 threads. Request: r is the product of the four kinds at the points q.

The latency: a kernel before the fork writes the GPU's clock (%globaltimer, ns) into `stamps`, and each block of the request's last kernel
does when it ends. `metrics` reads the last warm call's stamps in each process, so the figure is the side's own: self-reported.
"""

import math

import torch
from shared_chebyshev import EDGE, chebyshev

from common import Metric, Spec, Workload

THREADS = 128  # per block of the request


def inputs(rand, points, degree, urgent_points, urgent_degree):
    return {
        "x": rand.uniform(points, low=-EDGE, high=EDGE),
        "q": rand.uniform(urgent_points, low=-EDGE, high=EDGE),
        "stamps": rand.integers(1 + -(-urgent_points // THREADS), low=0, high=1),  # zeros
    }


def reference(x, q, degree, urgent_degree):
    first, second, third, fourth = (chebyshev(kind, q, urgent_degree) for kind in (1, 2, 3, 4))
    return chebyshev(1, x, degree), first * second * third * fourth


def metrics(stamps):
    begin, ends = stamps[0], stamps[1:]
    stamped = 0 < begin < ends.min()  # else no call was made yet, or a block stamped nothing
    return {"urgent_latency_us": Metric((ends.max() - begin).item() / 1e3 if stamped else math.inf, "us", "lower")}


URGENT = Workload(
    inputs=inputs,
    outputs=lambda points, degree, urgent_points, urgent_degree: {
        "y": Spec((points,), torch.float32),
        "r": Spec((urgent_points,), torch.float32),
    },
    reference=reference,
    time_at={"points": 6488064, "degree": 1024, "urgent_points": 4096, "urgent_degree": 512},  # 24 waves of 2 x 132 bulk blocks
    check_at=(
        {"points": 1025, "degree": 200, "urgent_points": 129, "urgent_degree": 33},
        {"points": 3000, "degree": 33, "urgent_points": 300, "urgent_degree": 200},
    ),
    work=lambda points, degree, urgent_points, urgent_degree: {
        "fp32_fma": 2 * (points * degree + 4 * urgent_points * urgent_degree),
        "dram_read": 4 * (points + urgent_points),
        "dram_write": 4 * (points + urgent_points),
    },
    rtol=0.0,
    atol=4e-4,  # T is off by at most 1.1e-5 at degree 1024, the product of four kinds by 8e-5 at degree 512, on a CPU
    in_place=("stamps",),
    goal="urgent_latency_us",
    metrics=metrics,
)
