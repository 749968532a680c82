"""Forward and backward of training on few tokens a rank in BF16: each rank's loss, and its shard of the gradients' mean over all ranks.

Weights arrive in shards, as from a sharded checkpoint. Tokens are each rank's own.
"""

import torch
from shared_mlp_shards import averaged, draw
from shared_mlp_stack import HIDDEN, NAMES

from common import Spec, Workload


def inputs(rand, rank, ranks, tokens, width, layers, loss_scale):
    return draw(rand, rank, ranks, tokens, width, layers, torch.bfloat16)


def outputs(ranks, tokens, width, layers, loss_scale):
    shard = Spec((HIDDEN * width // ranks, width), torch.bfloat16)
    return {"loss": Spec((), torch.float32)} | {f"grad.{i}.{name}": shard for i in range(layers) for name in NAMES}


def work(tokens, width, layers, loss_scale):
    """A product of 16 width^2 flops a token in each layer, and as much again for each of its two gradients."""
    return {"bf16": 48 * width * width * tokens * layers}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=averaged,
    ranks=(4, 8),
    time_at={"tokens": 512, "width": 4096, "layers": 8, "loss_scale": 65536.0},  # 1.07 billion weights
    cpu_at={"tokens": 16, "width": 128, "layers": 2, "loss_scale": 2048.0},
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
