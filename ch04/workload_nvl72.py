"""All-reduce of float32 gradients over ranks in two virtual domains, such as two racks, each with fast links inside.

What counts is `crossing_bytes`: what all ranks together send to the other domain in a step. Each rank writes what it sent into `crossed`,
so the figure is self-reported.
"""

import torch
import torch.distributed as dist

from common import Metric, Spec, Workload


def inputs(rand, rank, elements):
    return {"gradient": rand.of_rank(rank).normal(elements), "crossed": rand.integers(1, low=0, high=1)}  # a zero


def reference(shards, ranks):
    return sum(shards(rank)["gradient"] for rank in range(ranks))


def metrics(crossed):
    total = crossed.clone()
    if dist.is_initialized():
        dist.all_reduce(total)
    return {"crossing_bytes": Metric(total.item(), "bytes", "lower")}


def work(elements):
    size = 4 * elements
    return {"peer": size, "dram_read": size, "dram_write": size}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda elements: {"reduced": Spec((elements,), torch.float32)},
    reference=reference,
    ranks=(4, 8),
    time_at={"elements": 16 << 20},  # 64 MiB
    cpu_at={"elements": 65536},
    check_at=({"elements": 1}, {"elements": 65}, {"elements": 4099}),
    work=work,
    rtol=3e-7,  # sums of eight in another order, each rounded to 2^-24
    atol=2e-6,
    in_place=("crossed",),
    goal="crossing_bytes",
    metrics=metrics,
)
