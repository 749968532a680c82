"""Optimized: the same softmax, so whatever differs is noise."""

from __future__ import annotations

from collections.abc import Callable

import torch


def prepare(x: torch.Tensor) -> Callable[[], torch.Tensor]:
    """A step over all rows of `x`."""
    y = torch.empty_like(x)
    return lambda: torch.softmax(x, dim=1, out=y)
