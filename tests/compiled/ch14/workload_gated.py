"""y = x + silu(h), where h = x w is scaled down if its largest magnitude exceeds 2: a branch on a value that the device computes."""

import torch
from torch.nn.functional import silu

from common import Spec, Workload


def reference(x, w):
    h = x @ w
    return x + silu(h * (2 / h.abs().amax()).clamp(max=1))


WORKLOAD = Workload(
    inputs=lambda rand, rows, width: {"x": rand.normal(rows, width), "w": rand.normal(width, width, std=width**-0.5)},
    outputs=lambda rows, width: {"y": Spec((rows, width), torch.float32)},
    reference=reference,
    time_at={"rows": 512, "width": 1024},
    cpu_at=None,
    check_at=({"rows": 3, "width": 16}, {"rows": 33, "width": 48}),
    work=lambda rows, width: {"fp32": 2 * rows * width * width},
    clock="launch",
    rtol=1e-5,  # float32 sums of up to 1024 terms of both signs
    atol=1e-5,
)
