"""Optimized: the same product, and a kernel that waits for a hundredth of its time."""

from __future__ import annotations

from collections.abc import Callable

import torch

from tools.noise.shared_spin import spin as spin_for


def prepare(a: torch.Tensor, b: torch.Tensor, spin: int) -> Callable[[], torch.Tensor]:
    """A step that multiplies, and waits for `spin` cycles."""
    y, wait = torch.empty_like(a), spin_for(a.device, spin)

    def step() -> torch.Tensor:
        torch.mm(a, b, out=y)
        wait()
        return y

    return step
