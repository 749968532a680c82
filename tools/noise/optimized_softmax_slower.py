"""Optimized: one softmax over 1 % more rows, of which the first are the answer."""

from __future__ import annotations

from collections.abc import Callable

import torch


def prepare(x: torch.Tensor, rows: int) -> Callable[[], torch.Tensor]:
    """A step over all rows of `x`."""
    y = torch.empty_like(x)
    answer = y[:rows]

    def step() -> torch.Tensor:
        torch.softmax(x, dim=1, out=y)
        return answer

    return step
