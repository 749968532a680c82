"""Keeps a device busy for a while, so that a product can be made slower by as little as one percent."""

from __future__ import annotations

import time
from collections.abc import Callable

import torch


def spin(device: torch.device, cycles: int) -> Callable[[], None]:
    """A call that keeps one thread of a GPU, behind what its stream holds, busy for `cycles`; or the CPU for as many ns."""
    if device.type == "cuda":
        return lambda: torch.cuda._sleep(cycles)

    def wait() -> None:
        end = time.perf_counter_ns() + cycles
        while time.perf_counter_ns() < end:
            pass

    return wait
