"""Add up partial sums of all ranks, a small message at a time: total[i] = sum over ranks of partial[i], in BF16.

So tensor-parallel decoding does: two messages a layer, of one vector a sequence. By default they are those of 80 layers of width 8192.
"""

import torch

from common import Spec, Workload


def inputs(rand, rank, messages, tokens, width):
    return {"partial": rand.of_rank(rank).normal(messages, tokens, width, dtype=torch.bfloat16)}


def reference(shards, ranks):
    return sum(shards(rank)["partial"] for rank in range(ranks))


def work(messages, tokens, width):
    size = 2 * messages * tokens * width
    return {"peer": size, "dram_read": size, "dram_write": size}  # in bytes, for two ranks: what the other has is needed once


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda messages, tokens, width: {"total": Spec((messages, tokens, width), torch.bfloat16)},
    reference=reference,
    ranks=(2, 4, 8),
    ladder=("graph",),
    time_at={"messages": 160, "tokens": 8, "width": 8192},  # 128 KB a message
    cpu_at={"messages": 8, "tokens": 4, "width": 256},
    check_at=(
        {"messages": 1, "tokens": 1, "width": 64},
        {"messages": 3, "tokens": 5, "width": 64},
        {"messages": 2, "tokens": 7, "width": 320},
    ),
    work=work,
    rtol=0.004,  # 2^-8: the sum of two is rounded once, to 2^-9
    atol=0.03,  # with eight ranks: seven sums of at most 8 or so, each rounded to 2^-9
    clock="launch",  # a message takes the GPU less time than an operation of PyTorch takes the host
)
