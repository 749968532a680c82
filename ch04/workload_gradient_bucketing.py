"""Add up the gradients of all ranks: reduced[i] = sum over ranks of grads[i], many small tensors in float32.

Each rank has gradients of its own, one tensor a parameter, as a backward pass leaves them. Afterwards every rank has the same sums.
"""
# reason: a collective of 64 KB costs what starting it costs, and the bucket starts one instead of one a tensor

import torch

from common import Spec, Workload


def inputs(rand, rank, tensors, elements):
    mine = rand.of_rank(rank)
    return {"grads": [mine.normal(elements) for _ in range(tensors)]}


def reference(shards, ranks):
    return sum(torch.stack(shards(rank)["grads"]) for rank in range(ranks))


def work(tensors, elements):
    size = 4 * tensors * elements
    return {"peer": size, "dram_read": size, "dram_write": size}  # each of two ranks takes `size` from the other; more ranks take more


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tensors, elements: {"reduced": Spec((tensors, elements), torch.float32)},
    reference=reference,
    ranks=(2, 4, 8),
    time_at={"tensors": 256, "elements": 16384},  # 64 KB a tensor, 16 MiB in all: less than DDP's first buckets of 25 MB
    cpu_at={"tensors": 32, "elements": 1024},
    check_at=({"tensors": 1, "elements": 1}, {"tensors": 3, "elements": 65}, {"tensors": 17, "elements": 130}),
    work=work,
    rtol=1.2e-7,  # 2^-23: the sum of two is rounded once, to 2^-24
    atol=1e-6,  # with eight ranks: seven sums of at most 8 or so, each rounded to 2^-24
    clock="launch",  # what a collective costs the host is most of what the bucket saves
)
