"""Baseline: the product, and a kernel that does not wait."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tools.noise.shared_spin import spin as spin_for


def prepare(a: torch.Tensor, b: torch.Tensor) -> Callable[[], torch.Tensor]:
    """A step that multiplies."""
    y, wait = torch.empty_like(a), spin_for(a.device, 0)

    def step() -> torch.Tensor:
        torch.mm(a, b, out=y)
        wait()
        return y

    return step
