"""Score a batch that lies in pinned host memory with an MLP on the device: y = relu(...relu(x w[0])...) head, back in pinned memory."""

import torch

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, rows, width, layers, classes):
    return {
        "x": rand.normal(rows, width, dtype=BF16, where="pinned"),
        # Variances that keep those of the hidden layers, and of the scores, at 1.
        "weights": rand.normal(layers, width, width, dtype=BF16, std=(2 / width) ** 0.5),
        "head": rand.normal(width, classes, dtype=BF16, std=width**-0.5),
    }


def reference(x, weights, head):
    for w in weights:
        x = torch.relu(x @ w)
    return x @ head


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda rows, width, layers, classes: {"y": Spec((rows, classes), BF16, where="pinned")},
    reference=reference,
    time_at={"rows": 16384, "width": 4096, "layers": 3, "classes": 64},  # 128 MiB to copy take as long as the products
    cpu_at={"rows": 256, "width": 256, "layers": 3, "classes": 64},
    check_at=(
        {"rows": 5, "width": 33, "layers": 2, "classes": 7},  # fewer rows than chunks
        {"rows": 97, "width": 160, "layers": 3, "classes": 16},  # no multiple of them
        {"rows": 128, "width": 256, "layers": 1, "classes": 1},
    ),
    work=lambda rows, width, layers, classes: {
        "h2d": 2 * rows * width,
        "d2h": 2 * rows * classes,
        "bf16": 2 * rows * width * (layers * width + classes),
    },
    rtol=2**-9,  # y is rounded to BF16
    atol=0.03,  # and so is each hidden layer: on a CPU the baseline is off by at most 0.016 more, in 262,144 scores
    constants=("weights", "head"),
)
