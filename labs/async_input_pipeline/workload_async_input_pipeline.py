"""Score the records of a file batch by batch: bytes from the page cache, a copy to the device, and an MLP in bf16 there.

A record is `width` bytes. Its features are its bytes less 127.5, over 74, which have a variance near 1.
"""

import numpy as np
import torch

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, batches, rows, width, layers, classes):
    return {
        "file": rand.file(batches * rows * width),
        "weights": rand.normal(layers, width, width, dtype=BF16, std=(2 / width) ** 0.5),
        "head": rand.normal(width, classes, dtype=BF16, std=width**-0.5),
    }


def reference(file, weights, head, width):
    scores = []
    for rows in torch.from_numpy(np.fromfile(file, dtype=np.uint8)).view(-1, width).split(4096):
        x = (rows.to(head.device).to(head.dtype) - 127.5) / 74
        for w in weights:
            x = torch.relu(x @ w)
        scores.append(x @ head)
    return torch.cat(scores)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda batches, rows, width, layers, classes: {"scores": Spec((batches * rows, classes), BF16)},
    reference=reference,
    time_at={"batches": 8, "rows": 4096, "width": 8192, "layers": 3, "classes": 16},  # 32 MiB a batch
    check_at=(
        {"batches": 1, "rows": 3, "width": 24, "layers": 1, "classes": 2},
        {"batches": 2, "rows": 16, "width": 64, "layers": 2, "classes": 3},
        {"batches": 7, "rows": 33, "width": 128, "layers": 2, "classes": 8},  # more batches than buffers
    ),
    work=lambda batches, rows, width, layers, classes: {
        "h2d": batches * rows * width,
        "bf16": 2 * batches * rows * width * (layers * width + classes),
    },
    constants=("weights", "head"),
    rtol=2.0**-8,  # scores are rounded to bf16
    atol=0.03,  # and so are features and hidden layers
    clock="host",
    cache="hot",  # the file is in the page cache: disks are chapter 5's
)
