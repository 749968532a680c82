"""Gradients of layers x += silu(x w), added up over micro-batches of few rows; a hook clamps each micro-batch's gradient of a weight."""

import torch
from shared_hooked import hooked, loss_of

from common import Spec, Workload


def inputs(rand, layers, batches, rows, width):
    return {
        "x": rand.normal(batches, rows, width),
        "weights": rand.normal(layers, width, width, std=width**-0.5),
    }


def reference(x, weights):
    """The sum over micro-batches of their clamped gradients, (layers, width, width)."""
    leaves = hooked(weights)
    with torch.enable_grad():
        for batch in x:
            loss_of(batch, leaves).backward()
    return torch.stack([leaf.grad for leaf in leaves])


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda layers, batches, rows, width: {"gradients": Spec((layers, width, width), torch.float32)},
    reference=reference,
    constants=("weights",),
    time_at={"layers": 8, "batches": 8, "rows": 8, "width": 8192},  # kernels long enough that the host, queueing 500, keeps ahead
    cpu_at={"layers": 3, "batches": 3, "rows": 8, "width": 256},
    check_at=({"layers": 2, "batches": 2, "rows": 3, "width": 65}, {"layers": 1, "batches": 3, "rows": 17, "width": 32}),
    work=lambda layers, batches, rows, width: {
        "fp32": 6 * layers * batches * rows * width * width,
        "dram_read": 4 * layers * width * width,
        "dram_write": 4 * layers * width * width,
    },
    rtol=1e-4,  # sums of float32 products in another order than float64's, carried on through the layers' derivatives
    atol=8e-3,  # gradients are of size 11; float32 loses 2e-3 of some at a width of 2048, and 3e-3 at 4096
)
