"""Add up one float32 gradient of all ranks; the timed shapes are messages of 64 KiB, 4 MiB and 256 MiB.

Each rank has a gradient of its own. Afterwards every rank has the same sum.
"""

import torch

from common import Spec, Workload


def inputs(rand, rank, elements):
    return {"gradient": rand.of_rank(rank).normal(elements)}


def reference(shards, ranks):
    return sum(shards(rank)["gradient"] for rank in range(ranks))


def work(elements):
    size = 4 * elements
    return {"peer": size, "dram_read": size, "dram_write": size}  # each of two ranks takes `size` from the other; more ranks take more


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda elements: {"reduced": Spec((elements,), torch.float32)},
    reference=reference,
    ranks=(2, 4, 8),
    time_at={"large": {"elements": 64 << 20}, "medium": {"elements": 1 << 20}, "small": {"elements": 16384}},
    cpu_at={"elements": 16384},
    check_at=({"elements": 1}, {"elements": 65}, {"elements": 4099}),
    work=work,
    rtol=1.2e-7,  # 2^-23: the sum of two is rounded once, to 2^-24
    atol=1e-6,  # with eight ranks: seven sums of at most 8 or so, each rounded to 2^-24
)
