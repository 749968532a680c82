"""Forward through a pipeline, in BF16: each rank is a stage, and hands each microbatch's activations to the next rank.

Stage 0 begins with x. A rank answers with what its stage made of every microbatch. So decoding does with layers on several GPUs.
"""

import torch
import torch.nn.functional as F

from common import Spec, Workload

HIDDEN = 4  # hidden units per unit of width


def inputs(rand, rank, microbatches, tokens, width):
    mine = rand.of_rank(rank)
    return {
        "x": rand.normal(microbatches, tokens, width, dtype=torch.bfloat16),
        "up": mine.normal(width, HIDDEN * width, dtype=torch.bfloat16, std=width**-0.5),
        "down": mine.normal(HIDDEN * width, width, dtype=torch.bfloat16, std=(HIDDEN * width) ** -0.5),
    }


def reference(x, rank, shards):
    for peer in range(rank + 1):
        theirs = shards(peer)
        x = x + F.gelu(x @ theirs["up"]) @ theirs["down"]
    return x


def work(microbatches, tokens, width):
    """The weights are more than the L2 holds, so each microbatch reads them again."""
    return {"bf16": 4 * HIDDEN * width * width * tokens * microbatches, "dram_read": 4 * HIDDEN * width * width * microbatches}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda microbatches, tokens, width: {"y": Spec((microbatches, tokens, width), torch.bfloat16)},
    reference=reference,
    ranks=(2, 4, 8),
    time_at={"microbatches": 8, "tokens": 128, "width": 4096},  # 1 MB of activations a microbatch, 268 MB of weights a stage
    cpu_at={"microbatches": 4, "tokens": 16, "width": 128},
    check_at=(
        {"microbatches": 1, "tokens": 1, "width": 64},
        {"microbatches": 3, "tokens": 9, "width": 64},
        {"microbatches": 2, "tokens": 40, "width": 128},
    ),
    work=work,
    rtol=0.01,  # up to eight stages each round their hidden units and their stream to BF16, 2^-9 of values of about 1 to 4
    atol=0.05,
    constants=("up", "down"),
    clock="launch",  # what a hand-off costs the host is part of the comparison
)
