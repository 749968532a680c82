"""Forward and backward of training in FP32 on a mesh of ranks: each rank's loss, and its shard of the gradients' mean over all ranks.

Weights arrive in shards, as from a sharded checkpoint. Tokens are each rank's own. `layout`: see shared_mesh_layout.py.
"""
# baseline: ch13/baseline_fsdp.py

import torch
from shared_mesh_layout import dense_layout
from shared_mlp_shards import averaged, draw
from shared_mlp_stack import HIDDEN, NAMES

from common import Spec, Workload


def inputs(rand, rank, ranks, tokens, width, layers, loss_scale, layout):
    if ranks > 1:
        dense_layout(layout, ranks)  # what is wrong is said before anything runs
    return draw(rand, rank, ranks, tokens, width, layers, torch.float32)


def outputs(ranks, tokens, width, layers, loss_scale, layout):
    shard = Spec((HIDDEN * width // ranks, width), torch.float32)
    return {"loss": Spec((), torch.float32)} | {f"grad.{i}.{name}": shard for i in range(layers) for name in NAMES}


def work(tokens, width, layers, loss_scale, layout):
    """A product of 16 width^2 flops a token in each layer, and as much again for each of its two gradients."""
    return {"fp32": 48 * width * width * tokens * layers}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=averaged,
    ranks=(4,),
    time_at={"tokens": 512, "width": 2048, "layers": 24, "loss_scale": 65536.0, "layout": "dp2_tp2_sp2"},  # 805 million weights
    check_at=(
        {"tokens": 9, "width": 32, "layers": 2, "loss_scale": 256.0, "layout": "dp2_tp2_sp2"},
        {"tokens": 1, "width": 8, "layers": 3, "loss_scale": 16.0, "layout": "tp4"},
        {"tokens": 33, "width": 64, "layers": 1, "loss_scale": 1024.0, "layout": "tp2_pp1_dp2_ep1_sp1"},
    ),
    work=work,
    rtol=1e-4,  # by the loss scale gradients are about 1; FP32 sums of up to 8192 products, through every layer
    atol=1e-4,
    goal="memory",
    constants=("weights",),
)
