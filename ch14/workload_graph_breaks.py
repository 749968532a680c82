"""Layers x += silu(h), where h = x w + b is scaled down if its largest magnitude exceeds a limit: few rows, so the host's share shows."""

import torch
from torch.nn.functional import silu

from common import Spec, Workload


def inputs(rand, layers, rows, width, limit):
    return {
        "x": rand.normal(rows, width),
        "weights": rand.normal(layers, width, width, std=width**-0.5),
        "biases": rand.normal(layers, width),
    }


def reference(x, weights, biases, limit):
    for weight, bias in zip(weights, biases, strict=True):
        h = x @ weight + bias
        x = x + silu(h * (limit / h.abs().amax()).clamp(max=1))
    return x


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda layers, rows, width, limit: {"y": Spec((rows, width), torch.float32)},
    reference=reference,
    constants=("weights", "biases"),
    time_at={"layers": 16, "rows": 64, "width": 1024, "limit": 4.0},
    cpu_at={"layers": 4, "rows": 16, "width": 256, "limit": 3.0},
    check_at=(
        {"layers": 3, "rows": 3, "width": 65, "limit": 2.0},
        {"layers": 2, "rows": 17, "width": 64, "limit": 50.0},  # never exceeded: the other branch
    ),
    work=lambda layers, rows, width, limit: {
        "fp32": 2 * layers * rows * width * width,
        "dram_read": 4 * layers * width * width,
    },
    clock="launch",
    ladder=("where",),
    rtol=1e-4,  # a product's sum of 1024 float32 terms is off by some 1e-6, and 16 layers carry that on in the residual stream
    atol=1e-4,
)
