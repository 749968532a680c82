"""A stack of linear layers with ReLU, from BF16 to BF16, and a norm behind it: x = relu(x w[i]^T) for each i, y = rms_norm(x)."""

import torch
import torch.nn.functional as F

from common import Precision, Spec, Workload

BF16 = torch.bfloat16


def reference(x, weights, width):
    for w in weights:
        x = F.relu(F.linear(x, w))
    return F.rms_norm(x, (width,))


WORKLOAD = Workload(
    inputs=lambda rand, tokens, width, layers: {
        "x": rand.normal(tokens, width, dtype=BF16),
        "weights": rand.normal(layers, width, width, dtype=BF16, std=(2 / width) ** 0.5),  # keeps the mean square of x
    },
    outputs=lambda tokens, width, layers: {"y": Spec((tokens, width), BF16)},
    reference=reference,
    time_at={"tokens": 8192, "width": 8192, "layers": 4},
    check_at=(
        {"tokens": 16, "width": 64, "layers": 2},
        {"tokens": 300, "width": 1024, "layers": 2},
        {"tokens": 257, "width": 512, "layers": 4},
    ),
    # The least is that of the optimized side, with weights packed ahead.
    work=lambda tokens, width, layers: {
        "fp8": 2 * tokens * width * width * layers,
        "dram_read": layers * width * width + 2 * tokens * width,
        "dram_write": 2 * tokens * width,
    },
    rtol=0.02,
    atol=0.03,
    changes=Precision(rtol=0.05, atol=0.75),
    constants=("weights",),
)
