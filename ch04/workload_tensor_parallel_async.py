"""A column-parallel linear layer in BF16 with sequence parallelism: y = x_of_all_ranks @ weight.T.

Each rank has its own tokens, and its own output units of the weight. It answers for the tokens of all ranks.
"""

import torch

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, rank, ranks, tokens, width, units):
    mine = rand.of_rank(rank)
    return {
        "x": mine.normal(tokens // ranks, width, dtype=BF16),
        "weight": mine.normal(units // ranks, width, dtype=BF16, std=width**-0.5),
    }


def reference(shards, ranks, weight):
    return torch.cat([shards(rank)["x"] @ weight.T for rank in range(ranks)])


def work(tokens, width, units):
    """What a rank of two must do; a rank of more has fewer flops and more bytes from peers."""
    return {"bf16": tokens * width * units, "peer": tokens * width, "dram_read": 2 * tokens * width + units * width}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda ranks, tokens, width, units: {"y": Spec((tokens, units // ranks), BF16)},
    reference=reference,
    ranks=(2, 4, 8),
    time_at={"tokens": 8192, "width": 8192, "units": 10240},  # queries, keys and values of Llama 3 70B, one sequence of training
    cpu_at={"tokens": 128, "width": 256, "units": 256},
    check_at=(
        {"tokens": 8, "width": 64, "units": 8},
        {"tokens": 264, "width": 40, "units": 136},
        {"tokens": 16, "width": 200, "units": 320},
    ),
    work=work,
    rtol=0.01,  # y is rounded to BF16, 2^-9 of it, from float32 sums
    atol=0.005,
    constants=("weight",),
)
