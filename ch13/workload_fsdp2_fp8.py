"""What FSDP2 communicates for one layer: gather its weights from all ranks' shards, and add the ranks' gradients up, a shard for each.

All are flat. A rank has gradients of all weights, from tokens of its own. They are small, as without a loss scale.
"""
# needs: fp8

import torch
from shared_fp8_blocks import BLOCK

from common import Precision, Spec, Workload

STD = 2.0**-12  # of the gradients' sum: most gradients would be below the least e4m3 value, 2^-9, without a scale


def inputs(rand, rank, ranks, blocks):
    """A shard is `blocks` blocks of weights."""
    mine = rand.of_rank(rank)
    return {
        "shard": mine.normal(blocks * BLOCK, dtype=torch.bfloat16, std=STD),  # the scale of neither matters: one tolerance for both
        "gradients": mine.normal(ranks, blocks * BLOCK, dtype=torch.bfloat16, std=STD * ranks**-0.5),
    }


def outputs(ranks, blocks):
    shard = (blocks * BLOCK,)
    return {"weights": Spec((ranks, *shard), torch.bfloat16), "reduced": Spec(shard, torch.bfloat16)}


def reference(shards, ranks, rank):
    weights, total = [], 0
    for peer in range(ranks):
        theirs = shards(peer)
        weights.append(theirs["shard"].clone())
        total = total + theirs["gradients"][rank]
    return torch.stack(weights), total


def work(ranks, blocks):
    """In bytes: one of each value that another rank needs; BF16 weights and gradients read, and both results written."""
    moved = 2 * (ranks + 1) * blocks * BLOCK
    return {"peer": 2 * (ranks - 1) * blocks * BLOCK, "dram_read": moved, "dram_write": moved}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    ranks=(2, 4, 8),
    time_at={"blocks": 131072},  # 33.6 million weights a rank: a layer of 134 million on four
    cpu_at={"blocks": 64},
    check_at=({"blocks": 1}, {"blocks": 3}, {"blocks": 37}),
    work=work,
    rtol=0.004,  # weights are copied; of gradients, sums of some 5 standard deviations are rounded to BF16, 2^-9, up to seven times
    atol=0.05 * STD,
    # e4m3 has 3 bits of mantissa: half a step is at most 2^-4 of a value. Terms of a sum may be larger than the sum.
    changes=Precision(rtol=2.0**-4 + 0.004, atol=0.3 * STD),
)
