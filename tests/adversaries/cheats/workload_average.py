"""A moving average and how far each value is from it: average = 0.9 average + 0.1 x, y = x - average, with a state that evolves."""

import torch

from common import Spec, Workload

KEPT = 0.9


def reference(x, average):
    average.mul_(KEPT).add_(x, alpha=1 - KEPT)
    return x - average


WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n), "average": rand.normal(n, mean=4.0)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=reference,
    in_place=("average",),
    state="evolves",
    steps=4,
    time_at={"n": 1 << 22},
    cpu_at={"n": 1 << 14},
    check_at=({"n": 3}, {"n": 1025}),
    work=lambda n: {"dram_read": 8 * n, "dram_write": 8 * n},
    rtol=0.0,
    atol=4e-6,  # twice the error of the baseline after 4 steps, two roundings a step of values up to 16
)
