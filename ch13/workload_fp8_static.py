"""A stack of linear layers with ReLU in FP8, from BF16 to BF16, on few tokens: x = relu(x w[i]^T) for each i, y = rms_norm(x).

`samples` are other tokens of the same distribution, known ahead: what scales may be calibrated on.
"""
# needs: fp8

import torch
import torch.nn.functional as F

from common import Spec, Workload

BF16 = torch.bfloat16
SAMPLES = 512  # tokens


def reference(x, weights, width):
    for w in weights:
        x = F.relu(F.linear(x, w))
    return F.rms_norm(x, (width,))


WORKLOAD = Workload(
    inputs=lambda rand, tokens, width, layers: {
        "x": rand.normal(tokens, width, dtype=BF16),
        "samples": rand.normal(SAMPLES, width, dtype=BF16),
        "weights": rand.normal(layers, width, width, dtype=BF16, std=(2 / width) ** 0.5),  # keeps the mean square of x
    },
    outputs=lambda tokens, width, layers: {"y": Spec((tokens, width), BF16)},
    reference=reference,
    time_at={"tokens": 64, "width": 4096, "layers": 4},  # a batch that decodes
    check_at=(
        {"tokens": 16, "width": 64, "layers": 2},
        {"tokens": 300, "width": 1024, "layers": 2},
        {"tokens": 33, "width": 512, "layers": 4},
    ),
    work=lambda tokens, width, layers: {
        "fp8": 2 * tokens * width * width * layers,
        "dram_read": layers * width * width + 2 * tokens * width,
        "dram_write": 2 * tokens * width,
    },
    rtol=0.05,
    atol=0.6,
    constants=("samples", "weights"),
)
