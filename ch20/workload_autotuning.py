"""A product of few rows, as decoding makes it: c = a b^T in BF16 with sums in fp32, a [m, k], b [n, k]."""

import torch

from common import Spec, Workload

BF16 = torch.bfloat16

WORKLOAD = Workload(
    inputs=lambda rand, m, n, k: {"a": rand.normal(m, k, dtype=BF16), "b": rand.normal(n, k, std=k**-0.5, dtype=BF16)},
    outputs=lambda m, n, k: {"c": Spec((m, n), BF16)},
    reference=lambda a, b: a @ b.T,
    time_at={"m": 16, "n": 1280, "k": 8192},  # one of eight ranks' share of a 70B model's queries, keys and values
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=({"m": 1, "n": 8, "k": 8}, {"m": 16, "n": 136, "k": 200}, {"m": 65, "n": 128, "k": 64}),
    work=lambda m, n, k: {"bf16": 2 * m * n * k, "dram_read": 2 * (m * k + n * k), "dram_write": 2 * m * n},
    rtol=2.0**-8,  # half of what separates two BF16
    atol=2e-4,  # sums that are cut off, not rounded, after every 16 products; four times what ch14 found for 8192
)
