"""A stream of batches whose size changes: `layers` small layers of an MLP, then each row minus the mean over the rows of its batch.

A graph holds shapes, so a new batch size needs another graph. The mean is over rows, so padding must be masked: it would change every row.
"""

import math

import torch

from common import Spec, Workload


def sizes_of(batches, most):
    """The size of each batch, 1 to `most`; no two in a row are the same."""
    return [1 + 29 * (b + 1) % most for b in range(batches)]


def inputs(rand, batches, most, layers, dim):
    sizes = sizes_of(batches, most)
    weight = rand.normal(layers, dim, dim, std=math.sqrt(2 / dim))  # keeps the size of activations through a ReLU
    return {"x": rand.normal(sum(sizes), dim), "weight": weight, "sizes": sizes}


def reference(x, weight, sizes):
    for layer in weight:
        x = (x @ layer).clamp(min=0)
    return torch.cat([batch - batch.mean(0) for batch in x.split(sizes)])


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda batches, most, layers, dim: {"y": Spec((sum(sizes_of(batches, most)), dim), torch.float32)},
    reference=reference,
    time_at={"batches": 16, "most": 64, "layers": 32, "dim": 128},  # kernels shorter than a launch
    check_at=(
        {"batches": 1, "most": 1, "layers": 1, "dim": 8},
        {"batches": 5, "most": 33, "layers": 4, "dim": 24},
        {"batches": 3, "most": 90, "layers": 5, "dim": 16},  # one batch is larger than any bucket
    ),
    work=lambda batches, most, layers, dim: {
        "launch": 1,
        "fp32": 2 * layers * dim * dim * sum(sizes_of(batches, most)),
        "dram_read": 4 * layers * dim * dim,
        "dram_write": 4 * dim * sum(sizes_of(batches, most)),
    },
    constants=("weight",),
    # 32 layers of float32 round by 7.8e-6 in the worst of six draws at `time_at` on a CPU; times 4.
    rtol=0.0,
    atol=3.2e-5,
    clock="launch",
    ladder=("recapture",),
)
