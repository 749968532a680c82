"""Doubles a matrix that lies in pinned memory of the host: nearly all of the time is the copy to the device."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols, where="pinned")},
    outputs=lambda rows, cols: {"y": Spec((rows, cols), torch.float32)},
    reference=lambda x: 2 * x,
    time_at={"rows": 4096, "cols": 2048},
    check_at=({"rows": 3, "cols": 65}, {"rows": 128, "cols": 192}),
    work=lambda rows, cols: {"h2d": 4 * rows * cols},
    rtol=0.0,  # a power of two is exact
    atol=0.0,
)
