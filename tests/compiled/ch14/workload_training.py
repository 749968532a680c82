"""Loss and gradients of a small network: what a training step computes before its optimizer."""

import torch
from torch.nn.functional import cross_entropy, gelu

from common import Spec, Workload


def gradients(x, labels, w1, w2):
    """The gradients of both weights."""
    w1, w2 = w1.detach().requires_grad_(), w2.detach().requires_grad_()
    return torch.autograd.grad(cross_entropy(gelu(x @ w1) @ w2, labels), (w1, w2))


WORKLOAD = Workload(
    inputs=lambda rand, rows, width: {
        "x": rand.normal(rows, width),
        "labels": rand.integers(rows, low=0, high=width),
        "w1": rand.normal(width, width, std=width**-0.5),
        "w2": rand.normal(width, width, std=width**-0.5),
    },
    outputs=lambda rows, width: {name: Spec((width, width), torch.float32) for name in ("g1", "g2")},
    reference=gradients,
    time_at={"rows": 4096, "width": 1024},
    cpu_at={"rows": 32, "width": 64},
    check_at=({"rows": 3, "width": 16}, {"rows": 33, "width": 48}),
    work=lambda rows, width: {"fp32": 10 * rows * width * width},
    clock="launch",
    rtol=1e-4,  # float32 sums of up to 4096 terms of both signs
    atol=1e-7,
)
