"""Many small kernels in a row, whose cost is the host's: one is added to n floats, again and again."""

from __future__ import annotations

from typing import Any

import torch

from common import Spec, Workload


def inputs(rand: Any, n: int, launches: int) -> dict[str, Any]:  # noqa: ARG001
    """`x`: n small integers, so that every sum is exact."""
    return {"x": rand.integers(n, low=0, high=100, dtype=torch.int32)}


def outputs(n: int, launches: int) -> dict[str, Spec]:  # noqa: ARG001
    """`y`: x plus the number of launches."""
    return {"y": Spec((n,), torch.int32)}


def reference(x: torch.Tensor, launches: int) -> torch.Tensor:
    """All of it at once."""
    return x + launches


def work(n: int, launches: int) -> dict[str, float]:  # noqa: ARG001
    """One launch would do."""
    return {"launch": 1, "dram_read": 4 * n, "dram_write": 4 * n}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    work=work,
    time_at={"n": 4096, "launches": 32},
    cpu_at={"n": 4096, "launches": 100},
    check_at=({"n": 1, "launches": 1}, {"n": 1000, "launches": 7}),
    rtol=0.0,  # integers
    atol=0.0,
    clock="launch",
)
