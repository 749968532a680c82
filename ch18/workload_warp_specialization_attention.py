"""Attention of a whole prompt: y = softmax(q k^T / sqrt(128)) v for every head, bf16 in and out.

With `causal` a query sees the keys up to its own position, as in PyTorch: the first query sees the first key alone.
"""
# needs: tma

import math

import torch

from common import Spec, Workload

DIM = 128


def inputs(rand, heads, queries, keys, causal):
    """Scores are of unit scale, so an output averages as many keys as are seen, over e. Values make up for it, by position if causal."""
    sizes = {"q": (queries, 1.0), "k": (keys, 1.0), "v": (keys, math.sqrt(keys / math.e))}
    drawn = {name: rand.normal(heads, tokens, DIM, dtype=torch.bfloat16, std=std) for name, (tokens, std) in sizes.items()}
    if causal:
        drawn["v"] *= (torch.arange(1, keys + 1, device=drawn["v"].device).view(keys, 1) / keys).sqrt()
    return drawn


def reference(q, k, v, causal):
    """A head at a time."""
    heads = []
    for queries, keys, values in zip(q, k, v, strict=True):
        scores = queries @ keys.T / math.sqrt(DIM)
        if causal:
            scores.masked_fill_(torch.ones_like(scores, dtype=torch.bool).triu_(1), -math.inf)
        heads.append(scores.softmax(dim=-1) @ values)
    return torch.stack(heads)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda heads, queries, keys, causal: {"y": Spec((heads, queries, DIM), torch.bfloat16)},
    reference=reference,
    time_at={f"{tokens // 1024}k": {"heads": 16, "queries": tokens, "keys": tokens, "causal": 1} for tokens in (16384, 8192, 4096)},
    cpu_at=None,  # kernels for the TMA and the tensor cores of Hopper and Blackwell
    check_at=(
        {"heads": 1, "queries": 1, "keys": 1, "causal": 0},  # all but one row and column of a tile are outside
        {"heads": 2, "queries": 128, "keys": 128, "causal": 0},  # one tile, one step
        {"heads": 3, "queries": 130, "keys": 300, "causal": 0},  # a second tile with two rows; three steps of 128 keys, two of 192
        {"heads": 2, "queries": 257, "keys": 1000, "causal": 0},  # four times around a ring of two stages of 128, three of 192
        {"heads": 2, "queries": 1, "keys": 17, "causal": 1},  # one key is seen of a tile
        {"heads": 2, "queries": 600, "keys": 600, "causal": 1},  # the diagonal crosses tiles at every place that it can
        {"heads": 1, "queries": 300, "keys": 130, "causal": 1},  # later queries see every key
        {"heads": 1, "queries": 4097, "keys": 4097, "causal": 1},  # a last tile of one query and one key
    ),
    work=lambda heads, queries, keys, causal: {
        "bf16": 4 * heads * DIM * (sum(min(query + 1, keys) for query in range(queries)) if causal else queries * keys),
        "dram_read": 2 * heads * DIM * (queries + 2 * keys),
        "dram_write": 2 * heads * DIM * queries,
    },
    rtol=2.0**-8,
    atol=0.017,  # probabilities and outputs in bf16: 0.0083, the worst of 6 million outputs simulated in ch10:flash_attention; times 2
)
