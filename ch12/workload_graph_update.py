"""A stream of batches whose size changes: four layers of an MLP, then each row minus the mean over the rows of its batch.

Predicted: a guess, 30x. A capture runs the whole Python model and instantiates a graph, and the wait before it empties the queue.
A graph captured beforehand costs its launch and three small copies.

Measured: RESULTS.md.

Why: a graph holds shapes, so a new batch size needs another graph. A few sizes captured beforehand serve all, if batches are padded.
The mean is taken over rows, so the padding must be masked: a padded row would change every other.
"""

import math

import torch

from common import Spec, Workload

LAYERS = 4


def sizes_of(batches, most):
    """The size of each batch, 1 to `most`; no two in a row are the same."""
    return [1 + 29 * (b + 1) % most for b in range(batches)]


def inputs(rand, batches, most, dim):
    sizes = sizes_of(batches, most)
    weight = rand.normal(LAYERS, dim, dim, std=math.sqrt(2 / dim))  # keeps the size of activations through a ReLU
    return {"x": rand.normal(sum(sizes), dim), "weight": weight, "sizes": sizes}


def reference(x, weight, sizes):
    for layer in weight:
        x = (x @ layer).clamp(min=0)
    return torch.cat([batch - batch.mean(0) for batch in x.split(sizes)])


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda batches, most, dim: {"y": Spec((sum(sizes_of(batches, most)), dim), torch.float32)},
    reference=reference,
    time_at={"batches": 16, "most": 64, "dim": 512},
    check_at=(
        {"batches": 1, "most": 1, "dim": 8},
        {"batches": 5, "most": 33, "dim": 24},
        {"batches": 3, "most": 90, "dim": 16},  # one batch is larger than any bucket
    ),
    work=lambda batches, most, dim: {
        "launch": 1,
        "fp32": 2 * LAYERS * dim * dim * sum(sizes_of(batches, most)),
        "dram_read": 4 * LAYERS * dim * dim,
        "dram_write": 4 * dim * sum(sizes_of(batches, most)),
    },
    constants=("weight",),
    # Four layers of float32 round by 1e-6 of an activation's size, which is 1 and in rare cases 5; times 4.
    rtol=4e-6,
    atol=2e-5,
    clock="launch",
)
