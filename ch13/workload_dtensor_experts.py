"""Forward and backward of training layers of experts in FP32: each rank's loss, and its experts' gradients' mean over all ranks.

Weights arrive in shards, as from a sharded checkpoint. Tokens are each rank's own, as many for every expert; `order` says which.
`layout`: see shared_mesh_layout.py; the axis dp may be left out.
"""

import torch
from shared_expert_shards import averaged, draw
from shared_mlp_stack import HIDDEN, NAMES
from shared_stage_layout import expert_layout

from common import Spec, Workload


def inputs(rand, rank, ranks, tokens, width, experts, layers, loss_scale, layout):
    if ranks > 1:
        expert_layout(layout, ranks, experts)  # what is wrong is said before anything runs
    if tokens % experts:
        raise ValueError(f"found {tokens} tokens and {experts} experts; expected as many tokens for every expert")
    return draw(rand, rank, ranks, tokens, width, experts, layers)


def outputs(ranks, tokens, width, experts, layers, loss_scale, layout):
    shard = Spec((experts // ranks, HIDDEN * width, width), torch.float32)
    return {"loss": Spec((), torch.float32)} | {f"grad.{i}.{name}": shard for i in range(layers) for name in NAMES}


def work(tokens, width, experts, layers, loss_scale, layout):
    """A product of 16 width^2 flops a token in each layer, and as much again for each of its two gradients."""
    return {"fp32": 48 * width * width * tokens * layers}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=averaged,
    ranks=(2, 4, 8),
    time_at={"tokens": 2048, "width": 1024, "experts": 8, "layers": 12, "loss_scale": 65536.0, "layout": "ep2"},  # 805 million weights
    check_at=(
        {"tokens": 16, "width": 32, "experts": 8, "layers": 2, "loss_scale": 256.0, "layout": "ep2"},
        {"tokens": 8, "width": 8, "experts": 8, "layers": 3, "loss_scale": 16.0, "layout": "ep1"},
        {"tokens": 48, "width": 64, "experts": 16, "layers": 1, "loss_scale": 1024.0, "layout": "ep2"},
    ),
    work=work,
    rtol=1e-4,  # by the loss scale gradients are about 1; FP32 sums of up to 4096 products, through every layer
    atol=1e-4,
    goal="memory",
    constants=("weights",),
)
