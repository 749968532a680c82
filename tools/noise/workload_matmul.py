"""A square bf16 product, and behind it a kernel that waits.

Both sides launch the kernel, the planted one to wait for `spin` cycles: so a launch is no part of what is planted. 3500 cycles are
1.8 us at 1.98 GHz, the highest clock of an H200, where the product was measured to take 178 us; at a lower clock both grow.
"""

from __future__ import annotations

from typing import Any

import torch

from common import Spec, Workload


def inputs(rand: Any, n: int, spin: int) -> dict[str, Any]:  # noqa: ARG001
    """`a` and `b`, n x n, of a product of unit scale."""
    return {"a": rand.normal(n, n, dtype=torch.bfloat16), "b": rand.normal(n, n, dtype=torch.bfloat16, std=n**-0.5)}


def outputs(n: int, spin: int) -> dict[str, Spec]:  # noqa: ARG001
    """`y`: their product."""
    return {"y": Spec((n, n), torch.bfloat16)}


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The product."""
    return a @ b


def work(n: int, spin: int) -> dict[str, float]:  # noqa: ARG001
    """Each of the n x n sums has n products."""
    return {"bf16": 2 * n**3, "dram_read": 2 * 2 * n * n, "dram_write": 2 * n * n, "launch": 1}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    work=work,
    time_at={"n": 4096, "spin": 3500},
    cpu_at={"n": 256, "spin": 10_000},
    check_at=({"n": 8, "spin": 0}, {"n": 136, "spin": 100}),
    rtol=2**-8,  # twice the rounding of the sum to bf16
    atol=2**-8,  # parts of unit scale, rounded to bf16 before they are summed, may cancel
)
