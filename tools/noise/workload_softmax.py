"""A softmax over rows: a few microseconds, so nothing is planted in it, as no bar asks for that of short steps."""

from __future__ import annotations

from typing import Any

import torch

from common import Spec, Workload


def inputs(rand: Any, rows: int, cols: int) -> dict[str, Any]:
    """`x`: rows x cols."""
    return {"x": rand.normal(rows, cols)}


def outputs(rows: int, cols: int) -> dict[str, Spec]:
    """`y`: the softmax of each row."""
    return {"y": Spec((rows, cols), torch.float32)}


def reference(x: torch.Tensor) -> torch.Tensor:
    """The softmax of each row."""
    return torch.softmax(x, dim=1)


def work(rows: int, cols: int) -> dict[str, float]:
    """Each float is read and written once."""
    return {"dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols, "launch": 1}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    work=work,
    time_at={"rows": 1024, "cols": 1024},
    cpu_at={"rows": 512, "cols": 1024},
    check_at=({"rows": 1, "cols": 1}, {"rows": 107, "cols": 129}),
    rtol=4e-6,  # 8 times the largest error that a CPU showed
    atol=0.0,
)
