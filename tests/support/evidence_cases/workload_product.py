"""Multiply two float16 matrices: what a Triton side claims is the test."""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, n: {"a": rand.normal(n, n, dtype=torch.float16), "b": rand.normal(n, n, dtype=torch.float16)},
    outputs=lambda n: {"c": Spec((n, n), torch.float16)},
    reference=lambda a, b: a @ b,
    time_at={"n": 8192},
    cpu_at=None,
    check_at=({"n": 128},),
    work=lambda n: {"fp16": 2 * n**3},
    rtol=2e-3,  # twice float16's epsilon
    atol=5e-3,
)
