"""Optimized: the same sort, so whatever differs is noise."""

from __future__ import annotations

from collections.abc import Callable

import torch


def prepare(x: torch.Tensor) -> Callable[[], torch.Tensor]:
    """A step that sorts `x`."""
    return lambda: x.sort().values
