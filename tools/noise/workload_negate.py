"""A negation of n floats: a step of 10 to 30 us, between those that bars are asked of."""

from __future__ import annotations

from typing import Any

import torch

from common import Spec, Workload


def inputs(rand: Any, n: int) -> dict[str, Any]:
    """`x`: n floats."""
    return {"x": rand.normal(n)}


def outputs(n: int) -> dict[str, Spec]:
    """`y`: the same with the other sign."""
    return {"y": Spec((n,), torch.float32)}


def reference(x: torch.Tensor) -> torch.Tensor:
    """The same with the other sign."""
    return -x


def work(n: int) -> dict[str, float]:
    """Each of the n floats is read and written once."""
    return {"dram_read": 4 * n, "dram_write": 4 * n}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    work=work,
    time_at={"n": 6 << 20},
    cpu_at={"n": 1 << 20},
    check_at=({"n": 1}, {"n": 4099}),
    rtol=0.0,  # only the sign changes
    atol=0.0,
)
