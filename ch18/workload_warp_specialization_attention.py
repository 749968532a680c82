"""Attention of a whole prompt without a mask: y = softmax(q k^T / sqrt(128)) v for every head, bf16 in and out."""
# needs: tma

import math

import torch

from common import Spec, Workload

DIM = 128


def inputs(rand, heads, queries, keys):
    """Scores are of unit scale, so an output averages some keys / e values; theirs makes up for it."""
    sizes = {"q": (queries, 1.0), "k": (keys, 1.0), "v": (keys, math.sqrt(keys / math.e))}
    return {name: rand.normal(heads, tokens, DIM, dtype=torch.bfloat16, std=std) for name, (tokens, std) in sizes.items()}


def reference(q, k, v):
    """A head at a time."""
    return torch.stack([torch.softmax(q @ k.T / math.sqrt(DIM), dim=-1) @ v for q, k, v in zip(q, k, v, strict=True)])


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda heads, queries, keys: {"y": Spec((heads, queries, DIM), torch.bfloat16)},
    reference=reference,
    time_at={"heads": 64, "queries": 4096, "keys": 4096},
    cpu_at=None,  # kernels for the TMA and the tensor cores of Hopper and Blackwell
    check_at=(
        {"heads": 1, "queries": 1, "keys": 1},  # all but one row and column of a tile are outside
        {"heads": 2, "queries": 128, "keys": 128},  # one tile, one step
        {"heads": 3, "queries": 130, "keys": 300},  # a second tile with two rows; three steps of 128 keys, two of 192
        {"heads": 2, "queries": 257, "keys": 1000},  # four times around a ring of two stages of 128, three of 192
    ),
    work=lambda heads, queries, keys: {
        "bf16": 4 * heads * queries * keys * DIM,
        "dram_read": 2 * heads * DIM * (queries + 2 * keys),
        "dram_write": 2 * heads * DIM * queries,
    },
    rtol=2.0**-8,
    atol=0.017,  # probabilities and outputs in bf16: 0.0083, the worst of 6 million outputs simulated in ch10:flash_attention; times 2
)
