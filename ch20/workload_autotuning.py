"""A product of few rows, as decoding makes it: c = a b^T in BF16 with sums in fp32, a [m, k], b [n, k].

`used` is where a kernel writes its columns per tile, elements per K-step, stages and splits of k; zeros where a side does not say.
"""

import torch

from common import Metric, Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, m, n, k):
    a, b = rand.normal(m, k, dtype=BF16), rand.normal(n, k, std=k**-0.5, dtype=BF16)
    return {"a": a, "b": b, "used": torch.zeros(4, dtype=torch.int32, device=a.device)}


def metrics(used):
    names = {"tile_columns": "columns", "k_step": "elements", "stages": "stages", "splits": "programs"}
    return {name: Metric(value, unit, "neither") for (name, unit), value in zip(names.items(), used.tolist(), strict=True)}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda m, n, k: {"c": Spec((m, n), BF16)},
    reference=lambda a, b: a @ b.T,
    time_at={"m": 16, "n": 1280, "k": 8192},  # one of eight ranks' share of a 70B model's queries, keys and values
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=({"m": 1, "n": 8, "k": 8}, {"m": 16, "n": 136, "k": 200}, {"m": 65, "n": 128, "k": 64}),
    work=lambda m, n, k: {"bf16": 2 * m * n * k, "dram_read": 2 * (m * k + n * k), "dram_write": 2 * m * n},
    rtol=2.0**-8,  # half of what separates two BF16
    atol=2e-4,  # sums that are cut off, not rounded, after every 16 products; four times what ch14 found for 8192
    in_place=("used",),
    metrics=metrics,
)
