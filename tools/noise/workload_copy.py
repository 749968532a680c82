"""A copy of n floats. A hundredth more of them lies behind the input, for the side that copies 1 % more bytes.

What is planted are whole pages of 4 KB: beside 64 MB an H200 takes 3 us more, 9 %, for 671072 bytes more, but 0.3 us for 667648.
"""

from __future__ import annotations

from typing import Any

import torch

from common import Spec, Workload


def inputs(rand: Any, n: int) -> dict[str, Any]:
    """`x`: n floats, and n / 100 more in whole pages of 4 KB."""
    return {"x": rand.normal(n + (n // 100 & ~1023))}


def outputs(n: int) -> dict[str, Spec]:
    """`y`: the first n of them."""
    return {"y": Spec((n,), torch.float32)}


def reference(x: torch.Tensor, n: int) -> torch.Tensor:
    """The first n floats."""
    return x[:n]


def work(n: int) -> dict[str, float]:
    """Each of the n floats is read and written once."""
    return {"dram_read": 4 * n, "dram_write": 4 * n}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    work=work,
    time_at={"512 MB": {"n": 128 << 20}, "64 MB": {"n": 16 << 20}},
    cpu_at={"n": 4 << 20},
    check_at=({"n": 1}, {"n": 4099}, {"n": 102400}),
    rtol=0.0,  # a copy is exact
    atol=0.0,
)
