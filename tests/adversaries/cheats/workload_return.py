"""Doubles a matrix of the host's pageable memory, and leaves the product there too."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols, where="pageable")},
    outputs=lambda rows, cols: {"y": Spec((rows, cols), torch.float32, where="pageable")},
    reference=lambda x: 2 * x,
    time_at={"rows": 1024, "cols": 2048},
    cpu_at={"rows": 64, "cols": 1024},
    check_at=({"rows": 3, "cols": 65}, {"rows": 128, "cols": 192}),
    work=lambda rows, cols: {"h2d_pageable": 4 * rows * cols, "d2h_pageable": 4 * rows * cols},
    rtol=0.0,  # a power of two is exact
    atol=0.0,
)
