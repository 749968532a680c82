"""Baseline: the persistent product of bf16 matrices."""

from optimized_triton_persistent import prepare

__all__ = ["prepare"]
