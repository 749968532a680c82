"""Evaluation loop of a linear classifier: the mean cross-entropy of every batch, for the log.

Predicted: 60 us of kernels per batch, and 20 us of waiting in the baseline. Measured: RESULTS.md. Kernels take two fifths longer than
predicted, waiting twice as long, so the ratio hits because two misses nearly cancel.

Traffic: ncu counts no step of 96 kernels. In a step of 8 batches (--kwargs batches=8) it counts 12.7 MB per batch where 4.7 are declared.
It empties the L2 before each kernel, so weight and logits, 4.2 MB each, come from DRAM then. In a real step they stay in the L2.
"""
# traffic: ncu counts no step of so many kernels; a batch reads x, 4.2 MB, and finds the weight and its logits in the L2

import torch
from torch.nn.functional import cross_entropy

from common import Spec, Workload


def inputs(rand, batches, rows, features, classes):
    return {
        "x": rand.normal(batches, rows, features),
        "labels": rand.integers(batches, rows, low=0, high=classes),
        "weight": rand.normal(features, classes, std=features**-0.5),  # logits of unit scale
    }


def outputs(batches, rows, features, classes):
    return {"losses": Spec((batches,), torch.float32)}


def reference(x, labels, weight):
    return torch.stack([cross_entropy(batch @ weight, label) for batch, label in zip(x, labels, strict=True)])


def work(batches, rows, features, classes):
    return {
        "fp32": 2 * batches * rows * features * classes,
        "dram_read": 4 * (batches * rows * features + features * classes) + 8 * batches * rows,
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at={"batches": 32, "rows": 1024, "features": 1024, "classes": 1024},
    cpu_at={"batches": 32, "rows": 64, "features": 256, "classes": 256},
    check_at=(
        {"batches": 1, "rows": 1, "features": 1, "classes": 2},
        {"batches": 4, "rows": 1, "features": 8, "classes": 3},
        {"batches": 5, "rows": 100, "features": 257, "classes": 1000},
    ),
    work=work,
    # The baseline is off by 2e-7 of a loss, 3 ulp, on an H200 and on a CPU; with inputs rounded to TF32 it would be by 5e-6 and more.
    # A small loss is a difference of larger numbers: over 3000 seeds 1.1e-6 of one, 5e-7 in all, hence the atol.
    rtol=1e-6,
    atol=5e-7,
    clock="launch",
    constants=("weight",),
)
