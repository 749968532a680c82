"""Baseline: Triton with addresses and masks by hand: a search changes a tile, not the kernel."""

from optimized_triton_matmul import prepare

__all__ = ["prepare"]
