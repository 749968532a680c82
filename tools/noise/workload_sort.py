"""A sort on the CPU: a step that no GPU has a part in."""

from __future__ import annotations

from typing import Any

import torch

from common import Spec, Workload


def inputs(rand: Any, n: int) -> dict[str, Any]:
    """`x`: n floats."""
    return {"x": rand.normal(n)}


def outputs(n: int) -> dict[str, Spec]:
    """`y`: the same in ascending order."""
    return {"y": Spec((n,), torch.float32)}


def reference(x: torch.Tensor) -> torch.Tensor:
    """The same in ascending order."""
    return x.sort().values


def work(n: int) -> dict[str, float]:
    """Each float is read and written once."""
    return {"dram_read": 4 * n, "dram_write": 4 * n}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    work=work,
    time_at={"n": 1 << 16},
    cpu_at={"n": 1 << 16},
    check_at=({"n": 1}, {"n": 1001}),
    rtol=0.0,  # a sort changes no value
    atol=0.0,
    clock="host",
    place="host",
)
