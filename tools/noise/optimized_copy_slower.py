"""Optimized: one copy of 1 % more bytes, of which the first n floats are the answer."""

from __future__ import annotations

from collections.abc import Callable

import torch


def prepare(x: torch.Tensor, n: int) -> Callable[[], torch.Tensor]:
    """A step that copies all of `x`."""
    y = torch.empty_like(x)
    answer = y[:n]

    def step() -> torch.Tensor:
        y.copy_(x)
        return answer

    return step
