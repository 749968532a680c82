"""Forward and backward of data-parallel training in FP32: each rank's loss, and its shard of the gradients' mean over all ranks.

Weights arrive in shards, as from a sharded checkpoint. Tokens are each rank's own.
"""

import torch
from shared_mlp_shards import averaged, draw
from shared_mlp_stack import HIDDEN, NAMES

from common import Spec, Workload


def inputs(rand, rank, ranks, tokens, width, layers, loss_scale):
    return draw(rand, rank, ranks, tokens, width, layers, torch.float32)


def outputs(ranks, tokens, width, layers, loss_scale):
    shard = Spec((HIDDEN * width // ranks, width), torch.float32)
    return {"loss": Spec((), torch.float32)} | {f"grad.{i}.{name}": shard for i in range(layers) for name in NAMES}


def work(tokens, width, layers, loss_scale):
    """A product of 16 width^2 flops a token in each layer, and as much again for each of its two gradients; every weight is read."""
    return {"fp32": 48 * width * width * tokens * layers, "dram_read": 32 * width * width * layers}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=averaged,
    ranks=(2, 4, 8),
    time_at={"tokens": 512, "width": 2048, "layers": 24, "loss_scale": 65536.0},  # 805 million weights
    check_at=(
        {"tokens": 9, "width": 32, "layers": 2, "loss_scale": 256.0},
        {"tokens": 1, "width": 8, "layers": 3, "loss_scale": 16.0},
        {"tokens": 33, "width": 64, "layers": 1, "loss_scale": 1024.0},
    ),
    work=work,
    rtol=1e-4,  # by the loss scale gradients are about 1; FP32 sums of up to 8192 products, through every layer
    atol=1e-4,
    goal="memory",
    constants=("weights",),
)
