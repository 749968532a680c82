"""A batch of matrix products with a ReLU behind them: what autotuning has several kernels for, on a CPU too."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, batch, width: {
        "a": rand.normal(batch, width, width),
        "b": rand.normal(batch, width, width, std=width**-0.5),
    },
    outputs=lambda batch, width: {"y": Spec((batch, width, width), torch.float32)},
    reference=lambda a, b: torch.relu(a @ b),
    time_at={"batch": 16, "width": 1024},
    cpu_at=None,
    check_at=({"batch": 2, "width": 64},),
    work=lambda batch, width: {"fp32": 2 * batch * width**3},
    clock="launch",
    rtol=1e-4,  # float32 sums of up to 1024 terms of both signs
    atol=1e-5,
)
