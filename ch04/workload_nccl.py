"""A row-parallel linear layer in BF16, as behind attention in a tensor-parallel model: y = residual + sum over ranks of x @ weight.

Each rank has its own columns of x, and the rows of the weight that belong to them. The residual is the same on all ranks, and so is y.
"""

import torch

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, rank, ranks, tokens, width, units):
    mine = rand.of_rank(rank)
    return {
        "x": mine.normal(tokens, units // ranks, dtype=BF16),
        "weight": mine.normal(units // ranks, width, dtype=BF16, std=units**-0.5),
        "residual": rand.normal(tokens, width, dtype=BF16),
    }


def reference(shards, ranks, residual):
    return residual + sum(shards(rank)["x"] @ shards(rank)["weight"] for rank in range(ranks))


def work(tokens, width, units):
    """What a rank of two must do; a rank of more has fewer flops and more bytes from peers."""
    size = 2 * tokens * width
    return {"bf16": tokens * width * units, "peer": size, "dram_read": 2 * size + width * units, "dram_write": size}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, width, units: {"y": Spec((tokens, width), BF16)},
    reference=reference,
    ranks=(2, 4, 8),
    time_at={"tokens": 2048, "width": 4096, "units": 4096},  # Llama 3 8B's, a chunk of a prefill: 16 MiB are added up
    cpu_at={"tokens": 128, "width": 256, "units": 256},
    check_at=(
        {"tokens": 1, "width": 65, "units": 64},
        {"tokens": 33, "width": 130, "units": 128},
        {"tokens": 129, "width": 8, "units": 8},
    ),
    work=work,
    rtol=0.01,  # each rank rounds its sum to BF16, 2^-9 of it, and the total is rounded again
    atol=0.03,
    constants=("weight",),
)
