"""Optimized: the same softmax, so whatever differs is noise."""

from __future__ import annotations

from collections.abc import Callable

import torch


def prepare(x: torch.Tensor, rows: int) -> Callable[[], torch.Tensor]:
    """A step over the first `rows` of `x`."""
    source, y = x[:rows], torch.empty_like(x[:rows])
    return lambda: torch.softmax(source, dim=1, out=y)
