"""Optimized: the same copy, so whatever differs is noise."""

from __future__ import annotations

from collections.abc import Callable

import torch


def prepare(x: torch.Tensor, n: int) -> Callable[[], torch.Tensor]:
    """A step that copies the first n floats of `x`."""
    source, y = x[:n], torch.empty(n, device=x.device)
    return lambda: y.copy_(source)
