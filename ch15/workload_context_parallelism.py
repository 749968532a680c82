"""Causal self-attention of one long sequence that lies on several ranks: each has the queries, keys and values of two chunks.

Rank r has chunks r and 2 x ranks - 1 - r of 2 x ranks (zigzag), so that every rank has as many scores to compute.
"""

import torch
from shared_ring import chunks_of

from common import Spec, Workload
from common.models.layers import causal_attention

BF16 = torch.bfloat16


def inputs(rand, rank, chunk, heads, dim):
    mine = rand.of_rank(rank)
    return {name: mine.normal(2 * chunk, heads, dim, dtype=BF16) for name in ("q", "k", "v")}


def reference(shards, rank, ranks, chunk, dim):
    """The rank's queries over all keys, which are put in the order of the sequence first."""
    halves = {}
    for peer in range(ranks):
        for place, number in enumerate(chunks_of(peer, ranks)):
            halves[number] = [shards(peer)[name].unflatten(0, (2, chunk))[place].clone() for name in ("q", "k", "v")]
    k, v = (torch.cat([halves[number][i] for number in sorted(halves)]) for i in (1, 2))
    mine = [(halves[number][0], (number + 1) * chunk) for number in chunks_of(rank, ranks)]
    return torch.cat([causal_attention(q, k[:seen], v[:seen], dim**-0.5) for q, seen in mine])


def work(chunk, heads, dim):
    """What a rank of two computes; of more, more: 4 dim flops a head and score, of half of the scores of 4 chunks squared."""
    return {"bf16": 4 * dim * heads * (2 * chunk) ** 2, "dram_read": 3 * 4 * chunk * heads * dim, "dram_write": 4 * chunk * heads * dim}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda chunk, heads, dim: {"o": Spec((2 * chunk, heads, dim), BF16)},
    reference=reference,
    ranks=(2, 4, 8),
    time_at={"chunk": 4096, "heads": 32, "dim": 128},  # Llama-2-7B's heads; 8192 tokens a rank
    check_at=({"chunk": 1, "heads": 2, "dim": 64}, {"chunk": 17, "heads": 3, "dim": 64}, {"chunk": 64, "heads": 2, "dim": 128}),
    work=work,
    rtol=0.02,  # a block's answer is rounded to BF16 before blocks are merged, and then the whole
    atol=0.01,
)
