"""A layer's product beside the gathering of the next layer's weights, in BF16: y = x @ w, and gathered = all ranks' shards of weights.

So FSDP and pipelines of layers prefetch. Each rank has tokens of its own and a shard of the weights that come next.
"""

import torch

from common import Spec, Workload


def inputs(rand, rank, ranks, tokens, width, blocks):
    mine = rand.of_rank(rank)
    return {
        "x": mine.normal(tokens, width, dtype=torch.bfloat16),
        "w": rand.normal(width, width, dtype=torch.bfloat16, std=width**-0.5),  # this layer's, which all ranks have
        "shard": mine.normal(blocks * width // ranks, width, dtype=torch.bfloat16),
    }


def outputs(ranks, tokens, width, blocks):
    gathered = Spec((ranks, blocks * width // ranks, width), torch.bfloat16)
    return {"y": Spec((tokens, width), torch.bfloat16), "gathered": gathered}


def reference(x, w, shards, ranks):
    return x @ w, torch.stack([shards(rank)["shard"].clone() for rank in range(ranks)])


def work(tokens, width, blocks):
    """Of two ranks; the bytes of half the weights come from the other. The product is counted alone, behind which they can hide."""
    return {"bf16": 2 * tokens * width * width, "peer": blocks * width * width}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    ranks=(2, 4, 8),
    time_at={"tokens": 8192, "width": 8192, "blocks": 6},  # 805 MB of weights: those of a decoder layer of this width, with GQA
    cpu_at={"tokens": 64, "width": 128, "blocks": 4},
    check_at=(
        {"tokens": 1, "width": 8, "blocks": 1},
        {"tokens": 33, "width": 64, "blocks": 3},
        {"tokens": 130, "width": 40, "blocks": 2},
    ),
    work=work,
    rtol=0.004,  # one rounding to BF16; weights are copied
    atol=1e-3,
    clock="launch",  # both sides start work on two streams
)
