"""Baseline: one copy of n floats."""

from tools.noise.baseline_copy import prepare

__all__ = ["prepare"]
