"""A deep network for one token: `layers` layers of dim x dim weights in float32, each followed by a ReLU; a kernel per layer.

Predicted: 1.35x on an H200. A kernel's prologue loads its weights, which do not depend on the kernel before; under it, loads are free.

Measured: RESULTS.md.

Why: in stream order a kernel starts only when the one before has ended, so each layer pays the latency of its own weights.
"""

import math

import torch

from common import Spec, Workload


def inputs(rand, layers, dim):
    # Variance 2 / dim keeps the size of activations through a ReLU.
    return {"x": rand.normal(dim), "weight": rand.normal(layers, dim, dim, std=math.sqrt(2 / dim))}


def reference(x, weight):
    for layer in weight:
        x = (layer @ x).clamp(min=0)
    return x


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda layers, dim: {"y": Spec((dim,), torch.float32)},
    reference=reference,
    time_at={"layers": 64, "dim": 1024},  # 4 MB per layer: 128 blocks of 8 rows, one per SM
    check_at=({"layers": 1, "dim": 4}, {"layers": 2, "dim": 36}, {"layers": 5, "dim": 128}),
    work=lambda layers, dim: {"dram_read": 4 * layers * dim * dim, "fp32": 2 * layers * dim * dim},
    constants=("weight",),
    # A layer rounds by some 2e-7 of its activations' size, 64 of them by 2e-6 together; times 10, as their size drifts by 3.
    rtol=2e-5,
    atol=2e-5,
)
