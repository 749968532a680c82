"""Forward and backward of data-parallel training in BF16: each rank's loss, and the mean of the gradients over all ranks.

Weights are the same on all ranks. Tokens are each rank's own.
"""

import torch
from shared_mlp_stack import HIDDEN, NAMES, averaged, draw

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, rank, tokens, width, layers, loss_scale):
    return draw(rand, rank, tokens, width, layers, BF16)


def outputs(tokens, width, layers, loss_scale):
    gradient = Spec((HIDDEN * width, width), BF16)
    return {"loss": Spec((), torch.float32)} | {f"grad.{i}.{name}": gradient for i in range(layers) for name in NAMES}


def work(tokens, width, layers, loss_scale):
    """Per token and layer 16 width^2 flops, 32 backward, but no gradient of x, 8 in the first layer; all gradients cross once."""
    return {"bf16": 8 * width * width * tokens * (6 * layers - 1), "peer": 16 * width * width * layers}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=averaged,
    ranks=(2, 4, 8),
    time_at={"tokens": 4096, "width": 2048, "layers": 12, "loss_scale": 32768.0},  # 403 million weights, 32 MiB each gradient
    cpu_at={"tokens": 16, "width": 128, "layers": 2, "loss_scale": 256.0},
    check_at=(
        {"tokens": 9, "width": 32, "layers": 2, "loss_scale": 256.0},
        {"tokens": 1, "width": 8, "layers": 3, "loss_scale": 16.0},
        {"tokens": 33, "width": 64, "layers": 1, "loss_scale": 1024.0},
    ),
    work=work,
    rtol=0.02,  # by the loss scale gradients are about 1; the stream, the products and the gradients' sum are rounded to BF16
    atol=0.1,
    constants=("weights",),
)
