"""ch13:dtensor's step for a pipeline: each rank's loss, and its shard of the gradients' mean over all ranks.

Weights arrive in shards, as from a sharded checkpoint. Tokens are each rank's own. A microbatch is 1/`chunks` of a rank's tokens.
`layout`: see shared_mesh_layout.py; the axis dp may be left out.
"""
# baseline: ch13/baseline_fsdp.py

import torch
from shared_mlp_shards import averaged, draw
from shared_mlp_stack import HIDDEN, NAMES
from shared_stage_layout import stage_layout

from common import Spec, Workload


def inputs(rand, rank, ranks, tokens, width, layers, loss_scale, chunks, layout):
    if ranks > 1:
        stage_layout(layout, ranks, layers)  # what is wrong is said before anything runs
    if tokens % chunks:
        raise ValueError(f"found {tokens} tokens and {chunks} chunks; expected a divisor, as microbatches are of one size")
    return draw(rand, rank, ranks, tokens, width, layers, torch.float32)


def outputs(ranks, tokens, width, layers, loss_scale, chunks, layout):
    shard = Spec((HIDDEN * width // ranks, width), torch.float32)
    return {"loss": Spec((), torch.float32)} | {f"grad.{i}.{name}": shard for i in range(layers) for name in NAMES}


def work(tokens, width, layers, loss_scale, chunks, layout):
    """A product of 16 width^2 flops a token in each layer, and as much again for each of its two gradients."""
    return {"fp32": 48 * width * width * tokens * layers}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=averaged,
    ranks=(2, 4, 8),
    time_at={"tokens": 512, "width": 2048, "layers": 24, "loss_scale": 65536.0, "chunks": 4, "layout": "pp2"},  # 805 million weights
    check_at=(
        {"tokens": 9, "width": 32, "layers": 2, "loss_scale": 256.0, "chunks": 3, "layout": "pp2"},
        {"tokens": 1, "width": 8, "layers": 4, "loss_scale": 16.0, "chunks": 1, "layout": "pp2"},
        {"tokens": 32, "width": 64, "layers": 2, "loss_scale": 1024.0, "chunks": 2, "layout": "tp2"},  # one stage, of DTensors
    ),
    work=work,
    rtol=1e-4,  # by the loss scale gradients are about 1; FP32 sums of up to 8192 products, through every layer
    atol=1e-4,
    goal="memory",
    constants=("weights",),
)
